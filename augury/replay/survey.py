"""What the buffers hold: reward density and coverage.

Both are read off up to 65,536 transitions spread evenly over a buffer: all of a smaller one. That costs the
same whatever m and the buffer's size, gives a density of 0.002 to ±0.0002, and makes the coverage of R and
of R̃ comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from augury.augmentations import Augmentation
from augury.replay.buffer import Buffers, Replay
from augury.replay.coverage import LOOKED_AT, Grid
from augury.transition import Array, Key, Transition, seen


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
        points = jnp.concatenate([seen(transitions.observation), transitions.action], -1)
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
