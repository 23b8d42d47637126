"""The goals of the Panda tasks: how they are drawn, when they are reached, and which are near or far.

| task | goal | uniform numbers, in panda-gym's order |
|---|---|---|
| push | x, y, z of the cube | x, y, z (which is fixed) |
| slide | x, y, z of the puck | x, y, z (which is fixed) |
| pick-and-place | x, y, z of the cube | x, y, z, whether it lies on the table instead |
| flip | orientation of the cube, a unit quaternion x, y, z, w | three, by Shoemake's method |

A task is data and functions of arrays. The functions run on NumPy and on JAX arrays alike, so that
environments and augmentations cannot disagree. Whatever is random is a function of numbers uniform in [0, 1),
which have the same leading axes as the goals, if any. The same numbers give the goals and starts that
panda-gym draws.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal

AnyArray = Any  # a NumPy or a JAX array
Point = tuple[float, float, float]

START_RANGE = 0.15
"""Objects start with x and y in [-0.15, 0.15]."""
START_DRAWS = 3
NEAR_DRAWS = 3
FAR_CANDIDATES = 4
"""Goals to choose a far one from. All are reached with probability 6e-5 at most, 0.015 in a quadrant."""

INSIDE, OUTSIDE = 0.999, 1.001
"""Factors of the threshold that keep near and far goals off it, so that rounding cannot decide success."""
ROUNDING, ROUNDING_OF_A_ROTATION = 1e-6, 1e-4
"""How far beyond its range rounding may put a goal, and a quaternion's length from 1."""


@dataclass(frozen=True, repr=False)
class GoalTask(ABC):
    """What every task has. Hashable, so that it may be a static part of a compiled program."""

    name: str
    start_height: float
    """Height at which panda-gym puts the object's centre. A puck falls from there to 0.015."""
    threshold: float
    """Distance from the goal below which it is reached."""

    def __repr__(self) -> str:
        return self.name

    @property
    @abstractmethod
    def goal_size(self) -> int:
        """Numbers in a goal."""

    @property
    @abstractmethod
    def draws(self) -> int:
        """Uniform numbers that one goal takes."""

    @property
    @abstractmethod
    def quadrant(self) -> GoalTask:
        """The same task with a part of its goals, to train on and generalise from."""

    @abstractmethod
    def goal(self, numbers: AnyArray) -> AnyArray:
        """The goal that `draws` uniform numbers stand for."""

    @abstractmethod
    def distance(self, achieved: AnyArray, desired: AnyArray) -> AnyArray:
        """How far the achieved goal is from the desired one."""

    @abstractmethod
    def near(self, numbers: AnyArray, achieved: AnyArray) -> AnyArray:
        """A goal around the achieved one that is certainly reached, from `NEAR_DRAWS` numbers.

        As in the paper, it need not be one that the task itself would set.
        """

    @abstractmethod
    def _elsewhere(self, numbers: AnyArray, achieved: AnyArray) -> AnyArray:
        """A goal that the task may set and that is certainly not reached, though `goal(numbers)` is."""

    @abstractmethod
    def sets(self, goal: AnyArray) -> AnyArray:
        """Whether the task may set this goal."""

    def is_goal(self, goal: AnyArray) -> AnyArray:
        """Whether these numbers can be a goal at all."""
        return abs(goal[..., 0]) < math.inf

    def far(self, numbers: AnyArray, achieved: AnyArray) -> AnyArray:
        """A goal of the task that is certainly not reached.

        Each row of `draws` numbers is a candidate, and the first one that is not reached is chosen. If all
        are reached, the last is moved.
        """
        xp = numbers.__array_namespace__()
        candidates = self.goal(numbers)
        away = self.distance(achieved[..., None, :], candidates) > OUTSIDE * self.threshold
        chosen = self._elsewhere(numbers[..., -1, :], achieved)
        for row in reversed(range(numbers.shape[-2])):
            chosen = xp.where(away[..., row, None], candidates[..., row, :], chosen)
        return chosen

    def succeeded(self, achieved: AnyArray, desired: AnyArray) -> AnyArray:
        """Whether the goal is reached, which ends the episode."""
        return self.distance(achieved, desired) < self.threshold

    def reward(self, achieved: AnyArray, desired: AnyArray) -> AnyArray:
        """0 at the goal and -1 elsewhere.

        Exactly at the threshold it is 0 as in panda-gym, though the goal is not reached there.
        """
        distance = self.distance(achieved, desired)
        xp = distance.__array_namespace__()
        return xp.where(distance > self.threshold, xp.float32(-1), xp.float32(0))

    def start(self, numbers: AnyArray) -> AnyArray:
        """The object's position at the start, from `START_DRAWS` numbers."""
        low = (-START_RANGE, -START_RANGE, self.start_height)
        return _between(low, (START_RANGE, START_RANGE, self.start_height), numbers)


