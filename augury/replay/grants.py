"""Which transitions have the extra copy of a fractional m: m = 2.5 gives every second one a third copy."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from augury.transition import Array


class Grants(NamedTuple):
    """The slots of these transitions, listed in order of time, as they will be forgotten.

    There is one list, or one for each environment: where copies wait for the end of their episode, a list
    must not wait for several.
    """

    slots: Array
    """Each list as a ring: (lists, room)."""
    head: Array
    """How many have been forgotten, of each list."""
    tail: Array
    """How many have been listed."""
    ready: Array
    """How many of these may be drawn, unless forgotten."""

    @classmethod
    def none(cls, lists: int, room: int) -> Grants:
        """Empty lists."""
        count = jnp.zeros(lists, jnp.int32)
        return cls(slots=jnp.zeros((lists, room), jnp.int32), head=count, tail=count, ready=count)

    @property
    def held(self) -> Array:
        """How many can be drawn from each list."""
        return jnp.maximum(self.ready - self.head, 0).astype(jnp.uint32)

    def added(self, granted: Array, slots: Array, ready: Array, forgotten: Array) -> Grants:
        """After new transitions, (lists, length): which got a copy, in which slots, and what they overwrite.

        Where it is `ready`, all that was listed up to there is.
        """
        lists, room = self.slots.shape
        tail = self.tail[:, None] + jnp.cumsum(granted, 1)
        place = jnp.where(granted, (tail - 1) % room, room)
        return Grants(
            slots=self.slots.at[jnp.arange(lists)[:, None], place].set(slots, mode="drop"),
            head=self.head + forgotten.sum(1, dtype=jnp.int32),
            tail=tail[:, -1],
            ready=jnp.maximum(self.ready, jnp.where(ready, tail, 0).max(1)),
        )

    def at(self, number: Array) -> Array:
        """The slots with these numbers, counted from 0 through all lists."""
        lists, place = divided(number, self.held)
        return self.slots[lists, (self.head[lists] + place) % self.slots.shape[1]]


def divided(number: Array, counts: Array) -> tuple[Array, Array]:
    """Numbers that count through groups of these sizes, as the group and the index in it."""
    until = jnp.cumsum(counts)
    group = jnp.minimum((number[..., None] >= until).sum(-1), len(counts) - 1)
    return group, (number - (until - counts)[group]).astype(jnp.int32)
