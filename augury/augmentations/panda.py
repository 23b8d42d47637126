"""The augmentations of the Panda tasks: new goals. Reward and termination are the task's own functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from augury.augmentations.base import augmentation
from augury.augmentations.goals import Hindsight, Strategy, relabelled
from augury.envs.panda.goals import FAR_CANDIDATES, NEAR_DRAWS, GoalTask
from augury.errors import UserError
from augury.pytrees import static
from augury.transition import Array, Key, Transition


@augmentation
class TranslateGoal:
    """Put the goal where the task might have put it."""

    task: GoalTask = static()

    def __call__(self, key: Key, transition: Transition) -> Transition:
        achieved = _achieved(self.task, transition)
        goal = self.task.goal(jax.random.uniform(key, (self.task.draws,), achieved.dtype))
        return _judged(self.task, transition, goal)


@augmentation
class TranslateGoalProximal:
    """Put the goal where the step reaches it with probability p, and where it does not otherwise."""

    task: GoalTask = static()
    p: float | Array

    def __post_init__(self) -> None:
        if isinstance(self.p, float | int) and not 0 <= self.p <= 1:
            raise UserError(f"panda/translate-goal-proximal: p must lie in [0, 1], not {self.p}")

    def __call__(self, key: Key, transition: Transition) -> Transition:
        achieved = _achieved(self.task, transition)
        coin_key, near_key, far_key = jax.random.split(key, 3)
        near = self.task.near(jax.random.uniform(near_key, (NEAR_DRAWS,), achieved.dtype), achieved)
        candidates = jax.random.uniform(far_key, (FAR_CANDIDATES, self.task.draws), achieved.dtype)
        far = self.task.far(candidates, achieved)
        succeed = jax.random.bernoulli(coin_key, self.p)
        return _judged(self.task, transition, jnp.where(succeed, near, far))


def hindsight(task: GoalTask, strategy: Strategy = "future") -> Hindsight:
    """Pretend that a goal achieved later in the episode was the one desired (HER)."""
    return Hindsight(_Reward(task), strategy, _Success(task))


@dataclass(frozen=True, repr=False)
class _Reward:
    """A task's reward as goal environments have it; equal for equal tasks, so that programs are shared."""

    task: GoalTask

    def __repr__(self) -> str:
        return f"reward of {self.task}"

    def __call__(self, achieved: Any, desired: Any, info: Any) -> Any:
        return self.task.reward(achieved, desired)


@dataclass(frozen=True)
class _Success:
    """The same for its termination."""

    task: GoalTask

    def __call__(self, achieved: Any, desired: Any, info: Any) -> Any:
        return self.task.succeeded(achieved, desired)


def _judged(task: GoalTask, transition: Transition, goal: Array) -> Transition:
    """The transition with this goal, and what the task says of it."""
    achieved = transition.next_observation["achieved_goal"]
    return relabelled(transition, goal, task.reward(achieved, goal), task.succeeded(achieved, goal))


def _achieved(task: GoalTask, transition: Transition) -> Array:
    """What the step achieved, after a check that these are transitions of the task."""
    following = transition.next_observation
    if not (isinstance(following, dict) and {"achieved_goal", "desired_goal"} <= following.keys()):
        raise UserError(
            f"goals of {task} can be changed where observations hold achieved_goal and desired_goal"
        )
    achieved = following["achieved_goal"]
    if achieved.shape != (task.goal_size,):
        raise UserError(f"goals of {task} have shape {(task.goal_size,)}, not {achieved.shape}")
    return achieved
