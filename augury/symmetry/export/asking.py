"""Whether the simulator agrees with a map, before it is written; and which tolerance its test may have."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from augury.symmetry.export.simulator import Simulator, relative_error
from augury.symmetry.export.tables import offsets_of, rows_of
from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.observed.mirror import ACTION, TermsMirror, Vector

SEEDS = range(5)
EXACT = 1e-6
"""The tolerance of models that are symmetric but for rounding."""
ROOM = 10.0
"""How many times the error found here a test allows."""
WORST = 0.1
"""A map with a larger error is wrong, or belongs to a model that is not symmetric."""


class Tolerances(NamedTuple):
    """What a generated test allows."""

    terms: float
    """Of observations, and of where bodies are; relative to the largest number where that is above 1."""
    effects: float
    """Of what an action does; relative to it."""


def plane_of(mirror: TermsMirror) -> tuple[Array, Array]:
    """The reflection of points in the world: a matrix and an offset."""
    normal = mirror.robot.mirror.normal
    return np.eye(3) - 2 * np.outer(normal, normal), np.zeros(3)


def simulator_of(mirror: TermsMirror) -> Simulator:
    """The model, and what is needed to mirror its states."""
    own = mirror.robot
    return Simulator(
        copy.copy(own.model),
        plane_of(mirror),
        (rows_of(own.mirror.qpos), offsets_of(own.mirror.qpos)),
        rows_of(own.mirror.qvel),
        own.body_images,
        own.anatomy.qpos.tolist(),
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
    terms = [_refused(error, what) for error, what in _differences(mirror, simulator)]
    effects = [_refused(error, what) for error, what in _effects(mirror, simulator)]
    return Tolerances(*(max(EXACT, ROOM * max(each)) for each in (terms, effects)))


def _refused(error: float, what: str) -> float:
    if error > WORST:
        raise SymmetryError(
            f"the simulator does not agree with the map: {what} is off by {error:.2g} in the mirror"
        )
    return error


def _differences(mirror: TermsMirror, simulator: Simulator) -> Iterator[tuple[float, str]]:
    for seed in SEEDS:
        yield simulator.state_error(seed)
        for vector in mirror.vectors.values():
            here, there, _ = simulator.observed(layout(mirror, vector), seed, {})
            for number, expected, found in zip(vector.numbers, there, vector.map(here), strict=True):
                yield relative_error(expected, found), f"{number.name} in the term '{number.term}'"


def _effects(mirror: TermsMirror, simulator: Simulator) -> Iterator[tuple[float, str]]:
    action = mirror.vectors[ACTION]
    how = action.terms[0].measured(mirror.robot)
    for place, number in enumerate(action.numbers):
        values = 0.1 * np.eye(len(action))[place]
        yield simulator.effect_error(0, how, values, action.map.matrix @ values), f"the action {number.name}"
