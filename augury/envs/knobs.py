"""Knobs: what an environment can be asked to be, in the text that names it.

make("family/point(wind=0.1, reward='dense')")       the registered one, with two of its fields changed
reference(environment)                               the same text again: knobs that differ, in their order

Any environment whose class was made by `with_numbers` has its fields for knobs. Two attributes help to check
them: `words` are names for numbers ({"reward": {"sparse": 0.0, …}}), and `limits` say between which numbers
a knob lies.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from augury.envs.base import numbers_of
from augury.errors import UserError, nearest


def split(text: str) -> tuple[str, str | None]:
    """The name of an environment, and what stands in brackets behind it, if anything does."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return text, None
    if not rest.endswith(")"):
        raise UserError(f"cannot read '{text}': the bracket after {name} is not closed")
    return name.strip(), rest[:-1]


def turned(environment: Any, name: str, knobs: str) -> Any:
    """The environment with these knobs, as they are written."""
    return replace(environment, **_read(environment, name, knobs)) if knobs.strip() else environment


def written(environment: Any, default: Any, name: str) -> str | None:
    """The text for an environment: its name, and the knobs in which it differs from the default.

    None where it is not of the default's kind, or differs in what no text says.
    """
    if type(environment) is not type(default) or numbers_of(environment) is None:
        return None
    found = {knob.name: getattr(environment, knob.name) for knob in fields(environment)}
    changed = {
        knob: _shown(environment, knob, value)
        for knob, value in found.items()
        if value != getattr(default, knob)
    }
    if None in changed.values():
        return None
    return f"{name}({', '.join(f'{knob}={text}' for knob, text in changed.items())})" if changed else name


def check_limits(environment: Any) -> None:
    """Refuse a knob that lies outside its limits."""
    for knob, (low, high) in getattr(environment, "limits", {}).items():
        value = getattr(environment, knob)
        if not low <= value <= high:
            raise UserError(f"{environment.name}: {knob} must lie in [{low:g}, {high:g}], not {value:g}")


def number_of(environment: Any, knob: str, word: str) -> float:
    """The number that a word stands for."""
    words: Mapping[str, float] = getattr(environment, "words", {}).get(knob, {})
    if not words:
        raise UserError(f"{environment.name}: {knob} is a number, not '{word}'")
    if word not in words:
        raise UserError(f"{environment.name}: {knob} cannot be '{word}'{nearest(word, words)}")
    return words[word]


def _read(environment: Any, name: str, knobs: str) -> dict[str, Any]:
    if numbers_of(environment) is None:
        raise UserError(f"{name} has no knobs: leave out ({knobs})")
    names = [knob.name for knob in fields(environment)]
    try:
        call: Any = ast.parse(f"f({knobs})", mode="eval").body
        if call.args or any(word.arg is None for word in call.keywords):
            raise ValueError
        given = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        if len(given) < len(call.keywords):  # one of them twice
            raise ValueError
    except (SyntaxError, AttributeError, TypeError, ValueError):
        example = f"{name}({names[0]}={getattr(environment, names[0])!r})"
        raise UserError(f"cannot read '{name}({knobs})': write knobs as in '{example}'") from None
    for knob in given:
        if knob not in names:
            raise UserError(f"{name} has no knob '{knob}'{nearest(knob, names)}")
    return {knob: _typed(environment, knob, value) for knob, value in given.items()}


def _typed(environment: Any, knob: str, value: Any) -> Any:
    """The value as a field of its kind."""
    default = getattr(environment, knob)
    if isinstance(value, str) and not isinstance(default, str):
        return number_of(environment, knob, value)
    if isinstance(default, tuple):
        if isinstance(value, tuple) and len(value) == len(default) and all(map(_is_number, value)):
            return tuple(map(float, value))
        raise UserError(f"{environment.name}: {knob} must be {len(default)} numbers, not {value!r}")
    if isinstance(default, bool) or not isinstance(default, float | int):
        if type(value) is type(default):
            return value
        what = "True or False" if isinstance(default, bool) else f"of the kind of {default!r}"
        raise UserError(f"{environment.name}: {knob} must be {what}, not {value!r}")
    whole = isinstance(default, int)
    if not _is_number(value) or (whole and value != int(value)):
        raise UserError(
            f"{environment.name}: {knob} must be a {'whole ' if whole else ''}number, not {value!r}"
        )
    return int(value) if whole else float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)


def _shown(environment: Any, knob: str, value: Any) -> str | None:
    """A value as text that is the same in every process, a number by its word where it has one.

    None for what is neither text nor numbers.
    """
    for word, number in getattr(environment, "words", {}).get(knob, {}).items():
        if value == number:
            return repr(word)
    if isinstance(value, bool | int | str):
        return repr(value)
    try:
        return repr(tuple(map(float, value)) if isinstance(value, tuple) else float(value))
    except (TypeError, ValueError):
        return None
