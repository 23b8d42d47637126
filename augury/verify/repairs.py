"""Small repairs of an augmentation, each a suspicion: flip this sign, exchange that pair, leave this alone.

Of a dict of vectors the same is tried with its entries side by side, and with whole entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from augury.envs.mujoco.quantities import Quantity
from augury.transition import Transition
from augury.verify.observations import flat
from augury.verify.spaces import quaternions

Rows = npt.NDArray[np.float64]
Field = Literal["observation", "next_observation", "action"]
OnRows = Callable[[Rows, Rows], Rows]
"""From what was augmented and what was observed to what should have been."""


class Motion(NamedTuple):
    """What repairs change of a transition, as rows of numbers."""

    observation: Rows
    next_observation: Rows
    action: Rows

    @classmethod
    def of(cls, transition: Transition) -> Motion:
        parts = (transition.observation, transition.next_observation, transition.action)
        return cls(*(flat(part) for part in parts))

    def rows(self, chosen: Any) -> Motion:
        return Motion(*(part[chosen] for part in self))


class Repair(NamedTuple):
    """One suspicion."""

    text: str
    change: Callable[[Motion, Motion], Motion]
    """From what was augmented and what was observed to what should have been."""


def in_fields(text: str, fields: Sequence[Field], change: OnRows) -> Repair:
    """The same repair of some fields, each on its own."""

    def repaired(said: Motion, seen: Motion) -> Motion:
        return said._replace(**{name: change(getattr(said, name), getattr(seen, name)) for name in fields})

    return Repair(text, repaired)


MOST_CHOICES = 10
"""Discrete actions up to which their orders are tried."""
_BOTH: tuple[Field, ...] = ("observation", "next_observation")
_SCOPES: tuple[tuple[tuple[Field, ...], str], ...] = (
    (_BOTH, ""),
    (("observation",), " in the observation alone"),
    (("next_observation",), " in the next observation alone"),
)


def signs(table: Sequence[Quantity], actions: int, entries: Mapping[str, list[int]]) -> Iterator[Repair]:
    """Every change of one sign."""
    for place, name in _names(table, entries).items():
        yield in_fields(f"the sign of {name} is wrong", _BOTH, _flipped([place]))
    for place in range(actions):
        yield in_fields(f"the sign of action {place} is wrong", ("action",), _flipped([place]))


def elementary(table: Sequence[Quantity], actions: int, entries: Mapping[str, list[int]]) -> Iterator[Repair]:
    """Every repair of one thing, the simplest first."""
    names = _names(table, entries)
    joints = {
        joint: list(places)
        for joint, places in groupby(
            sorted(range(len(table)), key=lambda place: table[place].joint), lambda place: table[place].joint
        )
        if joint
    }
    yield from _of_orientations(table)
    yield from signs(table, actions, entries)
    for place, name in names.items():
        for fields, where in _SCOPES[1:]:
            yield in_fields(f"the sign of {name} is wrong{where}", fields, _flipped([place]))
    for joint, places in joints.items():
        yield in_fields(f"the sign of joint '{joint}' is wrong", _BOTH, _flipped(places))
    for entry, its in entries.items():
        text = f"{entry} must be the same in observation and next observation"
        yield Repair(text, _same(its))
    for place, name in names.items():
        for fields, where in _SCOPES:
            yield in_fields(f"{name} must stay as observed{where}", fields, _kept([place]))
    for entry, its in entries.items():
        for fields, where in _SCOPES:
            yield in_fields(f"{entry} must stay as observed{where}", fields, _kept(its))
    for place in range(actions):
        yield in_fields(f"action {place} must stay as observed", ("action",), _kept([place]))
    if actions:
        yield in_fields("the action must stay as observed", ("action",), _kept(list(range(actions))))
        everything = list(range(actions))
        yield in_fields("the signs of all actions are wrong", ("action",), _flipped(everything))
    for one, other in combinations(range(actions), 2):
        text = f"actions {one} and {other} must be exchanged"
        yield in_fields(text, ("action",), _exchanged([one], [other]))
    for (one, its), (other, others) in combinations(joints.items(), 2):
        if len(its) == len(others):
            text = f"joints '{one}' and '{other}' must be exchanged"
            yield in_fields(text, _BOTH, _exchanged(its, others))
    for first, second in combinations(names, 2):
        if table[first].unit == table[second].unit:
            text = f"{names[first]} and {names[second]} must be exchanged"
            yield in_fields(text, _BOTH, _exchanged([first], [second]))


def _names(table: Sequence[Quantity], entries: Mapping[str, list[int]]) -> dict[int, str]:
    """What each number is called, and where it stands, unless its name is that."""
    called = {}
    for place, quantity in enumerate(table):
        where = f"observation {place}"
        named = f"'{quantity.name}'" + ("" if entries else f" ({where})")
        called[place] = where if quantity.name == where and not entries else named
    return called


def of_choices(choices: int | None, stale: bool) -> Iterator[Repair]:
    """Repairs of actions that are whole numbers: two of them exchanged, or all in the other order."""
    reason = "the action is that of the observed transition: " if stale else ""
    if choices is None or choices > MOST_CHOICES:
        return
    orders = {
        f"actions {one} and {other} must be exchanged": {one: other, other: one}
        for one, other in combinations(range(choices), 2)
    }
    if choices > 3:
        text = f"actions 0 to {choices - 1} must be in the other order"
        orders[text] = {choice: choices - 1 - choice for choice in range(choices)}
    for text, moves in orders.items():
        order = np.array([moves.get(choice, choice) for choice in range(choices)])
        yield in_fields(reason + text, ("action",), lambda said, seen, order=order: order[said])  # type: ignore[misc]


def _of_orientations(table: Sequence[Quantity]) -> Iterator[Repair]:
    """Mistakes in handling a free joint: the order of its quaternion, the frames of its velocities."""

    def places(joint: str, quantity: str) -> list[int]:
        return [
            place
            for place, own in enumerate(table)
            if own.joint == joint and own.quantity.startswith(quantity)
        ]

    for joint, orientation in quaternions(table):
        linear, angular = places(joint, "velocity"), places(joint, "angular velocity")
        what = f"the quaternion of '{joint}' (observations {orientation[0]} to {orientation[-1]})"
        w, x, y, z = orientation
        order = _moved((w, x, y, z), (z, w, x, y))
        yield in_fields(f"{what} is in the order x, y, z, w: MuJoCo's is w, x, y, z", _BOTH, order)
        yield in_fields(f"{what} is inverted", _BOTH, _flipped([x, y, z]))
        yield in_fields(f"{what} is multiplied from the wrong side", _BOTH, _other_side(orientation))
        if angular:
            text = f"the angular velocity of '{joint}' (observations {angular[0]} to {angular[-1]})"
            kept = f"{text} is in the body's own frame: it must stay as observed"
            yield in_fields(kept, _BOTH, _kept(angular))
            yield in_fields(f"the sign of {text} is wrong", _BOTH, _flipped(angular))
        if linear:
            text = f"the velocity of '{joint}' (observations {linear[0]} to {linear[-1]})"
            rotated = f"{text} is in the world's frame: it must rotate with the robot"
            yield in_fields(rotated, _BOTH, _rotated(orientation, linear))
            yield in_fields(f"{text} must stay as observed", _BOTH, _kept(linear))
        yield in_fields(f"{what} must stay as observed", _BOTH, _kept(orientation))


def _flipped(places: list[int]) -> OnRows:
    def change(said: Rows, seen: Rows) -> Rows:
        repaired = said.copy()
        repaired[:, places] *= -1
        return repaired

    return change


def _kept(places: list[int]) -> OnRows:
    def change(said: Rows, seen: Rows) -> Rows:
        repaired = said.copy()
        repaired[:, places] = seen[:, places]
        return repaired

    return change


def _moved(to: Sequence[int], source: Sequence[int]) -> OnRows:
    def change(said: Rows, seen: Rows) -> Rows:
        repaired = said.copy()
        repaired[:, to] = said[:, source]
        return repaired

    return change


def _exchanged(one: list[int], other: list[int]) -> OnRows:
    return _moved([*one, *other], [*other, *one])


def _same(places: list[int]) -> Callable[[Motion, Motion], Motion]:
    """In the next observation as in the observation."""

    def repaired(said: Motion, seen: Motion) -> Motion:
        following = said.next_observation.copy()
        following[:, places] = said.observation[:, places]
        return said._replace(next_observation=following)

    return repaired


def _rotation(quaternions: Rows) -> Rotation:
    """The rotations of quaternions; no rotation where the numbers are no quaternion."""
    none = ~(np.linalg.norm(quaternions, axis=1, keepdims=True) > 0)
    return Rotation.from_quat(np.where(none, (1.0, 0.0, 0.0, 0.0), quaternions), scalar_first=True)


def _rotated(orientation: list[int], vector: list[int]) -> OnRows:
    """Rotate an observed vector as the orientation was rotated."""

    def change(said: Rows, seen: Rows) -> Rows:
        now, before = (_rotation(rows[:, orientation]) for rows in (said, seen))
        repaired = said.copy()
        repaired[:, vector] = (now * before.inv()).apply(seen[:, vector])
        return repaired

    return change


def _other_side(orientation: list[int]) -> OnRows:
    """Multiply by the same rotation from the left."""

    def change(said: Rows, seen: Rows) -> Rows:
        now, before = (_rotation(rows[:, orientation]) for rows in (said, seen))
        length = np.linalg.norm(seen[:, orientation], axis=1, keepdims=True)
        turned = ((before.inv() * now) * before).as_quat(scalar_first=True)
        product = said[:, orientation]
        repaired = said.copy()
        # Of the two quaternions of a rotation, the one on the side of what was claimed.
        sign = np.where((turned * product).sum(1, keepdims=True) < 0, -1, 1)
        repaired[:, orientation] = sign * turned * length
        return repaired

    return change
