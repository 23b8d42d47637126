"""The kinds of terms that an observation may list, and what their numbers become in the mirror.

Terms that a task of ours can observe keep their names (see `augury.envs.mujoco.terms`). Others exist only
where a robot is trained: the phase of a gait, flags of contact, a scan of the ground, and blocks of your own.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

import msgspec

from augury.errors import UserError
from augury.symmetry.maps import SymmetryError
from augury.symmetry.observed.numbers import Number, stacked
from augury.symmetry.observed.robot import Robot
from augury.symmetry.pairing.names import label

Count = Annotated[int, msgspec.Meta(ge=1)]


class Term(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of an observation."""

    kind: str
    name: str = ""
    """What you call it; by default its kind."""
    history: Count = 1
    """How many frames of it are observed, one after the other."""

    @property
    def label(self) -> str:
        """What it is called in tables and errors."""
        return self.name or self.kind

    def numbers(self, robot: Robot) -> list[Number]:
        """What it holds, with its history."""
        return [number._replace(term=self.label) for number in stacked(self.frame(robot), self.history)]

    def frame(self, robot: Robot) -> list[Number]:
        """What it holds at one time."""
        return [robot.number(quantity) for quantity in robot.table(self.kind)]

    def measured(self, robot: Robot) -> dict[str, Any]:
        """How the generated test asks the simulator for it."""
        del robot
        return {"kind": self.kind}


class OfState(Term, frozen=True, kw_only=True):
    """All positions, or all velocities."""

    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many of the first are not observed: a robot's x and y, say."""

    def frame(self, robot: Robot) -> list[Number]:
        return super().frame(robot)[self.skip :]

    def measured(self, robot: Robot) -> dict[str, Any]:
        return super().measured(robot) | {"skip": self.skip}


class OfBase(Term, frozen=True, kw_only=True):
    """The height of the base, or what its own frame says of its motion."""


class OfJoints(Term, frozen=True, kw_only=True):
    """One number for each joint."""

    joints: tuple[str, ...] | None = None
    """Which, and in which order; by default all that the robot lists."""

    def frame(self, robot: Robot) -> list[Number]:
        known = robot.quantities(self.kind)
        return [robot.number(known[joint]) for joint in self._joints(robot)]

    def measured(self, robot: Robot) -> dict[str, Any]:
        return {"kind": self.kind, "joints": list(self._joints(robot))}

    def _joints(self, robot: Robot) -> tuple[str, ...]:
        return robot.joints if self.joints is None else robot.checked_joints(self.joints)


class OfSensor(Term, frozen=True, kw_only=True):
    """The readings of one of the model's sensors."""

    sensor: str

    def frame(self, robot: Robot) -> list[Number]:
        return [robot.number(quantity) for quantity in robot.table("sensor", self.sensor)]

    def measured(self, robot: Robot) -> dict[str, Any]:
        return {"kind": self.kind, "sensor": self.sensor}


class OfActuators(Term, frozen=True, kw_only=True):
    """One number for each control of the model's actuators."""

    def frame(self, robot: Robot) -> list[Number]:
        actions = robot.table("previous_action")
        return [robot.number(quantity._replace(quantity="control")) for quantity in actions]


class PreviousAction(Term, frozen=True, kw_only=True):
    """The action before."""

    action: Term | None = None
    """What actions are; the listing says it."""

    def frame(self, robot: Robot) -> list[Number]:
        assert self.action is not None
        return [
            number._replace(
                key=("action", number.key),
                image=tuple((("action", key), factor) for key, factor in number.image),
                name=f"previous action, {number.name}",
            )
            for number in self.action.frame(robot)
        ]

    def measured(self, robot: Robot) -> dict[str, Any]:
        assert self.action is not None
        return self.action.measured(robot)


class OfFeet(Term, frozen=True, kw_only=True):
    """Numbers that belong to a foot each: phases of a gait, flags of contact. A mirror exchanges the feet."""

    feet: tuple[str, ...]
    """The foot of each number: a body, a geom or a site. Sines and cosines list the feet twice."""

    def frame(self, robot: Robot) -> list[Number]:
        bodies = [robot.foot(name) for name in self.feet]
        counts = Counter(bodies)
        if len({*counts.values()}) > 1:
            raise UserError(f"'{self.label}' lists some feet more often than others")
        found = []
        for place, (name, body) in enumerate(zip(self.feet, bodies, strict=True)):
            image, turn = robot.body_images[body], bodies[:place].count(body)
            if image not in counts:
                other = label(robot.model, "body", image)
                raise SymmetryError(
                    f"'{self.label}' lists the foot {name}, but not its mirror image, {other}"
                )
            key, source = (self.label, body, turn), (self.label, image, turn)
            found.append(Number(f"{self.kind.replace('_', ' ')} of {name}", key, ((source, 1.0),)))
        return found

    def measured(self, robot: Robot) -> dict[str, Any]:
        return {"kind": self.kind, "bodies": [robot.foot(name) for name in self.feet]}


