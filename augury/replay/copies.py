"""What R̃ is: which augmented transitions follow from the observed ones. Fleet, drop-in and verifier ask here.

A root key and the observed transitions define R̃. Nothing else does: not the order in which copies are drawn,
nor whether they are stored.

    identity    transition i = number * environments + environment: the number-th one of that environment
    copy        copy k of transition i is augmentation(key, transition), its key folded from (i, k)
    m           a transition has the copies 0 … ⌊m⌋ - 1
    fraction    and copy ⌊m⌋, where the coin folded from (i, COIN) falls below m - ⌊m⌋
    m = ∞       a draw takes any of 2³² copies: practically always a new one
    looking     a copy may read goals achieved later in its episode. How far it looks ahead follows from
    ahead       (i, k) too, and it exists once the episode has ended

Functions take a JAX key and arrays; what is drawn does not depend on the width of floats.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from augury.augmentations import Augmentation
from augury.augmentations.goals import LATER_GOALS
from augury.transition import Array, Key, Transition

ENDLESS = 2**32
"""How many copies of a transition a draw may take where m = ∞."""

_COIN = np.uint32(2**32 - 1)
"""Folded in place of k: the coin that decides whether a fractional m grants one copy more."""
_AHEAD = np.uint32(2**32 - 1)
"""Folded in place of i, for another root: what an augmentation draws must not depend on the goal it reads."""


def identity(number: Any, environment: Any, environments: int) -> Any:
    """Which observed transition this is, among those of all environments; for NumPy's arrays and JAX's."""
    return (number * environments + environment).astype(np.uint32)


def keys(root: Key, identity: ArrayLike, copy: ArrayLike) -> Key:
    """The keys that define copies, for arrays that broadcast together."""
    fold = jax.random.fold_in
    i, k = jnp.broadcast_arrays(identity, jnp.asarray(copy).astype(jnp.uint32))
    folded = jax.vmap(lambda i, k: fold(fold(root, i), k))(i.reshape(-1), k.reshape(-1))
    return folded.reshape(i.shape)


def whole(ratio: Array) -> Array:
    """Copies that every transition has, ⌊m⌋; an infinite m counts as one, which is new at every draw."""
    return jnp.where(jnp.isinf(ratio), 1, jnp.floor(ratio)).astype(jnp.uint32)


def certain_every(capacity: int, looking_ahead: bool) -> int:
    """After how many transitions one is certain to have the extra copy, so that R̃ is never empty.

    A full ring holds one; two, where those of the running episode do not count.
    """
    return max(capacity // 2, 1) if looking_ahead else capacity


def has_extra(
    root: Key, ratio: Array, number: Array, environment: Array, environments: int, certain: int
) -> Array:
    """Which transitions have the extra copy of a fractional m; `certain` is `certain_every`."""
    coins = _uniform(keys(root, identity(number, environment, environments), _COIN))
    lucky = (coins < ratio % 1) | ((number % certain == 0) & (environment == 0))
    return (ratio % 1 > 0) & (number >= 0) & lucky


def steps_ahead(goal: str, root: Key, identity: ArrayLike, copy: ArrayLike, remaining: ArrayLike) -> Array:
    """How many steps after its own a copy reads this one of `LATER_GOALS`.

    The episode is over, and `remaining` steps follow in it. The final goal is that of its last step; the
    future goal that of any step from the copy's own to the last, each equally likely.
    """
    future, final = LATER_GOALS
    if goal == final:
        return jnp.asarray(remaining)
    assert goal == future
    drawn = keys(jax.random.fold_in(root, _AHEAD), identity, copy)
    return jax.vmap(lambda key, steps: jax.random.randint(key, (), 0, steps + 1, jnp.int32))(drawn, remaining)


def copy_of(
    augmentation: Augmentation, key: Key, observed: Transition, shown: dict[str, Array]
) -> Transition:
    """ONE copy. The augmentation also reads `shown`, extras such as later goals, which the copy drops."""
    augmented = augmentation(key, observed._replace(extras={**observed.extras, **shown}))
    return augmented._replace(extras={name: augmented.extras[name] for name in observed.extras})


def _uniform(keys: Key) -> Array:
    draw = partial(jax.random.uniform, dtype=jnp.float32)
    return jax.vmap(draw)(keys.reshape(-1)).reshape(keys.shape)
