"""Is an augmented transition one that occurs at all? Dynamics may be right where nobody ever gets.

| outside | what |
|---|---|
| the space | an action or an observation beyond its bounds, a quaternion that is no rotation, a wall passed |
| the task's goals | a goal that the task never sets: some augmentations do that on purpose |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from augury.envs.mujoco.quantities import Quantity
from augury.transition import Transition
from augury.verify.base import Flags, Rows, Simulator
from augury.verify.observations import flat
from augury.verify.reports import Outside

UNUSUAL_LENGTH = 0.25
"""How far from 1 a quaternion's length is no noise: many tasks add some at the start of an episode."""
_ENDS = (("", "observation"), (" of the next observation", "next_observation"))


def outside_the_space(
    simulator: Simulator, observed: Transition, augmented: Transition
) -> tuple[Flags, tuple[Outside, ...]]:
    """Which augmented transitions lie outside, and in what; where observed ones do too, nothing is said."""
    anywhere, found = np.zeros(len(augmented.reward), bool), []
    for (name, distance), (_, usual) in zip(
        _distances(simulator, augmented), _distances(simulator, observed), strict=True
    ):
        if usual.any() or not distance.any():
            continue
        anywhere |= distance > 0
        found.append(Outside(name, int((distance > 0).sum()), float(distance.max())))
    return anywhere, tuple(sorted(found, key=lambda one: -one.transitions))


def outside_the_goals(simulator: Simulator, observed: Transition, augmented: Transition) -> int:
    """How many augmented transitions have a goal that the task never sets."""
    if not np.all(simulator.sets_goal(observed.observation)):
        return 0
    return int(np.sum(~np.asarray(simulator.sets_goal(augmented.observation))))


def _distances(simulator: Simulator, transition: Transition) -> Iterator[tuple[str, Rows]]:
    """How far outside each transition is, in one thing after the other."""
    action = np.asarray(transition.action, float).reshape(len(transition.reward), -1)
    if simulator.action_bounds is not None:
        for place, beyond in enumerate(simulator.action_bounds.beyond(action).T):
            yield f"action {place}", beyond
    for where, end in _ENDS:
        seen = getattr(transition, end)
        numbers = flat(seen).astype(float)
        if simulator.observation_bounds is not None:
            for quantity, beyond in zip(
                simulator.table, simulator.observation_bounds.beyond(numbers).T, strict=True
            ):
                yield quantity.name + where, beyond
        for joint, places in quaternions(simulator.table):
            length = np.linalg.norm(numbers[:, places], axis=1)
            yield f"the quaternion of '{joint}'{where}, which is no rotation", _excess(length)
        possible = np.asarray(simulator.is_possible(seen))
        yield f"what the task can show{where}", np.where(possible, 0.0, np.inf)


def quaternions(table: Sequence[Quantity]) -> Iterator[tuple[str, list[int]]]:
    """Joints with a whole quaternion in a table, and where it stands."""
    for joint in dict.fromkeys(quantity.joint for quantity in table if quantity.quantity == "quaternion w"):
        own = [
            place
            for place, one in enumerate(table)
            if one.joint == joint and one.quantity.startswith("quaternion")
        ]
        if len(own) == 4:
            yield joint, own


def _excess(length: Any) -> Rows:
    return np.maximum(np.abs(length - 1) - UNUSUAL_LENGTH, 0)
