"""The terms of an observation. A task lists those that its agent sees, and its reward reads them too.

    observed = (joint_offsets, joint_velocities, projected_gravity, command)     in a task
    ahead, aside, _ = base_linear_velocity(after).T                              in its reward

A term is a pure function from a moment to rows of numbers, together with what each number is. So the table of
an observation, its mirror and its rotations follow from its terms, and nobody writes an index or a sign.

One of your own is a function of a moment, and what it gives:

    @term(scalars("load", unit="N"))
    def load(moment): ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from augury.envs.mujoco import quantities
from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.physics import Rows
from augury.envs.mujoco.quantities import Quantity
from augury.envs.mujoco.vector import Moment
from augury.errors import unknown_name

Meaning = Callable[..., list[Quantity]]
"""What the numbers of a term are, of a model with this anatomy."""
_DOWN = np.array([[0.0, 0.0, -1.0]])


@dataclass(frozen=True)
class Term:
    """A part of an observation: a function of a moment, and what its numbers are."""

    read: Callable[..., Rows]
    """Rows of numbers, of a moment and of what is `given`."""
    meaning: Meaning
    given: tuple[Any, ...] = ()
    skipped: int = 0
    limit: float = np.inf

    def __call__(self, moment: Moment) -> Rows:
        values = self.read(moment, *self.given)[:, self.skipped :]
        return values if self.limit == np.inf else np.clip(values, -self.limit, self.limit)

    @property
    def name(self) -> str:
        return " ".join([self.read.__name__.strip("_").replace("_", " "), *map(str, self.given)])

    def table(self, anatomy: Anatomy) -> list[Quantity]:
        """What each number is."""
        found = self.meaning(anatomy, *self.given)[self.skipped :]
        return [quantity._replace(term=self.name) for quantity in found]

    def skip(self, count: int) -> Term:
        """The same without its first numbers."""
        return replace(self, skipped=count)

    def clip(self, limit: float) -> Term:
        """The same with numbers within ±limit: states that look the same may then differ."""
        return replace(self, limit=limit)


def term(meaning: Meaning) -> Callable[[Callable[[Moment], Rows]], Term]:
    """Make a function of a moment a term."""
    return lambda read: Term(read, meaning)


def vectors(name: str, unit: str) -> Meaning:
    """Three numbers along the axes of the base's own frame."""
    return lambda anatomy: [Quantity("vector", axis, "", f"{name} {'xyz'[axis]}", unit) for axis in range(3)]


def pseudovectors(name: str, unit: str) -> Meaning:
    """The same of an angular velocity or a torque."""
    return lambda anatomy: [
        Quantity("pseudovector", axis, "", f"{name} {'xyz'[axis]}", unit) for axis in range(3)
    ]


def scalars(*names: str, unit: str = "") -> Meaning:
    """Numbers that neither a mirror nor a rotation changes."""
    return lambda anatomy: [Quantity("scalar", place, "", name, unit) for place, name in enumerate(names)]


def _all_positions(anatomy: Anatomy) -> list[Quantity]:
    return quantities.positions(anatomy.model)


def _all_velocities(anatomy: Anatomy) -> list[Quantity]:
    return quantities.velocities(anatomy.model)


def _positions_of_joints(anatomy: Anatomy) -> list[Quantity]:
    every = quantities.positions(anatomy.model)
    return [every[address] for address in anatomy.joint_qpos]


def _offsets_of_joints(anatomy: Anatomy) -> list[Quantity]:
    return [
        quantity._replace(kind="offset", quantity=f"{quantity.quantity} from default")
        for quantity in _positions_of_joints(anatomy)
    ]


def _velocities_of_joints(anatomy: Anatomy) -> list[Quantity]:
    every = quantities.velocities(anatomy.model)
    return [every[address] for address in anatomy.joint_qvel]


def _height_of_base(anatomy: Anatomy) -> list[Quantity]:
    return [quantities.positions(anatomy.model)[anatomy.base.qpos + 2]]