@dataclass(frozen=True, repr=False)
class PositionTask(GoalTask):
    """Bring the object to a position."""

    low: Point
    """Goals are uniform between the corners `low` and `high`. A coordinate in which these agree is fixed."""
    high: Point
    table_chance: float | None = None
    """Probability that a goal lies on the table instead."""

    @property
    def goal_size(self) -> int:
        return 3

    @property
    def draws(self) -> int:
        return 3 if self.table_chance is None else 4

    @property
    def quadrant(self) -> PositionTask:
        """Goals on the table, in the upper half of x and of y."""
        x, y, _ = ((low + high) / 2 for low, high in zip(self.low, self.high, strict=True))
        table = self.low[2]
        return replace(self, name=f"{self.name}-quadrant", low=(x, y, table), high=(*self.high[:2], table))

    def goal(self, numbers: AnyArray) -> AnyArray:
        xp = numbers.__array_namespace__()
        position = _between(self.low, self.high, numbers[..., :3])
        if self.table_chance is None:
            return position
        height = xp.where(numbers[..., 3:] < self.table_chance, self.low[2], position[..., 2:])
        return xp.concatenate([position[..., :2], height], -1)

    def distance(self, achieved: AnyArray, desired: AnyArray) -> AnyArray:
        squared = ((achieved - desired) ** 2).sum(-1)
        return squared.__array_namespace__().sqrt(squared)

    def near(self, numbers: AnyArray, achieved: AnyArray) -> AnyArray:
        """Uniform in a ball around the object, or in its section at the goals' height where that is fixed.

        Where the object is too far above or below that height, the section is at its own height.
        """
        xp = numbers.__array_namespace__()
        reach = INSIDE * self.threshold
        if self.low[2] < self.high[2]:
            return achieved + reach * _in_ball(numbers)
        own = achieved[..., 2:]
        height = xp.where(abs(own - self.low[2]) < reach, self.low[2], own)
        radius = xp.sqrt((reach**2 - (own - height) ** 2) * numbers[..., :1])
        angle = 2 * math.pi * numbers[..., 1:2]
        plane = achieved[..., :2] + radius * xp.concatenate([xp.cos(angle), xp.sin(angle)], -1)
        return xp.concatenate([plane, height], -1)

    def sets(self, goal: AnyArray) -> AnyArray:
        xp = goal.__array_namespace__()
        low, high = (xp.asarray(corner, dtype=goal.dtype) for corner in (self.low, self.high))
        return ((goal >= low - ROUNDING) & (goal <= high + ROUNDING)).all(-1)

    def _elsewhere(self, numbers: AnyArray, achieved: AnyArray) -> AnyArray:
        """A goal with an x too far from the object's, uniform over the rest of the range on both sides."""
        xp = numbers.__array_namespace__()
        low, high, margin = self.low[0], self.high[0], OUTSIDE * self.threshold
        end_below = xp.clip(achieved[..., :1] - margin, low, high)
        begin_above = xp.clip(achieved[..., :1] + margin, low, high)
        x = low + numbers[..., :1] * (end_below - low + high - begin_above)
        x = xp.where(x < end_below, x, x - end_below + begin_above)
        return xp.concatenate([x, self.goal(numbers)[..., 1:]], -1)