class GaitClock(Term, frozen=True, kw_only=True):
    """Sine and cosine of one clock for both sides, which are half a period apart: both change their sign."""

    def frame(self, robot: Robot) -> list[Number]:
        keys = [(f"{part} of the clock", (self.label, part)) for part in ("sine", "cosine")]
        return [Number(name, key, ((key, -1.0),)) for name, key in keys]


class HeightScan(Term, frozen=True, kw_only=True):
    """Heights of the ground on a grid around the base, which turns with its heading."""

    x: Count
    """Points along the base's x axis."""
    y: Count
    fastest: Literal["x", "y"] = "x"
    """The axis along which neighbouring numbers lie: x is Isaac Lab's order "xy"."""

    def frame(self, robot: Robot) -> list[Number]:
        axes = robot.mirror.vectors.matrix[:2, :2]
        flips = [axes[axis, axis] < 0 for axis in range(2)]
        if abs(axes[0, 1]) > 1e-9 or abs(axes[1, 0]) > 1e-9:
            raise SymmetryError(f"'{self.label}': the mirror plane is not along the base's x or y axis")
        found = []
        for i, j in self.points:
            source = (self.x - 1 - i if flips[0] else i, self.y - 1 - j if flips[1] else j)
            key, image = (self.label, i, j), (self.label, *source)
            found.append(Number(f"height at x {i}, y {j}", key, ((image, 1.0),)))
        return found

    @property
    def points(self) -> list[tuple[int, int]]:
        """Places along x and y, in the order of the numbers."""
        if self.fastest == "x":
            return [(i, j) for j in range(self.y) for i in range(self.x)]
        return [(i, j) for i in range(self.x) for j in range(self.y)]

    def measured(self, robot: Robot) -> dict[str, Any]:
        del robot
        centre = (self.x - 1) / 2, (self.y - 1) / 2
        return {"kind": self.kind, "points": [(i - centre[0], j - centre[1]) for i, j in self.points]}


class Custom(Term, frozen=True, kw_only=True):
    """A block of your own: the sign of each number, and the number that it is exchanged with."""

    signs: tuple[float, ...]
    exchange: tuple[int, ...] | None = None
    """For each number the one that takes its place in the mirror; by default itself."""

    def frame(self, robot: Robot) -> list[Number]:
        size = len(self.signs)
        exchange = tuple(range(size)) if self.exchange is None else self.exchange
        if sorted(exchange) != list(range(size)):
            raise UserError(f"'{self.label}': 'exchange' must hold the numbers 0 to {size - 1} once each")
        if any(abs(sign) != 1 for sign in self.signs):
            raise UserError(f"'{self.label}': signs are 1 or -1")
        wrong = [place for place, other in enumerate(exchange) if exchange[other] != place]
        wrong += [place for place, other in enumerate(exchange) if self.signs[place] != self.signs[other]]
        if wrong:
            raise UserError(f"'{self.label}': mirrored twice, number {wrong[0]} is not what it was")
        return [
            Number(f"{self.label} {place}", (self.label, place), (((self.label, other), sign),))
            for place, (other, sign) in enumerate(zip(exchange, self.signs, strict=True))
        ]

    def measured(self, robot: Robot) -> dict[str, Any]:
        del robot
        return {"kind": self.kind, "size": len(self.signs)}


ACTIONS: dict[str, type[Term]] = {
    "joint_offsets": OfJoints,
    "joint_positions": OfJoints,
    "joint_velocities": OfJoints,
    "controls": OfActuators,
}
"""What an action may be. Torques map as velocities do."""

KINDS: dict[str, type[Term]] = {
    **dict.fromkeys(("positions", "velocities"), OfState),
    **dict.fromkeys(("base_linear_velocity", "base_angular_velocity", "projected_gravity"), OfBase),
    **dict.fromkeys(("base_height", "command"), OfBase),
    **dict.fromkeys(("joint_positions", "joint_offsets", "joint_velocities"), OfJoints),
    "previous_action": PreviousAction,
    "sensor": OfSensor,
    **dict.fromkeys(("gait_phase", "contacts"), OfFeet),
    "gait_clock": GaitClock,
    "height_scan": HeightScan,
    "custom": Custom,
}
"""What a term may be."""
