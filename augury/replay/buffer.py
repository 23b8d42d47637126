"""Algorithm 1's two buffers: what was observed, R, and what is augmented from it, R̃.

    for every round:
        R  ← R + the transitions observed                      add
        R̃ ← R̃ + m augmented transitions of each               nothing to do: R̃ is a view
    for every update:
        b from R and αb from R̃                                 sample

Copy k of the i-th observed transition is *defined* by the key folded from (i, k). So R̃ is recomputed where it
is sampled: it costs no memory, m may be any number, and m = ∞ draws a new copy every time. With
`storage="eager"` R̃ is stored instead; both give the same batches, bit for bit.

R is a ring per environment, so that episodes stay contiguous. R̃ holds m copies of just what R holds, so the
oldest transitions of both have the same age.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from augury.augmentations import Augmentation
from augury.replay.layout import Layout
from augury.transition import Array, Key, Transition

_COIN = np.uint32(2**32 - 1)
"""Folded in place of k: the coin that decides whether a fractional m grants one copy more."""


class Buffers(NamedTuple):
    """One agent's buffers."""

    observed: Array
    """Rows of R: (environments, capacity, width)."""
    augmented: Array
    """Rows of R̃, where stored: (environments, capacity, copies, width); else empty."""
    granted: Array
    """Ring of the slots whose transition got the extra copy of a fractional m; empty for whole ones."""
    granted_head: Array
    granted_tail: Array
    key: Key
    """Defines every augmented copy."""


class Batch(NamedTuple):
    """What an update learns from: b observed transitions, then αb augmented ones."""

    transitions: Transition
    weights: np.ndarray[tuple[int], np.dtype[np.float32]]
    """Share of each row in the mean; ones, but for the last row where αb is not whole."""


