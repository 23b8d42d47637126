"""What becomes of two values that should be mirror images: their middle, or one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from augury.errors import unknown_name
from augury.symmetry.maps import Array
from augury.symmetry.pairing.images import Pairing

_SIDES = {"left": ("y", 1), "right": ("y", -1), "front": ("x", 1), "back": ("x", -1)}
_SIDES |= {"top": ("z", 1), "bottom": ("z", -1)}


class Sides:
    """Chooses between a value and its image."""

    def __init__(self, pairing: Pairing, side: str | None):
        self.pairing, self.direction = pairing, 0
        if side is not None:
            normal = pairing.mirror.normal
            known = {name: sign for name, (axis, sign) in _SIDES.items() if normal["xyz".index(axis)]}
            if side not in known:
                raise unknown_name("side of this mirror", side, known)
            self.direction = known[side]

    def kept(self, body: int, image: int) -> int:
        """1 where the first of two bodies is on the side that is taken, -1 where the second is, else 0."""
        heights = self.pairing.mirror.data.xpos[[body, image]] @ self.pairing.mirror.normal
        apart = heights[0] - heights[1]
        return 0 if abs(apart) < 1e-9 else int(np.sign(apart)) * self.direction

    def settled(
        self,
        bodies: tuple[int, int],
        values: tuple[Any, Any],
        mirrored: Callable[[Array], Array],
        back: Callable[[Array], Array],
    ) -> tuple[Array, Array]:
        """Two values that are mirror images; `mirrored` takes the first to the second, `back` inverts it."""
        first, second = (np.asarray(value, float) for value in values)
        kept = self.kept(*bodies)
        share = {1: 1.0, -1: 0.0, 0: 0.5}[kept]
        settled = share * mirrored(first) + (1 - share) * second
        return back(settled), settled

    def chosen(self, bodies: tuple[int, int], values: tuple[Any, Any]) -> Any:
        """One of two values that have no middle; the larger where no side is taken: limits, and contacts."""
        kept = self.kept(*bodies)
        return max(values) if kept == 0 else values[0 if kept > 0 else 1]
