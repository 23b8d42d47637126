"""What the verifier asks of a simulator, and what simulators share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
import numpy.typing as npt

from augury.envs.actions import random_actions
from augury.envs.mujoco.quantities import Quantity
from augury.transition import Observation, Transition

Rows = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Policy = Callable[[Any], npt.ArrayLike]
"""Actions for a batch of observations."""

COLLECTING = 100
"""Environments in which transitions are collected side by side."""


class Answer(NamedTuple):
    """The simulator's own step."""

    next_observation: Observation
    reward: Rows
    terminated: Flags
    extras: dict[str, npt.NDArray[Any]]
    observation: Observation | None = None
    """Of the restored state; None where it is certainly the given one."""


class Source(Protocol):
    """Where observed transitions come from."""

    name: str

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        """Transitions under random actions, or a policy's; in rows."""


class Simulator(Source, Protocol):
    """What the verifier asks of an environment."""

    table: tuple[Quantity, ...]
    """What each observed number is; of a dict, each number of its entries side by side."""
    single_precision: bool
    """Whether it computes or observes with 32 bits."""

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        """Restore every row, step, and observe."""

    def in_contact(self, transition: Transition) -> Flags | None:
        """Which transitions begin or end touching something; None where that is not known."""


def has_goals(environment: Any) -> bool:
    """Whether hindsight can relabel what an environment observes."""
    low = environment.observation_low
    return isinstance(low, Mapping) and "achieved_goal" in low


def abreast(environment: Any, samples: int) -> int:
    """How many copies of an environment collect this many transitions.

    With goals they are few enough to play whole episodes, which hindsight reads.
    """
    return min(COLLECTING, -(-samples // environment.horizon) if has_goals(environment) else samples)


def actions_of(
    environment: Any, policy: Policy | None, observation: Observation, generator: np.random.Generator
) -> npt.NDArray[Any]:
    """A policy's actions for every row, else random ones; continuous ones in double precision."""
    if policy is None:
        return random_actions(environment, generator, len(jax.tree.leaves(observation)[0]))
    return np.asarray(policy(observation), np.float64 if environment.action_count is None else np.int32)


def rows(*fields: Any) -> Transition:
    """A transition of NumPy arrays."""
    return Transition(*fields)


def joined(parts: Sequence[Transition], samples: int | None = None) -> Transition:
    """One transition with `samples` rows, or all."""
    together: Transition = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:samples], *parts)
    return together


def numbers(info: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The numbers and arrays of numbers of an info, which are what a transition can carry along."""
    found = {name: np.array(value) for name, value in info.items() if not isinstance(value, dict)}
    return {name: value for name, value in found.items() if value.dtype.kind in "biuf"}


def shared(infos: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names that all of them have."""
    return sorted(set.intersection(*(set(info) for info in infos)))
