"""What the Panda tasks observe of a simulator's state, and what their actions ask of the hand.

Written once, by components, for NumPy and JAX arrays with any leading axes, so that tasks on the host and on
a device cannot disagree. A model's positions end with the object's: x, y, z and a quaternion w, x, y, z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from augury.envs.panda import robot
from augury.envs.panda.components import AnyArray, Component, components, joined, namespace
from augury.envs.panda.goals import GoalTask, RotationTask
from augury.envs.panda.rotations import euler_angles, rotated, unique_sign
from augury.envs.panda.settings import grips

REACH = 0.05
"""Metres that a unit of action moves the hand."""
GRIP = 0.2
"""Metres that a unit of action opens the fingers."""
JOINTS = len(robot.LINKS)


class Snapshot(NamedTuple):
    """What decides an observation."""

    qpos: AnyArray
    qvel: AnyArray
    hand: AnyArray
    """The hand's position."""
    hand_velocity: AnyArray
    goal: AnyArray

    @property
    def reported_hand(self) -> list[Component]:
        """The hand's position as PyBullet reports it: one substep old."""
        moving = zip(components(self.hand), components(self.hand_velocity), strict=True)
        return [position - robot.LAG * velocity for position, velocity in moving]

    @property
    def fingers_width(self) -> Component:
        """The distance between the fingers."""
        left, right = components(self.qpos[..., JOINTS : JOINTS + 2])
        return left + right

    @property
    def object_position(self) -> AnyArray:
        return self.qpos[..., -7:-4]

    @property
    def object_orientation(self) -> list[Component]:
        """A quaternion x, y, z, w, of the sign that PyBullet reports."""
        w, x, y, z = components(self.qpos[..., -4:])
        return unique_sign([x, y, z, w])


def observed(goals: GoalTask, snapshot: Snapshot) -> dict[str, AnyArray]:
    """An observation of panda-gym's."""
    orientation, motion = snapshot.object_orientation, components(snapshot.qvel[..., -6:])
    parts = [
        *snapshot.reported_hand,
        *components(snapshot.hand_velocity),
        *([snapshot.fingers_width] if grips(goals) else []),
        *components(snapshot.object_position),
        *(orientation if isinstance(goals, RotationTask) else euler_angles(orientation)),
        *motion[:3],
        *rotated(orientation, motion[3:]),
    ]
    return {"observation": joined(parts).astype(np.float32), **both_goals(goals, snapshot)}


def both_goals(goals: GoalTask, snapshot: Snapshot) -> dict[str, AnyArray]:
    """The achieved goal and the desired one, as they are observed."""
    rotates = isinstance(goals, RotationTask)
    achieved = joined(snapshot.object_orientation) if rotates else snapshot.object_position
    return {"achieved_goal": achieved.astype(np.float32), "desired_goal": snapshot.goal.astype(np.float32)}


def asked(goals: GoalTask, snapshot: Snapshot, action: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Where an action wants the hand, never below the table, and each finger."""
    parts = components(action)
    xp = namespace(parts[0])
    parts = [xp.minimum(xp.maximum(part, -1), 1) for part in parts]
    moved = zip(snapshot.reported_hand, parts[:3], strict=True)
    x, y, z = (position + REACH * part for position, part in moved)
    width = snapshot.fingers_width + GRIP * parts[3] if grips(goals) else z - z
    return joined([x, y, xp.maximum(z, 0.0)]), joined([width / 2, width / 2])


def servo_targets(angles: AnyArray, torques: AnyArray, stiffness: AnyArray, fingers: AnyArray) -> AnyArray:
    """Targets of all servos, with which the arm comes to rest at these angles while it gives these torques.

    A servo that gives a torque rests off its target. So the target is moved that far beyond.
    """
    xp = angles.__array_namespace__()
    return xp.concatenate([angles + torques / stiffness, fingers], -1)
