"""What a cell of a table may hold: checks that return its value, or raise a ValueError with what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

from augury.errors import nearest


def any_text(cell: str) -> str:
    """Anything but nothing."""
    if not cell:
        raise ValueError("is empty")
    return cell


def number(cell: str) -> float:
    """A number, infinite ones too."""
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"'{cell}' is not a number" if cell else "is empty") from None
    if math.isnan(value):
        raise ValueError("is not a number; what is not known stays empty")
    return value


def finite(cell: str) -> float:
    """A finite number."""
    value = number(cell)
    if math.isinf(value):
        raise ValueError(f"{cell} is not finite")
    return value


def above_zero(cell: str) -> float:
    """A positive number, infinity too."""
    value = number(cell)
    if value <= 0:
        raise ValueError(f"{cell} is not above 0")
    return value


def count(cell: str) -> int:
    """A whole number from 1 on."""
    if not cell.isdecimal() or not int(cell):
        raise ValueError(f"'{cell}' is not a whole number above 0")
    return int(cell)


def share(cell: str) -> float:
    """A number between 0 and 1."""
    value = number(cell)
    if not 0 <= value <= 1:
        raise ValueError(f"{cell} is not between 0 and 1")
    return value


def or_unknown(check: Callable[[str], Any]) -> Callable[[str], Any]:
    """What passes the check, or nothing."""
    return lambda cell: check(cell) if cell else None


def one_of(kind: Any) -> Callable[[str], str]:
    """One of the values of a `Literal`."""

    def check(cell: str) -> str:
        if cell not in get_args(kind):
            raise ValueError(f"'{cell}' is none of its values{nearest(cell, get_args(kind))}")
        return cell

    return check
