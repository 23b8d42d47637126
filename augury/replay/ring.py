"""Algorithm 1's two buffers: what was observed, R, and what is augmented from it, R̃.

    for every round:
        R  ← R + the transitions observed                      add
        R̃ ← R̃ + m augmented transitions of each               nothing to do: R̃ is a view
    for every update:
        b from R and αb from R̃                                 sample

Every copy is *defined* by the key folded from its transition and its number (`copies`). So R̃ is recomputed
where it is sampled: it costs no memory, m may be any number, and m = ∞ draws a new copy every time. With
`storage="eager"` R̃ is stored instead; both give the same batches, bit for bit.

R is a ring per environment, so that episodes stay contiguous. R̃ holds m copies of just what R holds, so the
oldest transitions of both have the same age. Where copies look along the episode (hindsight), R̃ holds those
of finished episodes only: so a copy is still the same at every draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from augury.augmentations import Augmentation
from augury.replay import copies
from augury.replay.episodes import Episodes
from augury.replay.grants import Grants, divided
from augury.replay.layout import Layout
from augury.transition import Array, Key, Transition


class Buffers(NamedTuple):
    """One agent's buffers."""

    observed: Array
    """Rows of R: (environments, capacity, width)."""
    augmented: Array
    """Rows of R̃, where stored: (environments, capacity, copies, width); else empty."""
    grants: Grants | None
    """Which transitions have the extra copy of a fractional m; None if m is whole."""
    episodes: Episodes | None
    """None where no augmentation reads episodes."""
    key: Array
    """Defines every augmented copy. As plain numbers, which pass through compiled calls faster than a key."""


