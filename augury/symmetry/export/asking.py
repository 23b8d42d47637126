"""Whether the simulator agrees with a map, before it is written; and which tolerance its test may have."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from augury.envs.mujoco.quantities import joint_name
from augury.symmetry.export.simulator import Simulator, relative_error
from augury.symmetry.export.tables import offsets_of, rows_of
from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.observed.mirror import ACTION, TermsMirror, Vector

SEEDS = range(5)
EXACT = 1e-6
"""The tolerance of models that are symmetric but for rounding."""
ROOM = 10.0
"""How many times the error found here a test allows."""
WORST = 0.3
"""A map with a larger error is wrong, or of a model that is not symmetric; a wrong sign makes 1 or 2."""


class Tolerances(NamedTuple):
    """What a generated test allows."""

    bodies: float
    """Of where bodies are, and how they move; relative to the largest number where that is above 1."""
    terms: float
    """Of observations, likewise."""
    effects: float
    """Of what an action does; relative to it."""


def plane_of(mirror: TermsMirror) -> tuple[Array, Array]:
    """The reflection of points in the world: a matrix and an offset."""
    normal, distance = mirror.robot.mirror.normal, mirror.robot.mirror.distance
    return np.eye(3) - 2 * np.outer(normal, normal), 2 * distance * normal


def still_joints(mirror: TermsMirror) -> list[str]:
    """Joints that are not mirrored, where only a part of the robot is: the simulator keeps them still."""
    return mirror.robot.mirror.left_out.get("joint", [])


def compared_bodies(mirror: TermsMirror) -> list[int | None]:
    """The mirror image of every body; none of those that joints move which are not mirrored.

    Nor of bodies that are fixed to another: that one's motion says all, and a camera may sit on one side.
    """
    own, model = mirror.robot, mirror.robot.model
    still = {joint for joint in range(model.njnt) if joint_name(model, joint) in still_joints(mirror)}
    moved: set[int] = set()
    for body in range(1, model.nbody):  # parents come first
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        if model.body_parentid[body] in moved or still & {*range(first, first + count)}:
            moved.add(body)
    return [
        None if body in moved or not model.body_jntnum[body] else image
        for body, image in enumerate(own.body_images)
    ]


def mirrored_actions(mirror: TermsMirror) -> list[int]:
    """The actions of what is mirrored."""
    left_out = {name for names in mirror.robot.mirror.left_out.values() for name in names}
    return [
        place for place, number in enumerate(mirror.vectors[ACTION].numbers) if number.owner not in left_out
    ]


def simulator_of(mirror: TermsMirror) -> Simulator:
    """The model, and what is needed to mirror its states."""
    own = mirror.robot
    return Simulator(
        copy.copy(own.model),
        plane_of(mirror),
        (rows_of(own.mirror.qpos), offsets_of(own.mirror.qpos)),
        rows_of(own.mirror.qvel),
        compared_bodies(mirror),
        own.anatomy.qpos.tolist(),
        still_joints(mirror),
    )


def layout(mirror: TermsMirror, vector: Vector) -> dict[str, Any]:
    """What a vector holds, as the simulator is asked for it."""
    own = mirror.robot
    terms = {
        term.label: term.measured(own) | {"history": term.history, "size": len(term.frame(own))}
        for term in vector.terms
    }
    return {"size": len(vector), "history": vector.history, "terms": terms}


def tolerances(mirror: TermsMirror) -> Tolerances:
    """Ask the simulator about every term and every action; a map that it contradicts is refused."""
    simulator = simulator_of(mirror)
    asked = (
        (simulator.state_error(seed) for seed in SEEDS),
        _differences(mirror, simulator),
        _effects(mirror, simulator),
    )
    return Tolerances(*map(_allowed, asked))


def _allowed(found: Iterable[tuple[float, str]]) -> float:
    error, what = max(found, default=(0.0, ""))
    if error > WORST:
        raise SymmetryError(
            f"the simulator does not agree with the map: {what} is off by {error:.2g} in the mirror"
        )
    return float(np.clip(ROOM * error, EXACT, WORST))


def _differences(mirror: TermsMirror, simulator: Simulator) -> Iterator[tuple[float, str]]:
    for seed in SEEDS:
        for vector in mirror.vectors.values():
            here, there, _ = simulator.observed(layout(mirror, vector), seed, {})
            for number, expected, found in zip(vector.numbers, there, vector.map(here), strict=True):
                yield relative_error(expected, found), f"{number.name} in the term '{number.term}'"


def _effects(mirror: TermsMirror, simulator: Simulator) -> Iterator[tuple[float, str]]:
    action = mirror.vectors[ACTION]
    how = action.terms[0].measured(mirror.robot)
    for place in mirrored_actions(mirror):
        values, name = 0.1 * np.eye(len(action))[place], action.numbers[place].name
        yield simulator.effect_error(0, how, values, action.map.matrix @ values), f"the action {name}"
