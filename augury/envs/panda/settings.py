"""The Panda tasks' observations, action sizes and training settings, whichever simulator runs them.

Tasks are named as in `goals.GOAL_TASKS`: push, slide, pick-and-place and flip.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from augury.envs.panda.goals import GOAL_TASKS, GoalTask, RotationTask

HORIZON = 50
WITH_GRIPPER = ("pick-and-place", "flip")

Bounds = dict[str, npt.NDArray[np.float32]]


class Component(NamedTuple):
    """One number of `observation`, and its range for measuring coverage; it may go beyond that range."""

    name: str
    unit: str
    low: float
    high: float


def _position(of: str) -> tuple[Component, ...]:
    """Ranges: the table, and as far above it as the hand carries objects."""
    return (
        Component(f"{of} x", "m", -0.3, 0.6),
        Component(f"{of} y", "m", -0.4, 0.4),
        Component(f"{of} z", "m", 0.0, 0.4),
    )


def _along(of: str, unit: str, limit: float, axes: str = "xyz") -> tuple[Component, ...]:
    return tuple(Component(f"{of} {axis}", unit, -limit, limit) for axis in axes)


_HAND = (*_position("hand"), *_along("hand velocity", "m/s", 2))
_FINGERS = (Component("fingers' width", "m", 0.0, 0.08),)
_MOTION = (*_along("object velocity", "m/s", 2), *_along("object angular velocity", "rad/s", 10))
_ANGLES = _along("object angle", "rad", pi)
_QUATERNION = _along("object quaternion", "1", 1, "xyzw")


def task_name(goals: GoalTask) -> str:
    """The task's name, also where only a part of its goals is set."""
    return goals.name.removesuffix("-quadrant")


def grips(goals: GoalTask) -> bool:
    """Whether actions have a fourth number, which opens the fingers. Elsewhere they stay closed."""
    return task_name(goals) in WITH_GRIPPER


def table(goals: GoalTask) -> tuple[Component, ...]:
    """What each number of `observation` is, in panda-gym's order."""
    fingers = _FINGERS if grips(goals) else ()
    orientation = _QUATERNION if isinstance(goals, RotationTask) else _ANGLES
    return (*_HAND, *fingers, *_position("object"), *orientation, *_MOTION)


def action_size(goals: GoalTask) -> int:
    """Numbers in an action: the hand's displacement, and the fingers' where they move."""
    return 4 if grips(goals) else 3


def bounds(goals: GoalTask) -> tuple[Bounds, Bounds]:
    """Lower and upper bounds between which coverage of observations is measured."""
    goal = _QUATERNION if isinstance(goals, RotationTask) else _position("object")
    components = {"observation": table(goals), "achieved_goal": goal, "desired_goal": goal}
    low = {
        key: np.array([number.low for number in numbers], np.float32) for key, numbers in components.items()
    }
    high = {
        key: np.array([number.high for number in numbers], np.float32) for key, numbers in components.items()
    }
    return low, high


_STEPS = {"push": 600_000, "slide": 1_000_000, "pick-and-place": 1_500_000, "flip": 1_000_000}
_BATCH = {"push": 256, "slide": 256, "pick-and-place": 512, "flip": 512}

TRAINING: Mapping[str, Mapping[str, Any]] = {
    name: {
        "algorithm": "ddpg",
        "hidden": (256, 256, 256),
        "batch_size": _BATCH[name],
        "collect": 2,
        "updates": 1,
        "steps": _STEPS[name],
        "random_steps": 1_000,
        "buffer_size": 1_000_000,
        "learning_rate": 1e-3,
        "discount": 0.95,
        "target_rate": 0.05,
        "exploration_noise": 0.2,
        "random_action_probability": 0.3,
        "evaluate_every": 10_000,
        "evaluation_episodes": 80,
    }
    for name in GOAL_TASKS
}
"""The paper's settings of each task."""
