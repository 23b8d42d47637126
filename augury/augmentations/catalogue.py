"""Augmentations by name, with what each takes and needs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from augury.augmentations import goal2d
from augury.augmentations.base import Augmentation, needs_of
from augury.errors import UserError, unknown_name


class Entry(NamedTuple):
    """One line of the catalogue."""

    name: str
    make: Callable[..., Augmentation]
    environment: str

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(f.name for f in fields(self.make))  # type: ignore[arg-type]

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name

    @property
    def needs(self) -> tuple[str, ...]:
        """The extras it reads from a transition."""
        return needs_of(self.make)  # a class attribute, so the class answers for its instances

    @property
    def summary(self) -> str:
        return (self.make.__doc__ or "").split("\n")[0]


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("goal2d/translate", goal2d.Translate, "goal2d"),
        Entry("goal2d/rotate", goal2d.Rotate, "goal2d"),
        Entry("goal2d/translate-proximal", goal2d.TranslateProximal, "goal2d"),
    )
}


def make(text: str, **parameters: Any) -> Augmentation:
    """Build an augmentation from its name: `goal2d/rotate`, `goal2d/translate-proximal(0.1)`, `…(p=0.1)`."""
    entry, written = parse(text)
    given = written | parameters
    missing = [name for name in entry.parameters if name not in given]
    if missing:
        raise UserError(f"{entry.name} needs {', '.join(missing)}: write '{entry.signature}'")
    surplus = [name for name in given if name not in entry.parameters]
    if surplus:
        raise UserError(f"{entry.name} takes no {', '.join(surplus)}: write '{entry.signature}'")
    return entry.make(**given)


def parse(text: str) -> tuple[Entry, dict[str, Any]]:
    """The catalogue entry that `text` names and the parameters written behind it."""
    name, bracket, arguments = text.partition("(")
    if name not in CATALOGUE:
        raise unknown_name("augmentation", name, CATALOGUE)
    entry = CATALOGUE[name]
    if not bracket:
        return entry, {}
    try:
        call: Any = ast.parse(f"f({arguments}", mode="eval").body
        values = [float(ast.literal_eval(node)) for node in call.args]
        named = {str(word.arg): float(ast.literal_eval(word.value)) for word in call.keywords}
    except (SyntaxError, AttributeError, TypeError, ValueError):
        raise UserError(f"cannot read '{text}': write '{entry.signature}' with numbers") from None
    if len(values) > len(entry.parameters):
        raise UserError(f"too many parameters in '{text}': write '{entry.signature}'")
    return entry, dict(zip(entry.parameters, values, strict=False)) | named
