"""What the buffers hold: reward density and coverage.

Both are read off up to 65,536 transitions spread evenly over a buffer: all of a smaller one. That costs the
same whatever m and the buffer's size, gives a density of 0.002 to ±0.0002, and makes the coverage of R and
of R̃ comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.augmentations import Augmentation
from augury.replay.buffer import Buffers, Replay
from augury.transition import Array, Key, Transition

LOOKED_AT = 65_536
CELLS = 65_536
MOST_DIMENSIONS = 8
GROUPS = 32
GROUP_SIZE = 4


class Survey(NamedTuple):
    """What one agent's buffers hold."""

    observed_reward_density: Array
    """Share of R that carries the success reward."""
    augmented_reward_density: Array
    observed_coverage: Array
    """Share of the grid's cells that hold a transition of R."""
    augmented_coverage: Array
    coverage: Array
    """The same for both buffers together."""


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


def survey(
    key: Key,
    replay: Replay,
    buffers: Buffers,
    added: Array,
    ratio: Array,
    augmentation: Augmentation | None,
    succeeded: Callable[[Transition], Array],
    grid: Grid,
) -> Survey:
    """Look at both buffers; without an augmentation R̃ is empty, and its figures are 0."""

    def look(transitions: Transition, counted: Array) -> tuple[Array, Array]:
        points = jnp.concatenate([*jax.tree.leaves(transitions.observation), transitions.action], -1)
        successes = (succeeded(transitions) & counted).sum(dtype=jnp.float32)
        return successes / jnp.maximum(counted.sum(dtype=jnp.float32), 1), grid.occupied(points, counted)

    index, counted = _spread((replay.size(added) * replay.environments).astype(jnp.uint32))
    density, occupied = look(replay.observed_at(buffers, added, index.astype(jnp.int32)), counted)
    augmented_density, augmented_occupied = jnp.float32(0), jnp.zeros_like(occupied)
    if augmentation is not None:
        index, counted = _spread(replay.augmented_size(buffers, added, ratio))
        augmented = replay.augmented_at(key, buffers, added, ratio, augmentation, index)
        augmented_density, augmented_occupied = look(augmented, counted)
    return Survey(
        observed_reward_density=density,
        augmented_reward_density=augmented_density,
        observed_coverage=occupied.mean(dtype=jnp.float32),
        augmented_coverage=augmented_occupied.mean(dtype=jnp.float32),
        coverage=(occupied | augmented_occupied).mean(dtype=jnp.float32),
    )


def _spread(total: Array) -> tuple[Array, Array]:
    """Numbers below `total`, evenly spread, and which of them count where there are fewer than looked at."""
    turn = jnp.arange(LOOKED_AT, dtype=jnp.uint32)
    step, rest = total // LOOKED_AT, total % LOOKED_AT
    spread = turn * step + (turn * rest) // np.uint32(LOOKED_AT)
    few = total <= LOOKED_AT
    return jnp.where(few, jnp.minimum(turn, jnp.maximum(total, 1) - 1), spread), ~few | (turn < total)
