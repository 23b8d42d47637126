"""Relabelling goals, for observations with `observation`, `achieved_goal` and `desired_goal`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from augury.augmentations.base import augmentation, describe
from augury.errors import UserError, unknown_name
from augury.pytrees import static
from augury.transition import Array, Key, Transition

Strategy = Literal["future", "final"]
GoalFunction = Callable[[Any, Any, Any], Any]
"""`compute_reward(achieved_goal, desired_goal, info)`, as goal environments of Gymnasium-Robotics have it."""

LATER_GOALS = ("future_achieved_goal", "final_achieved_goal")
"""Extras that no environment gives: a buffer that tracks episodes reads them off a finished one."""


@augmentation
class Hindsight:
    """Pretend that a goal achieved later in the episode was the one desired (HER).

    `future` takes the goal achieved by this step or any later one, each equally likely; `final` that of the
    last step. Reward is recomputed; termination too where `compute_terminated` is given, else it stays.
    """

    compute_reward: GoalFunction = static()
    strategy: Strategy = static(default="future")
    compute_terminated: GoalFunction | None = static(default=None)

    def __post_init__(self) -> None:
        if self.strategy not in ("future", "final"):
            raise unknown_name("strategy", self.strategy, ("future", "final"))
        _check_takes_goals("compute_reward", self.compute_reward)
        if self.compute_terminated is not None:
            _check_takes_goals("compute_terminated", self.compute_terminated)

    def __repr__(self) -> str:
        return f"hindsight({describe(self.compute_reward)}, {self.strategy!r})"

    @property
    def needs(self) -> tuple[str, ...]:
        return (f"{self.strategy}_achieved_goal",)

    def __call__(self, key: Key, transition: Transition) -> Transition:
        goal = transition.extras[self.needs[0]]
        achieved = transition.next_observation["achieved_goal"]
        terminated = transition.terminated
        if self.compute_terminated is not None:
            terminated = _evaluate(self.compute_terminated, achieved, goal, terminated.dtype)
        reward = _evaluate(self.compute_reward, achieved, goal, transition.reward.dtype)
        return relabelled(transition, goal, reward, terminated)


def hindsight(
    compute_reward: GoalFunction,
    strategy: Strategy = "future",
    compute_terminated: GoalFunction | None = None,
) -> Hindsight:
    """Relabel with goals achieved later. The functions may be JAX or NumPy, for one row or for many."""
    return Hindsight(compute_reward, strategy, compute_terminated)


def relabelled(transition: Transition, goal: Array, reward: Array, terminated: Array) -> Transition:
    """The transition as it is with another goal."""
    return transition._replace(
        observation={**transition.observation, "desired_goal": goal},
        reward=reward.astype(transition.reward.dtype),
        next_observation={**transition.next_observation, "desired_goal": goal},
        terminated=terminated.astype(transition.terminated.dtype),
    )


def _check_takes_goals(name: str, function: GoalFunction) -> None:
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        raise UserError(f"hindsight: {name} must take achieved goal, desired goal and info") from None


def _evaluate(function: GoalFunction, achieved: Array, goal: Array, dtype: Any) -> Array:
    """`function` of one transition: traced where JAX can, else called on the host with many rows at once."""
    try:
        return jnp.asarray(function(achieved, goal, {})).astype(dtype)
    except Exception:  # NumPy asked a tracer for its numbers; any other fault shows on the host again
        return jax.pure_callback(
            partial(_on_host, function, dtype, achieved.ndim),
            jax.ShapeDtypeStruct((), dtype),
            achieved,
            goal,
            vmap_method="broadcast_all",
        )


def _on_host(function: GoalFunction, dtype: Any, rank: int, achieved: Any, goal: Any) -> np.ndarray[Any, Any]:
    achieved, goal = np.asarray(achieved), np.asarray(goal)
    if achieved.ndim == rank:
        return np.asarray(function(achieved, goal, {})).astype(dtype).reshape(())
    rows = len(achieved)
    ends = [np.asarray(function(achieved[row], goal[row], {})).reshape(()) for row in (0, rows - 1)]
    try:
        together = np.asarray(function(achieved, goal, [{}] * rows))
        if together.shape == (rows,) and (together[[0, -1]] == ends).all():
            return together.astype(dtype)
    except Exception:  # anything may go wrong in a function that was written for a single row
        pass
    return np.array([function(a, g, {}) for a, g in zip(achieved, goal, strict=True)]).astype(dtype)
