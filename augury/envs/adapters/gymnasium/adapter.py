"""What a fleet trains on: an environment with Gymnasium's interface, by its id or by what makes it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv

from augury.envs.actions import blank_action
from augury.envs.adapters.defaults import TRAINING
from augury.envs.adapters.gymnasium import spaces
from augury.envs.adapters.gymnasium.making import limited, maker_of, time_limit
from augury.envs.adapters.gymnasium.seeded import SeededEngine
from augury.envs.adapters.gymnasium.share import Copies, reason
from augury.envs.adapters.gymnasium.vectors import VectorEngine
from augury.envs.adapters.gymnasium.workers import rows_of
from augury.envs.base import HostEngine, HostEnvironment
from augury.envs.mujoco.physics import available_cores
from augury.errors import UserError
from augury.references import describe, takes_argument

Source = str | Callable[..., Any]
TRIED_STEPS = 5
"""Steps that are taken to see which numbers the infos hold, and how long a step takes."""
WORTH_A_PROCESS = 3e-4
"""Seconds that a process must have to do in every step; a message to it and back takes about as long."""


@dataclass(frozen=True)
class GymnasiumEnvironment(HostEnvironment):
    """An environment with Gymnasium's interface, simulated on the host: see `from_gymnasium`."""

    source: Source
    """Its id, or the function that makes it."""
    name: str
    horizon: int
    processes: int | None = field(default=None, compare=False)

    def vector(self, count: int, *, autoreset: bool = True) -> HostEngine:
        """So many copies, a share of them in each process; or the source's vector environment."""
        if self._tried.is_vector:
            made = self.source(count)  # type: ignore[operator]
            if getattr(made, "num_envs", None) != count:
                raise UserError(f"{self.name} did not make {count} environments when asked to")
            return VectorEngine(self.name, made, horizon=self.horizon, autoreset=autoreset)
        copies = Copies(
            called=self.name,
            make=partial(limited, maker_of(self.source), self.horizon),
            observation_space=self._tried.observation_space,
            action_space=self._tried.action_space,
            extras=self.extras,
            autoreset=autoreset,
        )
        rows = rows_of(copies, count, self.processes or self._processes(count))
        action = blank_action(self)
        actions = np.zeros((count, self.horizon, *action.shape), action.dtype)
        return SeededEngine(rows, actions, extras=self.extras, autoreset=autoreset)

    def one(self) -> Any:
        """A single one, as Gymnasium has it."""
        if self._tried.is_vector:
            raise UserError(f"{self.name} makes vector environments: name a single one")
        return maker_of(self.source)()

    @property
    def observation_low(self) -> Any:
        return spaces.bounds(self._tried.observation_space)[0]

    @property
    def observation_high(self) -> Any:
        return spaces.bounds(self._tried.observation_space)[1]

    @property
    def action_count(self) -> int | None:
        """How many discrete actions there are; None where actions are vectors."""
        space = self._tried.action_space
        return int(space.n) if isinstance(space, Discrete) else None

    @property
    def action_low(self) -> npt.NDArray[np.float32]:
        return self._tried.action_space.low.ravel().astype(np.float32)

    @property
    def action_high(self) -> npt.NDArray[np.float32]:
        return self._tried.action_space.high.ravel().astype(np.float32)

    @property
    def training(self) -> Mapping[str, Any]:
        """Settings for continuous actions; those for discrete ones are the defaults of DQN."""
        return TRAINING if self.action_count is None else {}

    @property
    def extras(self) -> tuple[str, ...]:
        """The numbers in the info of a step; NaN in a step whose info lacks one."""
        return self._tried.extras

    @property
    def _tried(self) -> _Tried:
        return _tried(self.source, self.name)

    def _processes(self, count: int) -> int:
        """As many as there are cores, if each has enough to do."""
        return min(available_cores(), max(1, math.floor(count * self._tried.seconds / WORTH_A_PROCESS)))


def make(text: str) -> GymnasiumEnvironment:
    """The environment with this id."""
    return from_gymnasium(text)


def from_gymnasium(
    source: Source, *, name: str | None = None, horizon: int | None = None, processes: int | None = None
) -> GymnasiumEnvironment:
    """An environment with Gymnasium's interface, to train fleets on.

    `source` is an id; or a function without arguments that makes an environment; or one of the number of
    environments, which makes a vector environment of them. Episodes end after `horizon` steps; by default
    after those of the environment's TimeLimit. Copies run in so many `processes`; by default in as many as
    there are cores, if they are worth it. What is learnt does not depend on that.
    """
    called = name or (f"gymnasium:{source}" if isinstance(source, str) else describe(source))
    tried = _tried(source, called)
    limit = tried.limit if horizon is None else horizon
    if limit is None:
        raise UserError(
            f"{called} has no time limit: wrap it in gymnasium.wrappers.TimeLimit, register it with "
            "max_episode_steps, or use augury.from_gymnasium(…, horizon=…)"
        )
    if limit < 1 or (processes is not None and processes < 1):
        raise UserError(f"{called}: horizon and processes must be at least 1")
    return GymnasiumEnvironment(source, called, limit, processes)


class _Tried(NamedTuple):
    """What is known of an environment after a first look."""

    is_vector: bool
    observation_space: Any
    action_space: Any
    limit: int | None
    extras: tuple[str, ...] = ()
    seconds: float = 0.0
    """That a step takes."""


@lru_cache(maxsize=64)
def _tried(source: Source, called: str) -> _Tried:
    """Make an environment, once in this process, and look at it."""
    vectors = not isinstance(source, str) and takes_argument(source)
    try:
        env: Any = source(1) if vectors else maker_of(source)()  # type: ignore[operator]
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{called}: making it raised {reason(error)}") from error
    wanted: Any = VectorEnv if vectors else gymnasium.Env
    if not isinstance(env, wanted):
        raise UserError(f"{called} made {type(env).__name__}, which is no gymnasium {wanted.__name__}")
    try:
        if vectors:
            seen, acted = env.single_observation_space, env.single_action_space
            spaces.check_spaces(called, seen, acted)
            return _Tried(True, seen, acted, getattr(env.spec, "max_episode_steps", None))
        spaces.check_spaces(called, env.observation_space, env.action_space)
        return _Tried(False, env.observation_space, env.action_space, time_limit(env), *_first_steps(env))
    finally:
        with suppress(Exception):  # nothing is lost that way
            env.close()


def _first_steps(env: Any) -> tuple[tuple[str, ...], float]:
    """Names of the numbers that the infos of some steps hold, and how long a step takes.

    An environment that fails here is left alone: it will fail again in training, which says where.
    """
    infos, seconds = [], []
    try:
        env.action_space.seed(0)
        env.reset(seed=0)
        for _ in range(TRIED_STEPS):
            action, began = env.action_space.sample(), time.perf_counter()
            infos.append(env.step(action)[4])
            seconds.append(time.perf_counter() - began)
        names = tuple(name for name in infos[0] if all(_is_number(info.get(name)) for info in infos))
    except Exception:
        return (), 0.0
    return names, min(seconds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)
