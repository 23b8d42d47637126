"""A second of motion from states that occur, under random controls.

Each is simulated once. The motion of its mirror image, and that of a model in which something is put right,
are compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from augury.symmetry.maps import Array
from augury.symmetry.occurring import HOLD, State, near, silence, stable

HORIZONS = (0.1, 1.0)
"""For how long states are followed, in seconds."""
FOLLOWED = 20
"""States, settled or driven, that are followed to the first horizon, at most."""
FEWEST = 4
"""States that are followed to the last horizon, at least."""
_MOST_STEPS = 4_000
"""Of all motions together; where time steps are small, fewer states are followed."""
_LONGEST = 5_000
"""Steps of one motion; where the last horizon takes more, none is followed until then."""


@dataclass(frozen=True)
class Motion:
    """Where a state leads."""

    start: State
    controls: Array
    """In rows; each is held for a while."""
    horizons: int
    """How many of them it is followed to."""
    positions: list[Array]
    """After each of these; empty if the simulator gave up."""

    @property
    def whole(self) -> bool:
        """Whether it reached the last horizon."""
        return len(self.positions) == len(HORIZONS)


def motions(model: mujoco.MjModel, states: Sequence[State], most: int = FOLLOWED) -> list[Motion]:
    """The motions from the first of the states that are settled or driven: some to the last horizon."""
    soon, later = _holds(model)
    to_first = min(most, max(FEWEST, _MOST_STEPS // 2 // sum(soon)))
    to_last = max(FEWEST, (_MOST_STEPS - to_first * sum(soon)) // sum(later))
    if steps_of(model) > _LONGEST:
        to_last = 0
    data, found = mujoco.MjData(model), []
    with silence():
        for number, start in enumerate([each for each in states if each.kind != "any pose"][:to_first]):
            horizons = 2 if number < to_last else 1
            count = sum(map(len, _holds(model)[:horizons]))
            controls = near(model, start.ctrl, np.random.default_rng([1, number]), count)
            found.append(Motion(start, controls, horizons, followed(model, data, start, controls)))
    return found


def followed(model: mujoco.MjModel, data: mujoco.MjData, start: State, controls: Array) -> list[Array]:
    """The positions after each horizon until the controls end; none if the simulator gives up."""
    start.put(model, data)
    positions: list[Array] = []
    for holds in _holds(model):
        now, controls = controls[: len(holds)], controls[len(holds) :]
        if not len(now):
            break
        for steps, data.ctrl[:] in zip(holds, now, strict=True):
            mujoco.mj_step(model, data, steps)
        if not stable(data):
            return []
        positions.append(data.qpos.copy())
    return positions


def steps_of(model: mujoco.MjModel) -> int:
    """How many steps a motion takes."""
    return sum(map(sum, _holds(model)))


def _holds(model: mujoco.MjModel) -> list[list[int]]:
    """For how many steps each control is held, until the first horizon, then until the second."""
    hold, done, holds = max(1, round(HOLD / model.opt.timestep)), 0, []
    for seconds in HORIZONS:
        left = max(1, round(seconds / model.opt.timestep) - done)
        holds.append([min(hold, left - start) for start in range(0, left, hold)])
        done += left
    return holds
