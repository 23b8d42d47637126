"""Maps as text that a person can check: one line for each number, with its name and where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from augury.symmetry.maps import AffineMap
from augury.symmetry.observed.mirror import Vector

Rows = list[dict[int, float]]


def rows_of(given: AffineMap) -> Rows:
    """For each number of the image the factors of the original's numbers."""
    return [{int(source): float(row[source]) for source in np.flatnonzero(row)} for row in given.matrix]


def offsets_of(given: AffineMap) -> dict[int, float]:
    """Where the image has an offset, and which."""
    return {int(place): float(given.offset[place]) for place in np.flatnonzero(given.offset)}


def table(vector: Vector) -> str:
    """The rows of a vector's map, as the lines of a Python list."""
    lines, term = [], None
    names = [number.name for number in vector.numbers]
    for place, (row, number) in enumerate(zip(rows_of(vector.map), vector.numbers, strict=True)):
        if number.term != term:
            term = number.term
            lines.append(f"# {term}")
        own = row == {place: 1.0}
        comment = names[place] if own else f"{names[place]} = {_sum(row, names)}"
        lines.append(f"{_literal(row)},  # {place} {comment}")
    return "\n".join(f"    {line}" for line in lines)


def listed(values: Iterable[str], width: int = 100) -> str:
    """Values as the lines of a Python list."""
    lines, line = [], ""
    for value in values:
        text = f"{value}, "
        if len(line) + len(text) > width:
            lines.append(line.rstrip())
            line = ""
        line += text
    return "\n".join(f"    {each}" for each in [*lines, line.rstrip()] if each)


def _literal(row: Mapping[int, float]) -> str:
    return "{" + ", ".join(f"{source}: {factor:+}" for source, factor in row.items()) + "}"


def _sum(row: Mapping[int, float], names: Sequence[str]) -> str:
    parts = []
    for source, factor in row.items():
        sign = "-" if factor < 0 else "+"
        size = "" if abs(factor) == 1 else f"{abs(factor):.6g} "
        parts.append(f"{sign} {size}{names[source]}")
    return " ".join(parts)
