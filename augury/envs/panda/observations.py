"""What the Panda tasks observe of a simulator's state, and what their actions ask of the hand.

Written once for NumPy and JAX arrays with any leading axes, so that tasks on the host and on a device cannot
disagree. A model's positions end with the object's: x, y, z and a quaternion w, x, y, z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from augury.envs.panda import robot
from augury.envs.panda.goals import GoalTask, RotationTask
from augury.envs.panda.rotations import AnyArray, euler_angles, rotated, unique_sign
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
    def reported_hand(self) -> AnyArray:
        """The hand's position as PyBullet reports it: one substep old."""
        return self.hand - robot.LAG * self.hand_velocity

    @property
    def fingers_width(self) -> AnyArray:
        """The distance between the fingers."""
        return self.qpos[..., JOINTS : JOINTS + 2].sum(-1, keepdims=True)

    @property
    def object_position(self) -> AnyArray:
        return self.qpos[..., -7:-4]

    @property
    def object_orientation(self) -> AnyArray:
        """A quaternion x, y, z, w, of the sign that PyBullet reports."""
        xp = self.qpos.__array_namespace__()
        return unique_sign(xp.concatenate([self.qpos[..., -3:], self.qpos[..., -4:-3]], -1))


def observed(goals: GoalTask, snapshot: Snapshot) -> dict[str, AnyArray]:
    """An observation of panda-gym's."""
    xp = snapshot.qpos.__array_namespace__()
    orientation = snapshot.object_orientation
    parts = [
        snapshot.reported_hand,
        snapshot.hand_velocity,
        *([snapshot.fingers_width] if grips(goals) else []),
        snapshot.object_position,
        orientation if isinstance(goals, RotationTask) else euler_angles(orientation),
        snapshot.qvel[..., -6:-3],
        rotated(orientation, snapshot.qvel[..., -3:]),
    ]
    return {"observation": xp.concatenate(parts, -1).astype(np.float32), **both_goals(goals, snapshot)}


def both_goals(goals: GoalTask, snapshot: Snapshot) -> dict[str, AnyArray]:
    """The achieved goal and the desired one, as they are observed."""
    achieved = snapshot.object_orientation if isinstance(goals, RotationTask) else snapshot.object_position
    return {"achieved_goal": achieved.astype(np.float32), "desired_goal": snapshot.goal.astype(np.float32)}


def asked(goals: GoalTask, snapshot: Snapshot, action: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Where an action wants the hand, never below the table, and each finger."""
    xp = snapshot.qpos.__array_namespace__()
    action = xp.clip(action, -1, 1)
    target = snapshot.reported_hand + REACH * action[..., :3]
    target = xp.concatenate([target[..., :2], xp.maximum(target[..., 2:], 0)], -1)
    closed = xp.zeros_like(target[..., :1])
    width = snapshot.fingers_width + GRIP * action[..., 3:] if grips(goals) else closed
    return target, xp.concatenate([width / 2, width / 2], -1)


def servo_targets(angles: AnyArray, torques: AnyArray, stiffness: AnyArray, fingers: AnyArray) -> AnyArray:
    """Targets of all servos, with which the arm comes to rest at these angles while it gives these torques.

    A servo that gives a torque rests off its target. So the target is moved that far beyond.
    """
    xp = angles.__array_namespace__()
    return xp.concatenate([angles + torques / stiffness, fingers], -1)
