"""The Panda tasks, and goals that objects achieve in them, for the tests of goals and of augmentations."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from augury.envs.panda.goals import GOAL_TASKS, START_DRAWS, RotationTask

COUNT = 100_000
FULL = list(GOAL_TASKS.values())
TASKS = FULL + [task.quadrant for task in FULL]
each_full_task = pytest.mark.parametrize("task", FULL, ids=str)
each_task = pytest.mark.parametrize("task", TASKS, ids=str)


def achieved_goals(task, count=COUNT, seed=0):
    """Achieved goals of all kinds: desired ones, corners of their range, starts, in the air and anywhere."""
    generator = np.random.default_rng(seed)
    goals = task.goal(generator.random((count, task.draws)))
    if isinstance(task, RotationTask):
        others = [[0, 0, 0, 1], Rotation.random(count, rng=generator).as_quat()]
    else:
        corners = np.where(generator.random((count, 3)) < 0.5, task.low, task.high)
        anywhere = generator.uniform([-0.3, -0.3, -0.1], [0.7, 0.3, 0.3], (count, 3))
        resting = np.concatenate([goals[:, :2], np.full((count, 1), 0.015)], 1)
        others = [corners, corners + generator.normal(0, 0.03, (count, 3)), anywhere, resting]
        others.append(task.start(generator.random((count, START_DRAWS))))
    kinds = np.stack([goals, *(np.broadcast_to(other, goals.shape) for other in others)])
    return kinds[generator.integers(len(kinds), size=count), np.arange(count)].astype(np.float32)


def exact(*arrays):
    """In double precision, which is not the augmentation's arithmetic."""
    return [np.asarray(array, np.float64) for array in arrays]


def within(task, goals):
    """Which goals the task might set."""
    if isinstance(task, RotationTask):
        about_x = np.abs(goals[:, 1:3]).max(-1) < 1e-6 if task.axis == "x" else True
        return about_x & (np.abs(np.linalg.norm(goals, axis=-1) - 1) < 1e-6)
    return ((goals >= np.array(task.low) - 1e-7) & (goals <= np.array(task.high) + 1e-7)).all(-1)