RINGS = frozenset({"observed", "augmented", "episodes.number", "episodes.last"})
"""Leaves of `Buffers`, named by their paths, that are rings over (environments, capacity, …): slots fill one
after the other, with the transitions or, more slowly, with episodes."""
LISTS = frozenset({"grants.slots"})
"""Leaves that are as large, with other axes."""


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
    later: tuple[str, ...] = ()
    """Which later goals of the episode (`LATER_GOALS`) the augmentation reads as extras."""

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
        lists = self.environments if self.later else 1
        return Buffers(
            observed=jnp.zeros((*slots, width)),
            # Not (…, 0, width) when empty: XLA takes seconds to compile with millions of empty rows.
            augmented=jnp.zeros((*slots, self.copies, width) if self.copies else 0),
            grants=Grants.none(lists, math.prod(slots) // lists) if self.fractional else None,
            episodes=Episodes.none(self.environments, self.capacity) if self.later else None,
            key=jax.random.key_data(key),
        )

    def add(
        self, buffers: Buffers, new: Array, added: Array, ratio: Array, augmentation: Augmentation | None
    ) -> Buffers:
        """Store rows of transitions, (environments, length, width), as the layout packs them.

        Each environment has stored `added` before. The capacity must be a multiple of the length, so that a
        write never wraps around.
        """
        length = new.shape[1]
        assert self.capacity % length == 0, f"capacity {self.capacity} is no multiple of {length}"
        start = added % self.capacity
        environment = jnp.arange(self.environments)[:, None]
        number = added + jnp.arange(length)[None, :]

        if buffers.grants is not None:
            grants = self._granted(buffers, self._over(new), environment, number, ratio)
            buffers = buffers._replace(grants=grants)
        if buffers.episodes is not None:
            buffers = buffers._replace(episodes=buffers.episodes.added(self._over(new), number))
        rows = jax.lax.dynamic_update_slice(buffers.observed, new, (0, start, 0))
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
        regular = copies.whole(ratio) * self._augmentable(buffers, added).sum()
        return regular if buffers.grants is None else regular + buffers.grants.held.sum()

    def augmented_total(self, buffers: Buffers, added: Array, ratio: Array) -> Array:
        """Augmented transitions generated since the start, as a float: the count may be infinite."""
        shown = added * self.environments if buffers.episodes is None else buffers.episodes.before.sum()
        regular = jnp.where(shown > 0, jnp.floor(ratio) * shown.astype(jnp.float32), 0)
        return regular if buffers.grants is None else regular + buffers.grants.ready.sum().astype(jnp.float32)

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
        any_copy = jax.random.bits(key, copy.shape, jnp.uint32)  # one of copies.ENDLESS
        copy = jnp.where(jnp.isinf(ratio), any_copy, copy)
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
        """The augmented transitions at these positions, from the observed ones.

        Storing goes through here too: gathered from the ring along one flat axis, the compiler always has
        the same task. Over other axes, or fused with what made the transitions, the same arithmetic may
        differ in the last bit.
        """
        shape = copy.shape
        environment, position, copy = (places.reshape(-1) for places in (environment, position, copy))
        observed = self.layout.unpack(buffers.observed[environment, position])
        number = number_at(position, added, self.capacity)
        identity = copies.identity(number, environment, self.environments)
        later = self._later_goals(buffers, environment, position, number, identity, copy)
        keys = copies.keys(_root(buffers), identity, copy)
        augmented = jax.vmap(partial(copies.copy_of, augmentation))(keys, observed, later)
        return jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), augmented)

    def _later_goals(
        self,
        buffers: Buffers,
        environment: Array,
        position: Array,
        number: Array,
        identity: Array,
        copy: Array,
    ) -> dict[str, Array]:
        """What was achieved later in the episodes of these transitions, as their copies read it."""
        if buffers.episodes is None:
            return {}
        remaining = jnp.maximum(buffers.episodes.remaining(environment, position, number), 0)
        columns = self.layout.columns_of(lambda row: row.next_observation["achieved_goal"])
        goals = {}
        for goal in self.later:
            ahead = copies.steps_ahead(goal, _root(buffers), identity, copy, remaining)
            goals[goal] = buffers.observed[environment, (position + ahead) % self.capacity, columns]
        return goals

    def _augmentable(self, buffers: Buffers, added: Array) -> Array:
        """How many transitions of each environment R̃ holds copies of."""
        size = self.size(added)
        held = jnp.full(self.environments, size)
        if buffers.episodes is not None:  # without the running episode's
            held = jnp.maximum(buffers.episodes.before - (added - size), 0)
        return held.astype(jnp.uint32)

    def _place(
        self, buffers: Buffers, added: Array, ratio: Array, index: Array
    ) -> tuple[Array, Array, Array]:
        """Where the transitions of R̃ come from: environment, position in its ring, and which copy."""
        size, whole = self.size(added), copies.whole(ratio)
        row, copy = index // jnp.maximum(whole, 1), index % jnp.maximum(whole, 1)
        environment, position = divided(row, self._augmentable(buffers, added))
        if self.later:  # the oldest first
            position = (position + added - size) % self.capacity
        if buffers.grants is not None:
            regular = whole * self._augmentable(buffers, added).sum()
            slot = buffers.grants.at(index - regular)
            environment = jnp.where(index < regular, environment, slot // self.capacity)
            position = jnp.where(index < regular, position, slot % self.capacity)
            copy = jnp.where(index < regular, copy, whole)
        return environment, position, copy

    def _over(self, rows: Array) -> Array:
        """Which of these transitions end their episode."""
        ends = [self.layout.columns_of(pick) for pick in (attrgetter("terminated"), attrgetter("truncated"))]
        return jnp.concatenate([rows[..., columns] for columns in ends], -1).any(-1)

    def _granted(
        self, buffers: Buffers, over: Array, environment: Array, number: Array, ratio: Array
    ) -> Grants:
        """After a coin for each of the new transitions, and without those that they overwrite."""
        assert buffers.grants is not None
        certain = copies.certain_every(self.capacity, looking_ahead=bool(self.later))

        def granted(number: Array) -> Array:
            return copies.has_extra(_root(buffers), ratio, number, environment, self.environments, certain)

        def by_list(values: Array) -> Array:  # in order of time
            return values if self.later else values.T.reshape(1, -1)

        slots = environment * self.capacity + number % self.capacity
        ready = over if self.later else jnp.ones_like(over)
        columns = (granted(number), slots, ready, granted(number - self.capacity))
        return buffers.grants.added(*map(by_list, columns))


def number_at(position: Any, added: Any, capacity: int) -> Any:
    """Which of its environment's transitions stands at a position of a ring, of the `added` so far."""
    return added - 1 - (added - 1 - position) % capacity


def _root(buffers: Buffers) -> Key:
    return jax.random.wrap_key_data(buffers.key)