@dataclass(frozen=True)
class Replay:
    """How buffers are kept and sampled: everything about them that fixes a shape."""

    layout: Layout
    environments: int
    capacity: int
    """Transitions per environment."""
    batch_size: int
    """b."""
    update_ratio: float = 0.0
    """α."""
    copies: int = 0
    """Stored copies per transition, ⌈m⌉; 0 recomputes R̃ instead of storing it."""
    fractional: bool = False
    """Whether some agent's m has a fractional part."""

    @property
    def augmented_rows(self) -> int:
        """⌈αb⌉; where αb is not whole the last row counts for the remainder, so that the split is exact."""
        return math.ceil(self.update_ratio * self.batch_size)

    @property
    def weights(self) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        weights = np.ones(self.batch_size + self.augmented_rows, np.float32)
        if self.augmented_rows:
            weights[-1] -= self.augmented_rows - self.update_ratio * self.batch_size
        return weights

    def init(self, key: Key) -> Buffers:
        """Empty buffers whose augmented copies will follow from `key`."""
        slots, width = (self.environments, self.capacity), self.layout.width
        return Buffers(
            observed=jnp.zeros((*slots, width)),
            # Not (…, 0, width) when empty: XLA takes seconds to compile with millions of empty rows.
            augmented=jnp.zeros((*slots, self.copies, width) if self.copies else 0),
            granted=jnp.zeros(math.prod(slots) if self.fractional else 0, jnp.int32),
            granted_head=jnp.int32(0),
            granted_tail=jnp.int32(0),
            key=key,
        )

    def add(
        self, buffers: Buffers, new: Transition, added: Array, ratio: Array, augmentation: Augmentation | None
    ) -> Buffers:
        """Store transitions of shape (environments, length); `added` were stored before in each environment.

        The capacity must be a multiple of the length, so that a write never wraps around.
        """
        length = new.reward.shape[1]
        assert self.capacity % length == 0, f"capacity {self.capacity} is no multiple of {length}"
        start = added % self.capacity
        environment = jnp.arange(self.environments)[:, None]
        number = added + jnp.arange(length)[None, :]

        if self.fractional:
            buffers = self._grant(buffers, environment, number, start, ratio)
        rows = jax.lax.dynamic_update_slice(buffers.observed, self.layout.pack(new), (0, start, 0))
        buffers = buffers._replace(observed=rows)
        if self.copies:
            assert augmentation is not None
            position = start + jnp.arange(length)
            places = jnp.broadcast_arrays(
                environment[..., None], position[:, None], jnp.arange(self.copies, dtype=jnp.uint32)
            )
            stored = self.layout.pack(self._recomputed(buffers, added + length, augmentation, *places))
            buffers = buffers._replace(
                augmented=jax.lax.dynamic_update_slice(buffers.augmented, stored, (0, start, 0, 0))
            )
        return buffers

    def sample(
        self,
        key: Key,
        buffers: Buffers,
        added: Array,
        ratio: Array,
        augmentation: Augmentation | None,
        batches: int,
    ) -> Transition:
        """Draw batches of b transitions from R and αb from R̃, uniformly and with replacement."""
        observed_key, augmented_key = jax.random.split(key)
        size = self.size(added)
        index = jax.random.randint(observed_key, (batches, self.batch_size), 0, size * self.environments)
        drawn = self.observed_at(buffers, added, index)
        if self.augmented_rows:
            assert augmentation is not None
            index_key, copy_key = jax.random.split(augmented_key)
            shape = (batches, self.augmented_rows)
            total = self.augmented_size(buffers, added, ratio)
            index = jax.random.randint(index_key, shape, 0, total, jnp.uint32)
            augmented = self.augmented_at(copy_key, buffers, added, ratio, augmentation, index)
            drawn = jax.tree.map(lambda a, b: jnp.concatenate([a, b], 1), drawn, augmented)
        return drawn

    def size(self, added: Array) -> Array:
        """Transitions that R holds of each environment."""
        return jnp.minimum(added, self.capacity)

    def augmented_size(self, buffers: Buffers, added: Array, ratio: Array) -> Array:
        """Transitions that R̃ holds; an infinite m counts as one, whose copy is new every time."""
        regular = _whole(ratio) * (self.size(added) * self.environments).astype(jnp.uint32)
        return regular + (buffers.granted_tail - buffers.granted_head).astype(jnp.uint32)

    def augmented_total(self, buffers: Buffers, added: Array, ratio: Array) -> Array:
        """Augmented transitions generated since the start, as a float: the count may be infinite."""
        regular = jnp.floor(ratio) * added * self.environments
        return regular + buffers.granted_tail

    def observed_at(self, buffers: Buffers, added: Array, index: Array) -> Transition:
        """The transitions of R with these numbers, counted from 0 to its size."""
        size = self.size(added)
        return self.layout.unpack(buffers.observed[index // size, index % size])

    def augmented_at(
        self,
        key: Key,
        buffers: Buffers,
        added: Array,
        ratio: Array,
        augmentation: Augmentation,
        index: Array,
    ) -> Transition:
        """The transitions of R̃ with these numbers, recomputed or looked up; `key` matters to m = ∞ only."""
        environment, position, copy = self._place(buffers, added, ratio, index)
        if self.copies:
            return self.layout.unpack(buffers.augmented[environment, position, copy])
        copy = jnp.where(jnp.isinf(ratio), jax.random.bits(key, copy.shape, jnp.uint32), copy)
        return self._recomputed(buffers, added, augmentation, environment, position, copy)

    def _recomputed(
        self,
        buffers: Buffers,
        added: Array,
        augmentation: Augmentation,
        environment: Array,
        position: Array,
        copy: Array,
    ) -> Transition:
        """The augmented transitions at these places, from the observed ones.

        Storing goes through here too: gathered from the ring along one flat axis, the compiler has the same
        work before it every time. Over other axes, or fused with what made the transitions, the same
        arithmetic may come out with another last bit.
        """
        shape = copy.shape
        environment, position, copy = (places.reshape(-1) for places in (environment, position, copy))
        observed = self.layout.unpack(buffers.observed[environment, position])
        keys = self._copy_keys(buffers.key, environment, self._number_at(position, added), copy)
        augmented = jax.vmap(augmentation)(keys, observed)
        return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), augmented)

    def _place(
        self, buffers: Buffers, added: Array, ratio: Array, index: Array
    ) -> tuple[Array, Array, Array]:
        """Where the transitions of R̃ come from: environment, position in its ring, and which copy."""
        size, whole = self.size(added).astype(jnp.uint32), _whole(ratio)
        row, copy = index // jnp.maximum(whole, 1), index % jnp.maximum(whole, 1)
        environment, position = (row // size).astype(jnp.int32), (row % size).astype(jnp.int32)
        if self.fractional:
            regular = whole * size * np.uint32(self.environments)
            place = buffers.granted_head.astype(jnp.uint32) + index - regular
            slot = buffers.granted[place % np.uint32(buffers.granted.shape[0])]
            environment = jnp.where(index < regular, environment, slot // self.capacity)
            position = jnp.where(index < regular, position, slot % self.capacity)
            copy = jnp.where(index < regular, copy, whole)
        return environment, position, copy

    def _grant(
        self, buffers: Buffers, environment: Array, number: Array, start: Array, ratio: Array
    ) -> Buffers:
        """List which new transitions get the extra copy of a fractional m; forget the overwritten ones."""

        def granted(number: Array) -> Array:
            coins = _batched_uniform(self._copy_keys(buffers.key, environment, number, _COIN))
            # One in every turn of the ring is certain, so that R̃ is never empty while R is not.
            certain = (number % self.capacity == 0) & (environment == 0)
            return (ratio % 1 > 0) & (number >= 0) & ((coins < ratio % 1) | certain)

        # In order of time, as they will be forgotten.
        new = granted(number).T.reshape(-1)
        slots = (environment * self.capacity + start + jnp.arange(number.shape[1])).T.reshape(-1)
        room = buffers.granted.shape[0]
        place = (buffers.granted_tail + jnp.cumsum(new) - 1) % room
        forgotten = granted(number - self.capacity).sum(dtype=jnp.int32)
        return buffers._replace(
            granted=buffers.granted.at[jnp.where(new, place, room)].set(slots, mode="drop"),
            granted_head=buffers.granted_head + forgotten,
            granted_tail=buffers.granted_tail + new.sum(dtype=jnp.int32),
        )

    def _number_at(self, position: Array, added: Array) -> Array:
        """Which of its environment's transitions stands at a position of the ring."""
        return added - 1 - (added - 1 - position) % self.capacity

    def _copy_keys(self, key: Key, environment: Array, number: Array, copy: Array | np.uint32) -> Key:
        """The key that defines a copy, for arrays that broadcast together."""
        fold = jax.random.fold_in
        identity = (number * self.environments + environment).astype(jnp.uint32)
        identity, copy = jnp.broadcast_arrays(identity, jnp.asarray(copy).astype(jnp.uint32))
        keys = jax.vmap(lambda i, k: fold(fold(key, i), k))(identity.reshape(-1), copy.reshape(-1))
        return keys.reshape(identity.shape)


def _whole(ratio: Array) -> Array:
    """Copies that every transition has."""
    return jnp.where(jnp.isinf(ratio), 1, jnp.floor(ratio)).astype(jnp.uint32)


def _batched_uniform(keys: Key) -> Array:
    return jax.vmap(jax.random.uniform)(keys.reshape(-1)).reshape(keys.shape)
