"""What the buffers hold: reward density and coverage.

Both are read off up to 65,536 transitions spread evenly over a buffer: all of a smaller one. That costs the
same whatever m and the buffer's size, gives a density of 0.002 to ±0.0002, and makes the coverage of R and
of R̃ comparable. `survey` looks at a fleet's buffers; the drop-in for SB3 uses the same parts for
its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from augury.augmentations import Augmentation
from augury.replay.coverage import LOOKED_AT, Grid
from augury.replay.ring import Buffers, Replay
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

    def look(transitions: Transition, counted: Array) -> Held:
        return held(grid, points(transitions), succeeded(transitions), counted)

    index, counted = spread((replay.size(added) * replay.environments).astype(jnp.uint32))
    observed = look(replay.observed_at(buffers, added, index.astype(jnp.int32)), counted)
    augmented = Held(jnp.float32(0), jnp.zeros_like(observed.occupied))
    if augmentation is not None:
        index, counted = spread(replay.augmented_size(buffers, added, ratio))
        augmented = look(replay.augmented_at(key, buffers, added, ratio, augmentation, index), counted)
    return summary(observed, augmented)


class Held(NamedTuple):
    """What one buffer holds."""

    density: Array
    occupied: Array
    """Which cells of the grid hold a transition."""


def points(transitions: Transition) -> Any:
    """Where transitions lie in the grid: what a policy sees of them, and the action; for NumPy and JAX."""

    def rows(leaf: Any) -> Any:
        return leaf.reshape(len(leaf), math.prod(leaf.shape[1:])).astype(np.float32)

    observation, action = jax.tree.map(rows, (transitions.observation, transitions.action))
    return action.__array_namespace__().concatenate([seen(observation), action], -1)


def held(grid: Grid, points: Array, succeeded: Array, counted: Array) -> Held:
    """What a buffer holds, estimated from these transitions, or from those of them that count."""
    successes = (succeeded & counted).sum(dtype=jnp.float32)
    density = successes / jnp.maximum(counted.sum(dtype=jnp.float32), 1)
    return Held(density, grid.occupied(points, counted))


def summary(observed: Held, augmented: Held) -> Survey:
    """What R and R̃ hold, and both together."""
    return Survey(
        observed_reward_density=observed.density,
        augmented_reward_density=augmented.density,
        observed_coverage=observed.occupied.mean(dtype=jnp.float32),
        augmented_coverage=augmented.occupied.mean(dtype=jnp.float32),
        coverage=(observed.occupied | augmented.occupied).mean(dtype=jnp.float32),
    )


def spread(total: Any, most: int = LOOKED_AT) -> tuple[Any, Any]:
    """`most` numbers below `total`, evenly spread, and which of them count where there are fewer.

    `total` is an array without axes, of NumPy or JAX. No product exceeds `most` squared, which fits 32 bits.
    """
    arrays = total.__array_namespace__()
    turn = arrays.arange(most, dtype=total.dtype)
    step, rest = total // most, total % most
    spread = turn * step + (turn * rest) // most
    few = total <= most
    return arrays.where(few, arrays.minimum(turn, arrays.maximum(total, 1) - 1), spread), ~few | (
        turn < total
    )