def _parts_of_action(anatomy: Anatomy) -> list[Quantity]:
    names = [
        anatomy.model.actuator(number).name or f"actuator {number}" for number in range(anatomy.model.nu)
    ]
    return [Quantity("action", number, name, "previous action", "") for number, name in enumerate(names)]


def _parts_of_command(anatomy: Anatomy) -> list[Quantity]:
    return [
        Quantity("vector", 0, "", "command forward", "m/s"),
        Quantity("vector", 1, "", "command sideways", "m/s"),
        Quantity("pseudovector", 2, "", "command turning", "rad/s"),
    ]


def _readings_of(anatomy: Anatomy, name: str) -> list[Quantity]:
    columns = _columns_of(anatomy, name)
    return [
        Quantity("reading", address, "", f"{name} {place}" if len(columns) > 1 else name, "")
        for place, address in enumerate(columns)
    ]


def _columns_of(anatomy: Anatomy, name: str) -> range:
    """Where the readings hold those of a sensor."""
    if name not in anatomy.sensors:
        raise unknown_name(f"sensor of positions or velocities in {anatomy.name}", name, anatomy.sensors)
    return anatomy.sensors[name]


@term(_all_positions)
def positions(moment: Moment) -> Rows:
    """Every number of qpos."""
    return moment.qpos


@term(_all_velocities)
def velocities(moment: Moment) -> Rows:
    """Every number of qvel."""
    return moment.qvel


@term(_positions_of_joints)
def joint_positions(moment: Moment) -> Rows:
    """Angles of hinges and positions of slides."""
    return moment.qpos[:, moment.anatomy.joint_qpos]


@term(_offsets_of_joints)
def joint_offsets(moment: Moment) -> Rows:
    """The same, from the default pose."""
    anatomy = moment.anatomy
    return moment.qpos[:, anatomy.joint_qpos] - anatomy.qpos[anatomy.joint_qpos]


@term(_velocities_of_joints)
def joint_velocities(moment: Moment) -> Rows:
    """Velocities of hinges and slides."""
    return moment.qvel[:, moment.anatomy.joint_qvel]


@term(vectors("base velocity", "m/s"))
def base_linear_velocity(moment: Moment) -> Rows:
    """The base's velocity in its own frame."""
    start = moment.anatomy.base.qvel
    return _in_base_frame(moment, moment.qvel[:, start : start + 3])


@term(pseudovectors("base angular velocity", "rad/s"))
def base_angular_velocity(moment: Moment) -> Rows:
    """The base's angular velocity in its own frame."""
    start = moment.anatomy.base.qvel + 3
    return moment.qvel[:, start : start + 3]


@term(vectors("projected gravity", "1"))
def projected_gravity(moment: Moment) -> Rows:
    """The direction downwards in the base's own frame, of length 1: how the base leans."""
    return _in_base_frame(moment, _DOWN)


@term(_height_of_base)
def base_height(moment: Moment) -> Rows:
    """The base's z in the world."""
    z = moment.anatomy.base.qpos + 2
    return moment.qpos[:, z : z + 1]


@term(_parts_of_action)
def previous_action(moment: Moment) -> Rows:
    """The action that led here; zeros at the start of an episode."""
    return moment.action


@term(_parts_of_command)
def command(moment: Moment) -> Rows:
    """What the task's `command` drew for this episode: velocity forward and sideways, turning velocity."""
    return moment.goal


def sensor(name: str) -> Term:
    """The readings of a sensor of positions or velocities, by its name."""
    return Term(_sensor, _readings_of, (name,))


def _sensor(moment: Moment, name: str) -> Rows:
    columns = _columns_of(moment.anatomy, name)
    return moment.readings[:, columns.start : columns.stop]


def _in_base_frame(moment: Moment, vector: Rows) -> Rows:
    """A vector of the world, as the base sees it."""
    start = moment.anatomy.base.qpos + 3
    quaternion = moment.qpos[:, start : start + 4]
    # MuJoCo's own positions need not be normalised at the start of an episode.
    quaternion = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    real, axis = quaternion[:, :1], -quaternion[:, 1:]
    twice = 2 * np.cross(axis, vector)
    return vector + real * twice + np.cross(axis, twice)
