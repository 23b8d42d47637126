"""Tasks of gymnax inside the compiled trainer: `gymnax:Pendulum-v1`, `gymnax:CartPole-v1`.

A task is stepped by gymnax's `step_env`, which does not reset: the trainer does, and keeps the final
observation. gymnax's time limit is the horizon here and truncates. Until 1.0 gymnax counts it as termination
(`done`), so there the step is asked a second time, without the limit; the compiler merges what both share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from augury.envs.adapters.jax_packages import (
    Bound,
    PackagedEnvironment,
    finite,
    imported,
    known,
    loaded,
    settled,
    vector,
)
from augury.errors import UserError
from augury.transition import Array, Key

_NO_LIMIT = 2**31 - 1


class Observed(NamedTuple):
    """gymnax's state and what was observed of it, which can be random."""

    inner: Any
    observation: Array


class _Task(NamedTuple):
    """What gymnax makes of a name."""

    task: Any
    params: Any
    without_limit: Any
    """The parameters with a time limit that is never reached."""
    limit_is_apart: bool
    """Whether `step_env` leaves it to others to end an episode at the limit, as it does since 1.0."""


@dataclass(frozen=True)
class GymnaxEnvironment(PackagedEnvironment):
    """A task of gymnax with its default parameters. Images and tables are observed as vectors."""

    task: str

    @property
    def name(self) -> str:
        return f"gymnax:{self.task}"

    @property
    def horizon(self) -> int:
        return int(self._made.params.max_steps_in_episode)

    @property
    def observation_low(self) -> Bound:
        return self._observation_bounds[0]

    @property
    def observation_high(self) -> Bound:
        return self._observation_bounds[1]

    @property
    def action_count(self) -> int | None:
        """How many actions there are, where they are discrete."""
        count = getattr(self._action_space, "n", None)
        return None if count is None else int(count)

    @property
    def action_low(self) -> Bound:
        return self._action_bounds[0]

    @property
    def action_high(self) -> Bound:
        return self._action_bounds[1]

    def reset(self, key: Key) -> Observed:
        made = self._made
        observation, inner = made.task.reset_env(key, made.params)
        return Observed(settled(inner), vector(observation))

    def observe(self, state: Observed) -> Array:
        return state.observation

    def step(self, key: Key, state: Observed, action: Array) -> tuple[Observed, Array, Array]:
        made = self._made
        observation, inner, reward, done, _ = made.task.step_env(key, state.inner, action, made.params)
        if not made.limit_is_apart:
            _, _, _, done, _ = made.task.step_env(key, state.inner, action, made.without_limit)
        following = Observed(settled(inner, state.inner), vector(observation))
        return following, vector(reward)[0], jnp.asarray(done, bool)

    @property
    def _made(self) -> _Task:
        return _made(self.task)

    @property
    def _observation_bounds(self) -> tuple[Bound, Bound]:
        with jax.ensure_compile_time_eval():
            space = self._made.task.observation_space(self._made.params)
        if hasattr(space, "n"):
            return finite(0, max(int(space.n) - 1, 1), space.shape)
        if not hasattr(space, "low"):
            raise UserError(f"{self.name} observes {type(space).__name__}: only arrays can be learned from")
        return finite(space.low, space.high, space.shape)

    @property
    def _action_space(self) -> Any:
        with jax.ensure_compile_time_eval():  # some make their bounds with JAX, whatever program asks
            return self._made.task.action_space(self._made.params)

    @property
    def _action_bounds(self) -> tuple[Bound, Bound]:
        space = self._action_space
        return finite(space.low, space.high, space.shape)


def make(task: str) -> GymnaxEnvironment:
    """The task of this name, `Pendulum-v1` say."""
    gymnax = imported("gymnax", "gymnax", "gymnax")
    return GymnaxEnvironment(known(task, gymnax.registered_envs, "gymnax"))


@lru_cache(maxsize=64)
def _made(task: str) -> _Task:
    gymnax = imported("gymnax", "gymnax", "gymnax")
    environment, params = loaded(f"gymnax:{task}", lambda: gymnax.make(task))
    limit = type(params.max_steps_in_episode)(_NO_LIMIT)
    return _Task(
        environment,
        params,
        params.replace(max_steps_in_episode=limit),
        limit_is_apart=hasattr(environment, "is_truncated"),
    )
