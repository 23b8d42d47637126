"""Defaults that an environment may have others for.

Such a default is a number (a string, a tuple) like any other, to be shown and computed with. But it is of a
type of its own, so that it is told apart from an equal value that somebody gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, TypeVar

Value = TypeVar("Value")
Settings = TypeVar("Settings", bound=Any)


class Unsaid:
    """Nobody gave this value."""

    plain: Callable[[Any], Any]
    """The type of an equal value that is given."""

    def __reduce__(self) -> Any:
        return unless_said, (self.plain(self),)


def unless_said(value: Value) -> Value:
    """The value, as a default that an environment may replace."""
    unsaid: Any = _unsaid(type(value))  # type: ignore[arg-type]
    return unsaid(value)


def with_own_defaults(settings: Settings, own: Mapping[str, Any]) -> Settings:
    """The settings, a dataclass, with an environment's own defaults for what was not given."""
    replaceable = {field.name for field in fields(settings) if isinstance(field.default, Unsaid)}
    assert own.keys() <= replaceable, f"no environment has its own {own.keys() - replaceable}"
    values = {name: getattr(settings, name) for name in replaceable}
    unsaid = {name: value.plain(value) for name, value in values.items() if isinstance(value, Unsaid)}
    return replace(settings, **{name: own.get(name, value) for name, value in unsaid.items()})


@lru_cache
def _unsaid(kind: type) -> type:
    return type(f"Unsaid{kind.__name__.capitalize()}", (Unsaid, kind), {"plain": kind})
