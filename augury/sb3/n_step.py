"""n-step returns of augmented transitions: copies of whole stretches of an episode.

A stretch is a transition and up to n - 1 that follow it, to the end of its episode or to the newest one. All
of them are augmented with the key of the first. So an augmentation that acts on each transition alike, such
as a reflection or one new goal, makes a stretch of another episode. One that does not is found out: its
copies do not join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from stable_baselines3.common.vec_env import VecNormalize

from augury.errors import UserError
from augury.replay.episodes import Integers
from augury.sb3.samples import Rows, as_samples
from augury.transition import Transition

if TYPE_CHECKING:
    from augury.sb3.buffer import AugmentedReplayBuffer

JOINED = 1e-4
"""By how much two observations of the same moment may differ, as a part of their size: rounding."""


class Stretches(NamedTuple):
    """Stretches of episodes, one row each."""

    transitions: Transition
    """(rows, n) of them."""
    counts: Rows
    """Which of them belong to the stretch: (rows, n)."""


def slots_of(buffer: AugmentedReplayBuffer, slot: Integers, environment: Integers) -> tuple[Integers, Rows]:
    """The slots of the n transitions from each of these on, and which of them belong to its stretch."""
    slots = (slot[:, None] + np.arange(buffer.n_steps)) % buffer.buffer_size
    newest = (buffer.pos - 1) % buffer.buffer_size
    environments = environment[:, None]
    over = buffer.dones[slots, environments] + buffer.timeouts[slots, environments] > 0
    over |= slots == newest
    # A run that is continued resets its environments in the middle of episodes, which nothing else shows.
    observations, following = (ring[slots, environments] for ring in _rings(buffer))
    continued = (following[:, :-1] == observations[:, 1:]).reshape(*slots[:, 1:].shape, -1)
    over[:, :-1] |= ~continued.all(2)
    return slots, _until_first(over)


def check_joined(name: str, stretches: Stretches) -> None:
    """Each copy must begin where the one before it ends."""
    together = stretches.counts[:, :-1] & stretches.counts[:, 1:]
    if not together.any():  # each is a single transition
        return
    observation, following = stretches.transitions.observation, stretches.transitions.next_observation
    ends, starts = (
        np.concatenate(
            [rows[:, part][together].reshape(together.sum(), -1) for rows in jax.tree.leaves(seen)], 1
        )
        for seen, part in ((following, slice(None, -1)), (observation, slice(1, None)))
    )
    apart = ~np.isclose(ends, starts, rtol=JOINED, atol=JOINED * np.abs(starts).max(0, initial=0))
    if apart.any():
        row, number = np.argwhere(apart)[0]
        raise UserError(
            f"{name}: cannot augment n-step returns: with one key, copies of consecutive transitions must be "
            f"consecutive, but number {number} of a next observation is {ends[row, number]:g}, and of the "
            f"observation that follows {starts[row, number]:g}; use n_steps=1"
        )


def as_n_step_samples(buffer: AugmentedReplayBuffer, stretches: Stretches, env: VecNormalize | None) -> Any:
    """Rows as SB3's NStepReplayBuffer hands them to a learner."""
    every = stretches.transitions
    counts = stretches.counts & _until_first(every.terminated | every.truncated)
    index, last = np.arange(len(counts)), counts.sum(1) - 1
    first: Transition = jax.tree.map(lambda rows: rows[:, 0], every)
    end: Transition = jax.tree.map(lambda rows: rows[index, last], every)
    samples = as_samples(
        buffer, end._replace(observation=first.observation, action=first.action, extras={}), env
    )
    rewards = buffer._normalize_reward(np.asarray(every.reward, buffer.rewards.dtype), env)
    discounts = buffer.gamma ** np.arange(buffer.n_steps, dtype=np.float32)
    return samples._replace(
        rewards=buffer.to_torch((rewards * discounts * counts).sum(1, keepdims=True)),
        discounts=buffer.to_torch(buffer.gamma ** counts.sum(1, keepdims=True).astype(np.float32)),
    )


def _rings(buffer: AugmentedReplayBuffer) -> tuple[Rows, Rows]:
    """Observations and next ones; arrays, because SB3 has no n-step returns for dicts."""
    return buffer.observations, buffer.next_observations


def _until_first(over: Any) -> Rows:
    """Which steps come before the first that is over, or are that one: (rows, n)."""
    return np.cumsum(over, 1) - over == 0
