"""Repairs that follow from what an augmentation does elsewhere: velocities as positions, motors as joints.

Which number of an augmented transition is which of the observed one, and with which sign, is read off the
transitions themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from augury.envs.mujoco.quantities import Quantity, joint_name
from augury.verify.repairs import Field, Motion, Repair, Rows, in_fields

Sources = dict[str, tuple[str, int]]
"""Which joint a joint was made of, and with which sign."""

FITTED = 1e-9


def inferred(table: Sequence[Quantity], model: Any, said: Motion, seen: Motion) -> Iterator[Repair]:
    """Every such repair."""
    both: tuple[Field, Field] = ("observation", "next_observation")
    for leading, following, text in (
        ("qpos", "qvel", "the velocities of joints must be mapped as their positions are"),
        ("qvel", "qpos", "the positions of joints must be mapped as their velocities are"),
    ):
        sources = joint_sources(table, leading, said.observation, seen.observation)
        if any(source != (joint, 1) for joint, source in sources.items()):
            yield in_fields(text, both, _as_joints(table, following, sources))
    if model is not None and said.action.ndim == 2 and model.nu == said.action.shape[1]:
        for leading in ("qpos", "qvel"):
            sources = joint_sources(table, leading, said.observation, seen.observation)
            actuated = [joint_name(model, int(joint)) for joint in model.actuator_trnid[:, 0]]
            moves = _actuator_sources(actuated, sources)
            if moves is not None:
                stale = np.array_equal(said.action, seen.action)
                text = "the action is that of the observed transition: " * stale + _motors(moves)
                yield in_fields(text, ("action",), _as_sources(moves))
    if said.action.ndim == 2 and said.action.shape[1] % 2 == 0 and said.action.shape[1] > 2:
        half = said.action.shape[1] // 2
        halves = [*range(half, 2 * half), *range(half)]
        text = f"actions 0 to {half - 1} must be exchanged with {half} to {2 * half - 1}"
        yield in_fields(text, ("action",), lambda rows, _: rows[:, halves])
    for changed, other in (both, both[::-1]):
        yield from _as_the_other(changed, other, said, seen)


def joint_sources(table: Sequence[Quantity], kind: str, said: Rows, seen: Rows) -> Sources:
    """Where the numbers of joints with one position come from."""
    places = [place for place, one in enumerate(table) if one.kind == kind and one.joint]
    counts: Mapping[str, int] = {
        joint: sum(table[place].joint == joint for place in places) for joint in {one.joint for one in table}
    }
    places = [place for place in places if counts[table[place].joint] == 1]
    found: Sources = {}
    for place in places:
        for source in sorted(places, key=lambda other: other != place):
            for sign in (1, -1):
                if table[place].joint not in found and np.array_equal(said[:, place], sign * seen[:, source]):
                    found[table[place].joint] = (table[source].joint, sign)
    return found


def _as_joints(table: Sequence[Quantity], kind: str, sources: Sources) -> Any:
    where = {one.joint: place for place, one in enumerate(table) if one.kind == kind}
    moves = {
        where[joint]: (where[source], sign)
        for joint, (source, sign) in sources.items()
        if joint in where and source in where
    }
    return _as_sources(moves)


def _actuator_sources(actuated: Sequence[str], sources: Sources) -> dict[int, tuple[int, int]] | None:
    """Which motor each is made of, if the joints of all of them are known."""
    if not all(joint in sources and sources[joint][0] in actuated for joint in actuated):
        return None
    return {
        motor: (actuated.index(sources[joint][0]), sources[joint][1]) for motor, joint in enumerate(actuated)
    }


def _motors(moves: Mapping[int, tuple[int, int]]) -> str:
    mapped = [
        f"action {motor} is {'-' if sign < 0 else ''}{source}"
        for motor, (source, sign) in moves.items()
        if (motor, 1) != (source, sign)
    ]
    return f"actions must be mapped as their joints are: {', '.join(mapped) or 'all stay as observed'}"


def _as_sources(moves: Mapping[int, tuple[int, int]]) -> Any:
    def change(said: Rows, seen: Rows) -> Rows:
        repaired = said.copy()
        for place, (source, sign) in moves.items():
            repaired[:, place] = sign * seen[:, source]
        return repaired

    return change


def _as_the_other(changed: Field, other: Field, said: Motion, seen: Motion) -> Iterator[Repair]:
    """What happened to one observation happens to the other: a linear map, or a shift."""
    before, after, target = getattr(seen, changed), getattr(said, changed), getattr(seen, other)
    if not np.array_equal(getattr(said, other), target) or np.array_equal(before, after):
        return  # it was augmented
    spoken = other.replace("_", " ")
    text = f"the {spoken} is that of the observed transition: augment it too"
    inputs = np.column_stack([before, np.ones(len(before))])
    fit, *_ = np.linalg.lstsq(inputs, after, rcond=None)
    if len(before) > inputs.shape[1] and np.abs(inputs @ fit - after).max() < FITTED:
        yield in_fields(text, (other,), lambda _, rows: np.column_stack([rows, np.ones(len(rows))]) @ fit)

    def shifted(one: Motion, observed: Motion) -> Motion:
        shift = getattr(one, changed) - getattr(observed, changed)
        return one._replace(**{other: getattr(observed, other) + shift})

    yield Repair(text, shifted)
