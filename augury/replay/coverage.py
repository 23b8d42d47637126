"""Coverage: which cells of a grid over observation and action hold a transition."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.transition import Array

LOOKED_AT = 65_536
"""Transitions of a buffer that coverage and reward density are read from, at most."""
CELLS = 65_536
MOST_DIMENSIONS = 8
GROUPS = 32
GROUP_SIZE = 4


@dataclass(frozen=True)
class Grid:
    """Cells over observation and action, equally wide between stated bounds.

    Up to eight dimensions make one grid, with as many cells a side as keep the total within 65,536 (Goal2D:
    six dimensions, 6⁶ = 46,656 cells). Where there are more, such a grid would stay empty: coverage is then
    the mean over 32 grids, each over four dimensions drawn once and for all, with 8⁴ cells.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def over(cls, *bounds: tuple[npt.ArrayLike, npt.ArrayLike]) -> Grid:
        """The grid over the dimensions of several (low, high) pairs of vectors."""
        low, high = (
            np.concatenate([np.ravel(side) for side in sides]) for sides in zip(*bounds, strict=True)
        )
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError("a coverage grid needs finite bounds for every dimension")
        return cls(tuple(map(float, low)), tuple(map(float, high)))

    @property
    def groups(self) -> list[list[int]]:
        """The dimensions of each grid."""
        dimensions = len(self.low)
        if dimensions <= MOST_DIMENSIONS:
            return [list(range(dimensions))]
        draw = np.random.default_rng(0)
        return [sorted(draw.choice(dimensions, GROUP_SIZE, replace=False).tolist()) for _ in range(GROUPS)]

    @property
    def bins(self) -> int:
        """Cells a side."""
        dimensions = len(self.low)
        if dimensions > MOST_DIMENSIONS:
            return 8
        return int(CELLS ** (1 / dimensions) + 1e-9)

    def occupied(self, points: Array, counted: Array) -> Array:
        """Which cells hold a counted point: (groups, cells)."""
        unit = (points - jnp.array(self.low)) / (jnp.array(self.high) - jnp.array(self.low))
        place = jnp.clip((unit * self.bins).astype(jnp.int32), 0, self.bins - 1)
        cells = self.bins ** len(self.groups[0])

        def one(group: list[int]) -> Array:
            radix = jnp.array([self.bins**power for power in range(len(group))])
            cell = (place[:, jnp.array(group)] * radix).sum(-1)
            return jnp.zeros(cells, bool).at[jnp.where(counted, cell, cells)].set(True, mode="drop")

        return jnp.stack([one(group) for group in self.groups])
