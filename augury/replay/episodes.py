"""Which finished episode a transition belongs to, for augmentations that look along it (hindsight).

A ring per environment keeps episodes contiguous: the transitions of finished ones are everything that a ring
holds before the running episode. So to know how many they are takes one number for each environment, and to
find the end of an episode takes a look, whatever the size of the ring.

`Episodes` is a value, for compiled programs; `EpisodesOnHost` keeps the same in NumPy arrays, in place.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from augury.transition import Array

Integers = npt.NDArray[np.int64]


class Episodes(NamedTuple):
    """The episodes of an agent's environments. Numbers of episodes are kept modulo the ring's capacity."""

    number: Array
    """Ring of the episode that each transition belongs to: (environments, capacity)."""
    last: Array
    """Ring of the number of each finished episode's last transition: (environments, capacity)."""
    finished: Array
    """How many episodes each environment has finished."""
    before: Array
    """How many transitions each environment had before the running episode."""

    @classmethod
    def none(cls, environments: int, capacity: int) -> Episodes:
        """Before the first step."""
        ring, count = jnp.zeros((environments, capacity), jnp.int32), jnp.zeros(environments, jnp.int32)
        return cls(number=ring, last=ring, finished=count, before=count)

    def added(self, over: Array, number: Array) -> Episodes:
        """After (environments, length) transitions with these numbers, which end episodes where it is `over`.

        There can be no more episodes than transitions, so none that the ring still holds is overwritten.
        """
        capacity = self.number.shape[1]
        ended = jnp.cumsum(over, 1, dtype=jnp.int32) - over.astype(jnp.int32)  # before each of these
        episode = (self.finished[:, None] + ended) % capacity
        environment = jnp.arange(over.shape[0])[:, None]
        start = number[0, 0] % capacity
        number = jnp.broadcast_to(number, over.shape)
        return Episodes(
            number=jax.lax.dynamic_update_slice(self.number, episode, (0, start)),
            last=self.last.at[environment, jnp.where(over, episode, capacity)].set(number, mode="drop"),
            finished=self.finished + over.sum(1, dtype=jnp.int32),
            before=jnp.maximum(self.before, jnp.where(over, number + 1, 0).max(1)),
        )

    def remaining(self, environment: Array, position: Array, number: Array) -> Array:
        """How many steps follow in its episode on a transition of a finished one."""
        return self.last[environment, self.number[environment, position]] - number


class EpisodesOnHost:
    """How many steps follow in its episode on each transition of a finished one."""

    def __init__(self, slots: int, environments: int) -> None:
        self._slots = slots
        self._first = np.zeros(environments, np.int64)
        """The number of the running episode's first transition."""
        self._last = np.full((slots, environments), -1, np.int64)
        """The number of the last transition of each one's episode."""

    def running(self, number: int) -> npt.NDArray[np.bool_]:
        """In which environments the transition before `number` left its episode unfinished."""
        return self._first < number

    def finish(self, environment: int, number: int) -> Integers:
        """Transition `number` is its episode's last; return the slots that the episode fills."""
        first = max(int(self._first[environment]), number + 1 - self._slots)
        slots = np.arange(first, number + 1) % self._slots
        self._last[slots, environment] = number
        self._first[environment] = number + 1
        return slots

    def remaining(self, slot: Integers, environment: Integers, number: Integers) -> Integers:
        """How many steps follow in its episode on a transition of a finished one."""
        return self._last[slot, environment] - number