@dataclass(frozen=True, repr=False)
class RotationTask(GoalTask):
    """Rotate the object to an orientation, at whatever position."""

    axis: Literal["any", "x"] = "any"
    """The axis of the goals' rotations. The two quaternions of a rotation, q and -q, are equally likely."""

    @property
    def goal_size(self) -> int:
        return 4

    @property
    def draws(self) -> int:
        return 3 if self.axis == "any" else 1

    @property
    def quadrant(self) -> RotationTask:
        """Rotations about the x axis alone."""
        return replace(self, name=f"{self.name}-quadrant", axis="x")

    def goal(self, numbers: AnyArray) -> AnyArray:
        xp = numbers.__array_namespace__()
        if self.axis == "x":
            angle = 2 * math.pi * numbers
            none = xp.zeros_like(angle)
            return xp.concatenate([xp.sin(angle), none, none, xp.cos(angle)], -1)
        share, angles = numbers[..., :1], 2 * math.pi * numbers[..., 1:]
        radii = xp.sqrt(xp.concatenate([1 - share, share], -1))
        return xp.concatenate([radii * xp.sin(angles), radii * xp.cos(angles)], -1)

    def distance(self, achieved: AnyArray, desired: AnyArray) -> AnyArray:
        """1 - (q·g)², the squared sine of half the angle between two orientations."""
        return 1 - (achieved * desired).sum(-1) ** 2

    def near(self, numbers: AnyArray, achieved: AnyArray) -> AnyArray:
        """Rotated by at most 0.927 rad about a uniform axis.

        The quaternion's vector part is uniform in a ball. That is uniform over these rotations to within 12%,
        and needs no root of θ - sin θ.
        """
        xp = numbers.__array_namespace__()
        vector = math.sqrt(INSIDE * self.threshold) * _in_ball(numbers)
        scalar = xp.sqrt(1 - (vector**2).sum(-1, keepdims=True))
        rotated = _product(achieved, xp.concatenate([vector, scalar], -1))
        return rotated / xp.sqrt((rotated**2).sum(-1, keepdims=True))

    def is_goal(self, goal: AnyArray) -> AnyArray:
        """Whether the quaternion is a rotation."""
        return abs((goal**2).sum(-1) - 1) < ROUNDING_OF_A_ROTATION

    def sets(self, goal: AnyArray) -> AnyArray:
        others = abs(goal[..., 1:3]).max(-1) < ROUNDING
        return self.is_goal(goal) & (others | (self.axis == "any"))

    def _elsewhere(self, numbers: AnyArray, achieved: AnyArray) -> AnyArray:
        """The goal rotated by another 180° about x, which is far from everything near it."""
        del achieved
        xp = numbers.__array_namespace__()
        x, y, z, w = (self.goal(numbers)[..., part : part + 1] for part in range(4))
        return xp.concatenate([w, z, -y, -x], -1)


def _between(low: Point, high: Point, numbers: AnyArray) -> AnyArray:
    """Uniform between two corners, rounded as NumPy's `Generator.uniform` does."""
    xp = numbers.__array_namespace__()
    width = [end - begin for begin, end in zip(low, high, strict=True)]
    return xp.asarray(low, dtype=numbers.dtype) + xp.asarray(width, dtype=numbers.dtype) * numbers


def _in_ball(numbers: AnyArray) -> AnyArray:
    """A uniform point of the unit ball."""
    xp = numbers.__array_namespace__()
    radius, height, angle = (
        xp.cbrt(numbers[..., :1]),
        2 * numbers[..., 1:2] - 1,
        2 * math.pi * numbers[..., 2:],
    )
    across = xp.sqrt(1 - height**2)
    return radius * xp.concatenate([across * xp.cos(angle), across * xp.sin(angle), height], -1)


def _product(first: AnyArray, second: AnyArray) -> AnyArray:
    """Hamilton's product of quaternions x, y, z, w."""
    xp = second.__array_namespace__()
    vector, scalar = first[..., :3], first[..., 3:]
    other_vector, other_scalar = second[..., :3], second[..., 3:]
    return xp.concatenate(
        [
            scalar * other_vector + other_scalar * vector + xp.cross(vector, other_vector),
            scalar * other_scalar - (vector * other_vector).sum(-1, keepdims=True),
        ],
        -1,
    )


PUSH = PositionTask("push", 0.02, 0.05, low=(-0.15, -0.15, 0.02), high=(0.15, 0.15, 0.02))
SLIDE = PositionTask("slide", 0.03, 0.05, low=(0.25, -0.15, 0.03), high=(0.55, 0.15, 0.03))
PICK_AND_PLACE = PositionTask(
    "pick-and-place", 0.02, 0.05, low=(-0.15, -0.15, 0.02), high=(0.15, 0.15, 0.22), table_chance=0.3
)
FLIP = RotationTask("flip", 0.02, 0.2)

GOAL_TASKS: dict[str, GoalTask] = {task.name: task for task in (PUSH, SLIDE, PICK_AND_PLACE, FLIP)}
"""Tasks by name, with all of their goals."""

_ENVIRONMENT = re.compile(rf"panda-(?:gym-)?({'|'.join(GOAL_TASKS)})(?:-.*)?")


def task_of(environment: str) -> GoalTask | None:
    """The task of an environment by name: panda-push, its reference panda-gym-push, or a variant of either.

    The task returned has all goals, also where the environment sets only a part of them. None where the name
    is not a Panda environment's.
    """
    named = _ENVIRONMENT.fullmatch(environment)
    return GOAL_TASKS[named.group(1)] if named else None
