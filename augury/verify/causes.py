"""Why an augmentation is wrong, where that can be recognised.

A suspicion is a small repair: flip this sign, exchange that pair, leave this alone. The simulator is asked
about every one of them; the first that it agrees with on all transitions tried is the likely cause. Of a dict
of vectors the same is tried with its entries side by side, and with whole entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from augury.envs.mujoco.quantities import Quantity
from augury.transition import Transition
from augury.verify.base import Simulator
from augury.verify.observations import flat, places_of, unflat

Rows = npt.NDArray[np.float64]
Fields = tuple[Literal["observation", "next_observation", "action"], ...]
Change = Callable[[Rows, Rows], Rows]

FIRST_LOOK, SECOND_LOOK = 3, 16
"""Transitions tried with every repair, and with those that pass the first look."""

_BOTH: Fields = ("observation", "next_observation")
_SCOPES: tuple[tuple[Fields, str], ...] = (
    (_BOTH, ""),
    (("observation",), " in the observation alone"),
    (("next_observation",), " in the next observation alone"),
)


class Repair(NamedTuple):
    """One suspicion."""

    text: str
    fields: Fields
    change: Change
    """From what was augmented and what was observed to what should have been."""


def stale(observed: Transition, augmented: Transition, field: str, wrong: npt.NDArray[np.bool_]) -> bool:
    """Whether a field was simply left as it was observed, in every transition where it is wrong."""
    return bool((flat(getattr(augmented, field))[wrong] == flat(getattr(observed, field))[wrong]).all())


def torn(observed: Transition, augmented: Transition, wrong: npt.NDArray[np.bool_]) -> str | None:
    """An entry that no observed step changes, as a desired goal, but all of the augmented ones do."""
    for entry in places_of(observed.observation):
        changes = [
            (one.observation[entry][wrong] != one.next_observation[entry][wrong]).any(1)
            for one in (observed, augmented)
        ]
        if changes[1].all() and not changes[0].any():
            return f"{entry} must be the same in observation and next observation"
    return None


def recognised(
    simulator: Simulator, observed: Transition, augmented: Transition, tolerance: float
) -> str | None:
    """The first repair that makes these transitions, all of them invalid, valid."""
    numbers = augmented.action.shape[1] if augmented.action.ndim > 1 else 0  # a discrete action has none
    suspects = list(_repairs(simulator.table, numbers, places_of(observed.observation)))
    for rows in (FIRST_LOOK, SECOND_LOOK):
        suspects = _passing(simulator, observed, augmented, suspects, rows, tolerance)
    return suspects[0].text if suspects else None


def _passing(
    simulator: Simulator,
    observed: Transition,
    augmented: Transition,
    suspects: Sequence[Repair],
    rows: int,
    tolerance: float,
) -> list[Repair]:
    """The repairs that the simulator agrees with, asked in one go."""
    if not suspects:
        return []

    def repaired(repair: Repair, field: str) -> Rows:
        said, seen = (flat(getattr(one, field))[:rows] for one in (augmented, observed))
        return repair.change(said, seen) if field in repair.fields else said

    observation, following, action = (
        np.concatenate([repaired(repair, field) for repair in suspects])
        for field in ("observation", "next_observation", "action")
    )
    extras = {
        name: np.concatenate([values[:rows]] * len(suspects)) for name, values in augmented.extras.items()
    }
    answer = simulator.ask(unflat(observation, observed.observation), extras, action)
    errors = np.abs(flat(answer.next_observation) - following)
    if answer.observation is not None:
        errors = np.maximum(errors, np.abs(flat(answer.observation) - observation))
    errors = errors.reshape(len(suspects), -1)
    return [repair for repair, row in zip(suspects, errors, strict=True) if (row <= tolerance).all()]


def _repairs(table: Sequence[Quantity], actions: int, entries: Mapping[str, list[int]]) -> Iterator[Repair]:
    """Every suspicion, the simplest first."""
    names = {
        place: f"'{quantity.name}'" + ("" if entries else f" (observation {place})")
        for place, quantity in enumerate(table)
    }
    joints = {
        joint: list(places)
        for joint, places in groupby(
            sorted(range(len(table)), key=lambda place: table[place].joint), lambda place: table[place].joint
        )
        if joint
    }
    yield from _of_orientations(table)
    for place, name in names.items():
        for fields, where in _SCOPES:
            yield Repair(f"the sign of {name} is wrong{where}", fields, _flipped([place]))
    for place in range(actions):
        yield Repair(f"the sign of action {place} is wrong", ("action",), _flipped([place]))
    for joint, places in joints.items():
        yield Repair(f"the sign of joint '{joint}' is wrong", _BOTH, _flipped(places))
    for place, name in names.items():
        for fields, where in _SCOPES:
            yield Repair(f"{name} must stay as observed{where}", fields, _kept([place]))
    for entry, its in entries.items():
        for fields, where in _SCOPES:
            yield Repair(f"{entry} must stay as observed{where}", fields, _kept(its))
    for place in range(actions):
        yield Repair(f"action {place} must stay as observed", ("action",), _kept([place]))
    if actions:
        yield Repair("the action must stay as observed", ("action",), _kept(list(range(actions))))
    for one, other in combinations(range(actions), 2):
        yield Repair(f"actions {one} and {other} must be exchanged", ("action",), _exchanged([one], [other]))
    for (one, its), (other, others) in combinations(joints.items(), 2):
        if len(its) == len(others):
            text = f"joints '{one}' and '{other}' must be exchanged"
            yield Repair(text, _BOTH, _exchanged(its, others))
    for one, other in combinations(names, 2):
        if table[one].unit == table[other].unit:
            text = f"{names[one]} and {names[other]} must be exchanged"
            yield Repair(text, _BOTH, _exchanged([one], [other]))


def _of_orientations(table: Sequence[Quantity]) -> Iterator[Repair]:
    """Mistakes in handling a free joint: the order of its quaternion, the frames of its velocities."""

    def places(joint: str, quantity: str) -> list[int]:
        return [
            place
            for place, own in enumerate(table)
            if own.joint == joint and own.quantity.startswith(quantity)
        ]

    for joint in dict.fromkeys(quantity.joint for quantity in table if quantity.quantity == "quaternion w"):
        orientation = places(joint, "quaternion")
        linear, angular = places(joint, "velocity"), places(joint, "angular velocity")
        what = f"the quaternion of '{joint}' (observations {orientation[0]} to {orientation[-1]})"
        w, x, y, z = orientation
        yield Repair(
            f"{what} is in the order x, y, z, w: MuJoCo's is w, x, y, z",
            _BOTH,
            _moved((w, x, y, z), (z, w, x, y)),
        )
        yield Repair(f"{what} is inverted", _BOTH, _flipped([x, y, z]))
        if angular:
            text = f"the angular velocity of '{joint}' (observations {angular[0]} to {angular[-1]})"
            yield Repair(
                f"{text} is in the body's own frame: it must stay as observed", _BOTH, _kept(angular)
            )
            yield Repair(f"the sign of {text} is wrong", _BOTH, _flipped(angular))
        if linear:
            text = f"the velocity of '{joint}' (observations {linear[0]} to {linear[-1]})"
            yield Repair(
                f"{text} is in the world's frame: it must rotate with the robot",
                _BOTH,
                _rotated(orientation, linear),
            )
            yield Repair(f"{text} must stay as observed", _BOTH, _kept(linear))
        yield Repair(f"{what} must stay as observed", _BOTH, _kept(orientation))


def _flipped(places: list[int]) -> Change:
    def change(said: Rows, seen: Rows) -> Rows:
        repaired = said.copy()
        repaired[:, places] *= -1
        return repaired

    return change


def _kept(places: list[int]) -> Change:
    def change(said: Rows, seen: Rows) -> Rows:
        repaired = said.copy()
        repaired[:, places] = seen[:, places]
        return repaired

    return change


def _moved(to: Sequence[int], source: Sequence[int]) -> Change:
    def change(said: Rows, seen: Rows) -> Rows:
        repaired = said.copy()
        repaired[:, to] = said[:, source]
        return repaired

    return change


def _exchanged(one: list[int], other: list[int]) -> Change:
    return _moved([*one, *other], [*other, *one])


def _rotation(quaternions: Rows) -> Rotation:
    """The rotations of quaternions; no rotation where the numbers are no quaternion."""
    none = ~(np.linalg.norm(quaternions, axis=1, keepdims=True) > 0)
    return Rotation.from_quat(np.where(none, (1.0, 0.0, 0.0, 0.0), quaternions), scalar_first=True)


def _rotated(orientation: list[int], vector: list[int]) -> Change:
    """Rotate an observed vector as the orientation was rotated."""

    def change(said: Rows, seen: Rows) -> Rows:
        now, before = (_rotation(rows[:, orientation]) for rows in (said, seen))
        repaired = said.copy()
        repaired[:, vector] = (now * before.inv()).apply(seen[:, vector])
        return repaired

    return change
