"""Between the rows that SB3 keeps and transitions in the environment's units."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

import numpy as np
import torch as th
from gymnasium import Space, spaces
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from augury.replay.episodes import Integers
from augury.transition import Transition

if TYPE_CHECKING:
    from augury.sb3.buffer import AugmentedReplayBuffer

Rows = Any  # a NumPy array; a transition's fields are annotated as JAX's


def parts_of(observation_space: Space[Any]) -> list[Space[Any]]:
    """The spaces of a dict by name, in JAX's order of its arrays; any other space is its own only part."""
    if isinstance(observation_space, spaces.Dict):
        return [observation_space[name] for name in sorted(observation_space.spaces)]
    return [observation_space]


def needs_64_bits(observation_space: Space[Any]) -> bool:
    """Whether 32 bits would round observations. Categories, which SB3 keeps as int64, fit into 32."""
    return any(
        isinstance(part, spaces.Box) and (part.dtype == np.float64 or not _fits_int32(part))
        for part in parts_of(observation_space)
    )


def _fits_int32(space: spaces.Box) -> bool:
    limits = np.iinfo(np.int32)
    whole = space.dtype.kind in "iu"
    return not whole or bool((space.low >= limits.min).all() and (space.high <= limits.max).all())


def as_shown(buffer: AugmentedReplayBuffer, observations: Any) -> Any:
    """Observations as the environment shows them: SB3 keeps the channels of images in front."""
    return _map_some(lambda rows: np.moveaxis(rows, 1, -1), observations, buffer.moved_channels)


def _as_moved(buffer: AugmentedReplayBuffer, observations: Any) -> Any:
    return _map_some(lambda rows: np.moveaxis(rows, -1, 1), observations, buffer.moved_channels)


def observed_at(buffer: AugmentedReplayBuffer, slot: Integers, environment: Integers) -> Transition:
    """The transitions that stand there, observations and actions as the environment showed and took them."""

    def rows(ring: Rows, space: Any) -> Rows:
        return ring[slot, environment].reshape(-1, *space.shape)

    action = rows(buffer.actions, buffer.action_space)
    if isinstance(buffer.action_space, spaces.Box):  # SB3 keeps these scaled to [-1, 1]
        centre, half_width = _centre_and_half_width(buffer.action_space)
        action = centre + half_width * action
    done: Rows = buffer.dones[slot, environment] > 0
    timeout: Rows = buffer.timeouts[slot, environment] > 0
    reward: Rows = buffer.rewards[slot, environment]
    return Transition(
        observation=as_shown(buffer, _map(rows, buffer.observations, buffer.observation_space)),
        action=action,
        reward=reward,
        next_observation=as_shown(buffer, _map(rows, buffer.next_observations, buffer.observation_space)),
        terminated=done & ~timeout,
        truncated=timeout,
        extras={},
    )


def as_samples(buffer: AugmentedReplayBuffer, transitions: Transition, env: VecNormalize | None) -> Any:
    """Rows as SB3 hands them to a learner: actions scaled, observations and rewards normalised."""
    action = transitions.action
    if isinstance(buffer.action_space, spaces.Box):
        centre, half_width = _centre_and_half_width(buffer.action_space)
        action = np.clip((action - centre) / half_width, -1, 1)  # rounding may have led outside

    def observations(values: Any, rings: Any) -> Any:
        stored = _map(_as_stored, _as_moved(buffer, values), rings)
        return _map(buffer.to_torch, buffer._normalize_obs(stored, env))

    reward = _as_stored(transitions.reward, buffer.rewards)[:, None]
    several = isinstance(buffer.observation_space, spaces.Dict)
    return (DictReplayBufferSamples if several else ReplayBufferSamples)(
        observations=observations(transitions.observation, buffer.observations),
        actions=buffer.to_torch(_as_stored(action, buffer.actions)),
        next_observations=observations(transitions.next_observation, buffer.next_observations),
        # An episode that was truncated would have gone on: only termination ends the return.
        dones=buffer.to_torch(_as_stored(transitions.terminated, buffer.dones)[:, None]),
        rewards=buffer.to_torch(buffer._normalize_reward(reward, env)),
    )


def joined(observed: Any, augmented: Any, is_augmented: Rows) -> Any:
    """Observed and augmented rows together; `is_augmented` says which of the two each row is."""
    place: Rows = None  # of each row, where the observed ones stand first
    if (is_augmented[1:] < is_augmented[:-1]).any():
        place = np.argsort(np.argsort(is_augmented, kind="stable"))

    def join(first: Any, second: Any) -> Any:
        if isinstance(first, dict):
            return {key: join(first[key], second[key]) for key in first}
        both = th.cat((first, second))
        return both if place is None else both[th.as_tensor(place, device=both.device)]

    pairs = zip(observed, augmented, strict=True)
    return type(observed)(*(None if first is None else join(first, second) for first, second in pairs))


def _map(function: Callable[..., Any], values: Any, *others: Any) -> Any:
    """`function` of an array, or of every entry of a dict of arrays."""
    if isinstance(values, dict):
        return {key: function(values[key], *(other[key] for other in others)) for key in values}
    return function(values, *others)


def _map_some(function: Callable[[Rows], Rows], values: Any, entries: Container[str]) -> Any:
    """`function` of these entries of a dict, or of an array where "" is one of them."""
    if isinstance(values, dict):
        return {key: function(rows) if key in entries else rows for key, rows in values.items()}
    return function(values) if "" in entries else values


def _as_stored(rows: Rows, ring: Rows) -> Rows:
    """Rows with the shape and dtype that SB3 keeps them in."""
    return rows.reshape(-1, *ring.shape[2:]).astype(ring.dtype)


def _centre_and_half_width(space: spaces.Box) -> tuple[Rows, Rows]:
    return (space.high + space.low) / 2, (space.high - space.low) / 2
