"""Augmentations by name, with what each takes and needs."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

from augury.augmentations import goal2d, symmetry
from augury.augmentations.base import Augmentation
from augury.envs.locomotion import TASKS
from augury.errors import UserError, unknown_name


class Entry(NamedTuple):
    """One line of the catalogue."""

    name: str
    make: Callable[..., Augmentation]
    environment: str
    summary: str
    needs: tuple[str, ...] = ()
    """The extras it reads from a transition."""

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(signature(self.make).parameters)

    def require(self, environment: str) -> None:
        """Refuse an environment that is neither its own nor a variant, named after what it varies."""
        if not f"{environment}-".startswith(f"{self.environment}-"):
            raise UserError(f"augmentation '{self.name}' is for {self.environment}, not for {environment}")

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


def _goal2d(name: str, make: type[Augmentation]) -> Entry:
    return Entry(f"goal2d/{name}", make, "goal2d", (make.__doc__ or "").split("\n")[0])


def _reflect(robot: str, does: str, needs: tuple[str, ...] = ()) -> Entry:
    def make() -> Augmentation:
        return symmetry.reflect(TASKS[robot])

    return Entry(f"{robot}/reflect", make, robot, does, needs)


def _rotate(robot: str) -> Entry:
    def make() -> Augmentation:
        return symmetry.rotate(TASKS[robot])

    degrees = round(math.degrees(TASKS[robot].largest_turn))
    does = f"Turn its heading by up to {degrees} degrees either way."
    return Entry(f"{robot}/rotate", make, robot, does, symmetry.VELOCITY)


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        _goal2d("translate", goal2d.Translate),
        _goal2d("rotate", goal2d.Rotate),
        _goal2d("translate-proximal", goal2d.TranslateProximal),
        _reflect("swimmer", "Mirror left and right."),
        _reflect("walker2d", "Mirror left and right: exchange the legs."),
        _reflect("ant", "Mirror front and back: forward becomes backward.", symmetry.VELOCITY[:1]),
        _rotate("ant"),
        _reflect("humanoid", "Mirror left and right."),
        _rotate("humanoid"),
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
