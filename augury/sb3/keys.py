"""What follows from a buffer's seed: the keys of `replay.copies`, its coins and looks ahead, as NumPy arrays.

A compiled call takes longer than what it computes here. So coins are drawn for many transitions at once, and
all else for the rows of a whole batch.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.replay import copies
from augury.sb3.cpu import in_parts, on_cpu
from augury.transition import Array, Key

Numbers = npt.NDArray[np.uint32]

BLOCK = 1_024
"""Coins that are drawn in one call."""


@cache
def root_of(seed: int) -> Key:
    """The root key of a buffer's R̃."""
    with on_cpu():
        return jax.random.key(seed)


def key_data(seed: int, identity: Numbers, copy: Numbers) -> Numbers:
    """The keys that define copies, as plain numbers."""
    data: Numbers = in_parts(partial(_key_data, root_of(seed)), identity, copy)()
    return data


def steps_ahead(goal: str, seed: int, identity: Numbers, copy: Numbers, remaining: npt.NDArray[Any]) -> Any:
    """How many steps ahead copies read a later goal, of as many as remain in their episodes."""
    ahead = partial(_steps_ahead, goal, root_of(seed))
    return in_parts(ahead, identity, copy, remaining.astype(np.int32))()


class Coins:
    """Which transitions have the extra copy of a fractional m; asked in the order in which they come."""

    def __init__(self, seed: int, ratio: float, environments: int, certain: int) -> None:
        self._seed, self._ratio = seed, np.float32(ratio)
        self._sizes = -(-BLOCK // environments), environments, certain
        self._first = -1
        """The number of the first transition in the block."""
        self._block = np.zeros(0, bool)

    def at(self, number: int) -> npt.NDArray[np.bool_]:
        """Whether the transition with this number has it, in each environment."""
        length = self._sizes[0]
        first = number - number % length
        if first != self._first:
            with on_cpu():
                block = _has_extra(root_of(self._seed), self._ratio, np.int32(first), *self._sizes)
            self._first, self._block = first, np.asarray(block)
        has_extra: npt.NDArray[np.bool_] = self._block[number - first]
        return has_extra


@jax.jit
def _key_data(root: Key, identity: Array, copy: Array) -> Array:
    return jax.random.key_data(copies.keys(root, identity, copy))


_steps_ahead = jax.jit(copies.steps_ahead, static_argnums=0)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _has_extra(root: Key, ratio: Array, first: Array, length: int, environments: int, certain: int) -> Array:
    number, environment = first + jnp.arange(length)[:, None], jnp.arange(environments)
    return copies.has_extra(root, ratio, number, environment, environments, certain)
