"""What the Panda environments have in common for the trainer, whichever simulator runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict

from augury.envs.base import Measure, RunsIn
from augury.envs.panda import settings
from augury.envs.panda.goals import GOAL_TASKS, GoalTask, PositionTask
from augury.envs.panda.settings import Bounds
from augury.transition import Array, Key, Transition

SPACE_LIMIT = 10.0
"""panda-gym declares that no observation goes beyond ±10."""

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PandaEnvironment:
    """A task by its goals: spaces, bounds, training settings, success."""

    goals: GoalTask

    horizon: ClassVar[int] = settings.HORIZON
    runs_in: ClassVar[RunsIn] = "host"
    action_count: ClassVar[None] = None
    measure: ClassVar[Measure] = "success"

    @property
    def all_goals(self) -> GoalTask:
        """The goals that relabelling draws from: all of the task's, also where it sets only a part itself."""
        return GOAL_TASKS[settings.task_name(self.goals)]

    @property
    def training(self) -> Mapping[str, Any]:
        return settings.TRAINING[settings.task_name(self.goals)]

    def succeeded(self, transition: Transition) -> Array:
        """Whether transitions reach the goal that they desire."""
        after = transition.next_observation
        return self.goals.succeeded(after["achieved_goal"], after["desired_goal"])

    def is_possible(self, observation: Any) -> Any:
        """Whether what is desired can be a goal at all."""
        return self.goals.is_goal(observation["desired_goal"])

    def sets_goal(self, observation: Any) -> Any:
        """Whether an episode may have this goal."""
        return self.goals.sets(observation["desired_goal"])

    def sample_transition(self, key: Key) -> Transition:
        """A transition to relabel, in JAX: its object lies where a goal might be. The rest is blank."""
        start_key, action_key, _ = jax.random.split(key, 3)
        achieved = self.all_goals.goal(jax.random.uniform(start_key, (self.all_goals.draws,)))
        if isinstance(self.all_goals, PositionTask):
            achieved = achieved.at[2].set(self.all_goals.low[2])
        low, high = jnp.asarray(self.action_low), jnp.asarray(self.action_high)
        action = jax.random.uniform(action_key, low.shape, minval=low, maxval=high)
        observation = {name: jnp.zeros_like(part) for name, part in self.observation_low.items()}
        observation["achieved_goal"] = achieved
        no = jnp.zeros((), bool)
        return Transition(observation, action, jnp.float32(0), observation, no, no, {})

    @property
    def observation_space(self) -> Dict:
        sizes = {"observation": len(settings.table(self.goals))}
        sizes |= {"achieved_goal": self.goals.goal_size, "desired_goal": self.goals.goal_size}
        return Dict(
            {name: Box(-SPACE_LIMIT, SPACE_LIMIT, (size,), np.float32) for name, size in sizes.items()}
        )

    @property
    def action_space(self) -> Box:
        return Box(self.action_low, self.action_high)

    @property
    def action_low(self) -> Vector:
        return -self.action_high

    @property
    def action_high(self) -> Vector:
        return np.ones(settings.action_size(self.goals), np.float32)

    @property
    def table(self) -> Mapping[str, Sequence[settings.Component]]:
        """What each number of the entry `observation` is."""
        return {"observation": settings.table(self.goals)}

    @property
    def observation_low(self) -> Bounds:
        """Lower bound for measuring coverage; observations may go beyond it."""
        return self._bounds[0]

    @property
    def observation_high(self) -> Bounds:
        return self._bounds[1]

    @cached_property
    def _bounds(self) -> tuple[Bounds, Bounds]:
        return settings.bounds(self.goals)
