"""One number of an observation: what it is, and what it becomes in the mirror.

Numbers know each other by keys, not by places. So a joint may stand anywhere in the observation, and its
mirror image in another term.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from augury.symmetry.maps import AffineMap, SymmetryError

Key = Hashable


class Number(NamedTuple):
    """One number of an observation or an action."""

    name: str
    key: Key
    """What it is: a position, a flag of a foot, … and at which time."""
    image: tuple[tuple[Key, float], ...]
    """Its value in the mirror: factors of other numbers."""
    offset: float = 0.0
    term: str = ""
    owner: str = ""
    """The joint or actuator that it belongs to, if to any."""

    def at(self, frame: int) -> Number:
        """The same number in a frame of a history."""
        image = tuple(((frame, key), factor) for key, factor in self.image)
        return self._replace(key=(frame, self.key), image=image, name=f"{self.name}, frame {frame}")


def stacked(numbers: Sequence[Number], frames: int) -> list[Number]:
    """A history of these numbers, frame after frame."""
    return [number.at(frame) for frame in range(frames) for number in numbers] if frames > 1 else [*numbers]


def assembled(numbers: Sequence[Number], where: str) -> AffineMap:
    """The map of a vector that holds these numbers in this order."""
    places: dict[Key, dict[str, int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(number.key, {}).setdefault(number.term, place)
    matrix = np.zeros((len(numbers), len(numbers)))
    for place, number in enumerate(numbers):
        for key, factor in number.image:
            if key not in places:
                raise SymmetryError(
                    f"{where}: the mirror image of {number.name} in the term '{number.term}' is not observed"
                )
            # The same quantity may be observed twice: its image is looked for in the same term first.
            found = places[key]
            matrix[place, found.get(number.term, next(iter(found.values())))] = factor
    return AffineMap(matrix, np.array([number.offset for number in numbers]))
