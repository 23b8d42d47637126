"""What the verifier asks of a simulator, and what simulators share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
import numpy.typing as npt

from augury.envs.actions import action_bounds, blank_action, random_actions
from augury.envs.mujoco.quantities import Quantity
from augury.errors import UserError
from augury.transition import Observation, Transition

Rows = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
Policy = Callable[[Any], npt.ArrayLike]
"""Actions for a batch of observations."""

ROUNDING = 1e-5
"""How far outside of bounds is still on them, in widths where they are wider than 1."""
COLLECTING = 100
"""Environments in which transitions are collected side by side."""
PLAYING = 16
"""The same for whole episodes, at least: so many episodes there are."""


class Answer(NamedTuple):
    """The simulator's own step."""

    next_observation: Observation
    reward: Rows
    terminated: Flags
    extras: dict[str, npt.NDArray[Any]]
    observation: Observation | None = None
    """Of the restored state; None where it is certainly the given one."""
    raised: str | None = None
    """What the environment raised in some row instead of an answer, which is NaN there."""


class Played(NamedTuple):
    """Observed transitions of whole episodes, in rows."""

    transition: Transition
    episode: Indices
    """Which episode each is of."""
    remaining: Indices
    """How many follow in it."""

    def rows(self, chosen: Any) -> Played:
        """Some of them."""
        picked: Played = jax.tree.map(lambda leaf: leaf[chosen], self)
        return picked


class Bounds(NamedTuple):
    """Between which numbers lie."""

    low: Rows
    high: Rows

    def beyond(self, values: Rows) -> Rows:
        """By how much each value lies outside; what rounding explains does not count."""
        width = self.high - self.low
        margin = ROUNDING * np.maximum(1, np.where(np.isfinite(width), width, 1))
        return np.maximum(np.maximum(self.low - values, values - self.high) - margin, 0)


class Judged:
    """What an environment of ours, or anybody's, may know about its own world."""

    environment: Any
    observation_bounds: Bounds | None = None
    observes_a_number = False

    @property
    def choices(self) -> int | None:
        count: int | None = self.environment.action_count
        return count

    @property
    def model(self) -> Any:
        return getattr(self.environment, "model", None)

    @property
    def goals(self) -> bool:
        return has_goals(self.environment)

    @property
    def action_shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = blank_action(self.environment).shape
        return shape

    @property
    def action_bounds(self) -> Bounds | None:
        if self.environment.action_count is not None:
            return Bounds(np.zeros(1), np.array([self.environment.action_count - 1.0]))
        return Bounds(*(np.asarray(end, float) for end in action_bounds(self.environment)))

    def is_possible(self, observation: Observation) -> Any:
        return self._judged("is_possible", observation)

    def sets_goal(self, observation: Observation) -> Any:
        return self._judged("sets_goal", observation)

    def _judged(self, method: str, observation: Observation) -> Any:
        judge = getattr(self.environment, method, None)
        return True if judge is None else np.asarray(judge(observation))


class Source(Protocol):
    """Where observed transitions come from."""

    name: str

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        """Transitions under random actions, or a policy's; in rows. Most are of an episode's first steps."""


class Simulator(Source, Protocol):
    """What the verifier asks of an environment."""

    table: tuple[Quantity, ...]
    """What each observed number is; of a dict, each number of its entries side by side."""
    single_precision: bool
    """Whether it computes or observes with 32 bits."""

    @property
    def observes_a_number(self) -> bool:
        """Whether the environment shows a whole number, which is a vector of one here."""

    @property
    def choices(self) -> int | None:
        """How many actions there are, where they are whole numbers from 0 on."""

    @property
    def model(self) -> Any:
        """Of MuJoCo; None where there is none."""

    @property
    def goals(self) -> bool:
        """Whether hindsight can relabel what is observed."""

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Of one action."""

    @property
    def action_bounds(self) -> Bounds | None:
        """None where there are none."""

    @property
    def observation_bounds(self) -> Bounds | None:
        """Of flat rows."""

    def play(self, samples: int, policy: Policy | None, seed: int) -> Played:
        """At least so many transitions, of whole episodes: under a policy, or in several ways."""

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        """Restore every row, step, and observe."""

    def in_contact(self, transition: Transition) -> Flags | None:
        """Which transitions begin or end touching something; None where that is not known."""

    def at_limit(self, transition: Transition) -> Flags | None:
        """Which begin or end with a joint at its limit; None where that is not known."""

    def is_possible(self, observation: Observation) -> Any:
        """Which rows can be observed at all; True where that is not known."""

    def sets_goal(self, observation: Observation) -> Any:
        """Which rows show a goal that the task sets; True where that is not known."""


def has_goals(environment: Any) -> bool:
    """Whether hindsight can relabel what an environment observes."""
    low = environment.observation_low
    return isinstance(low, Mapping) and "achieved_goal" in low


def abreast(environment: Any, samples: int) -> int:
    """How many copies of an environment collect this many transitions.

    With goals they are few enough to play whole episodes, which hindsight reads.
    """
    return min(COLLECTING, -(-samples // environment.horizon) if has_goals(environment) else samples)


def playing(environment: Any, samples: int) -> int:
    """The same for whole episodes: few enough to play long ones, enough to see different ones."""
    if has_goals(environment):
        return abreast(environment, samples)
    return min(COLLECTING, max(PLAYING, -(-samples // environment.horizon)), samples)


def actions_of(
    environment: Any, policy: Policy | None, observation: Observation, generator: np.random.Generator
) -> npt.NDArray[Any]:
    """A policy's actions for every row, else random ones; continuous ones in double precision."""
    if policy is None:
        return random_actions(environment, generator, len(jax.tree.leaves(observation)[0]))
    dtype = np.float64 if environment.action_count is None else np.int32
    return by_policy(policy, observation, blank_action(environment).shape).astype(dtype)


def by_policy(policy: Policy, observation: Observation, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """A policy's actions for every row, of this shape each."""
    actions, expected = np.asarray(policy(observation)), (len(jax.tree.leaves(observation)[0]), *shape)
    if actions.shape != expected:
        raise UserError(
            f"for {expected[0]} observations the policy must give actions of shape {expected}, "
            f"not {actions.shape}"
        )
    return actions


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
