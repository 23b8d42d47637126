"""What each number of an observation is. Symmetries' masks and maps follow from it.

An observation table is a sequence of `Quantity`, one for each number, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import mujoco

Kind = Literal["qpos", "qvel", "reading", "offset", "action", "vector", "pseudovector", "scalar"]
"""What a number is, which says how a symmetry maps it.

| kind | its address |
|---|---|
| `qpos`, `qvel` | in the simulator's array of that name |
| `offset` | in qpos: it is a position's distance from the default pose |
| `reading` | in the sensors' readings |
| `action` | in the action |
| `vector` | the axis, in the base's own frame: a velocity or a direction |
| `pseudovector` | the same of an angular velocity or a torque, which a mirror also reverses |
| `scalar` | any: no symmetry changes it |
"""


class Quantity(NamedTuple):
    """One number of an observation."""

    kind: Kind
    address: int
    """Which of its kind."""
    joint: str
    """The joint, or actuator, it belongs to; empty where it belongs to none."""
    quantity: str
    unit: str
    term: str = ""
    """The term of the observation that it is part of: it tells one vector from another."""

    @property
    def name(self) -> str:
        return f"{self.joint} {self.quantity}".strip()


_FREE_POSITION = [(axis, "m") for axis in "xyz"] + [(f"quaternion {part}", "1") for part in "wxyz"]
_FREE_VELOCITY = [(f"velocity {axis}", "m/s") for axis in "xyz"] + [
    (f"angular velocity {axis} (body frame)", "rad/s") for axis in "xyz"
]
_JOINTS = {
    mujoco.mjtJoint.mjJNT_FREE: (_FREE_POSITION, _FREE_VELOCITY),
    mujoco.mjtJoint.mjJNT_BALL: (_FREE_POSITION[3:], _FREE_VELOCITY[3:]),
    mujoco.mjtJoint.mjJNT_SLIDE: ([("position", "m")], [("velocity", "m/s")]),
    mujoco.mjtJoint.mjJNT_HINGE: ([("angle", "rad")], [("angular velocity", "rad/s")]),
}


def positions(model: mujoco.MjModel) -> list[Quantity]:
    """Every number of qpos."""
    return _of_joints(model, "qpos")


def velocities(model: mujoco.MjModel) -> list[Quantity]:
    """Every number of qvel."""
    return _of_joints(model, "qvel")


def joint_name(model: mujoco.MjModel, joint: int) -> str:
    """A joint's name, or its number where it has none."""
    return model.joint(joint).name or f"joint {joint}"


def readings(names: Sequence[str]) -> list[Quantity]:
    """Numbers read from the simulation, by name."""
    return [Quantity("reading", index, "", name, "") for index, name in enumerate(names)]


def _of_joints(model: mujoco.MjModel, kind: Literal["qpos", "qvel"]) -> list[Quantity]:
    found: list[Quantity] = []
    for joint in range(model.njnt):
        of_position, of_velocity = _JOINTS[mujoco.mjtJoint(model.jnt_type[joint])]
        name = joint_name(model, joint)
        for quantity, unit in of_position if kind == "qpos" else of_velocity:
            found.append(Quantity(kind, len(found), name, quantity, unit))
    return found
