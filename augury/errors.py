"""Mistakes a user can correct: one clear line, and the nearest valid choice."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """Bad input. The command line prints its message as one line and exits with code 2."""


class RaisedElsewhere(Exception):  # noqa: N818
    """The traceback of a user's code, as text: the cause of the one line about it."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Say that `name` is not a `kind`, and what was probably meant."""
    return UserError(f"unknown {kind} '{name}'{nearest(name, valid)}")


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of such a sentence: what was probably meant, or what there is."""
    choices = sorted(valid)
    if not choices:
        return ": there is none"
    near = get_close_matches(name.lower(), choices, n=1, cutoff=0.4)
    return f": did you mean '{near[0]}'?" if near else f": choose from {', '.join(choices)}"
