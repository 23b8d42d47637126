"""Ask the simulator whether the image of a state moves as the image of its motion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import mujoco
import numpy as np

from augury.symmetry.maps import AffineMap, Array, Symmetry
from augury.symmetry.motions import HORIZONS, Motion, followed
from augury.symmetry.occurring import State, occurring, silence
from augury.symmetry.pairing.names import label
from augury.symmetry.reflection import Reflection
from augury.symmetry.touches import unlike_contacts

SIMULATED_TOLERANCE = 1e-6
"""Largest error of one step of a model that is called exact."""
STATES = 90
"""That are simulated for one step."""
BEYOND = 0.01
"""An error of a position that counts as large, in metres or radians."""


@dataclass(frozen=True)
class Spread:
    """How errors are distributed over states."""

    seconds: float
    """After how long."""
    states: int
    """How many these are."""
    median: float
    high: float
    """99% of the states have at most this one."""
    largest: float
    beyond: float
    """The share of the states with errors above `BEYOND`."""

    @classmethod
    def of(cls, seconds: float, errors: Sequence[float]) -> Spread:
        """The spread of these errors."""
        given = np.array(errors if len(errors) else [np.inf])
        middle, high = np.quantile(given, [0.5, 0.99], method="higher")
        return cls(
            seconds,
            len(errors),
            float(middle),
            float(high),
            float(given.max()),
            float((given > BEYOND).mean()),
        )


@dataclass(frozen=True)
class Simulated:
    """What the simulator says of a symmetry."""

    states: int
    unstable: int
    """States that were left out, because the simulator gave them up."""
    step: Spread
    """Errors of positions, velocities, activations and sensors after one step."""
    followed: int = 0
    """States that were followed for longer."""
    horizons: tuple[Spread, ...] = ()
    """Errors of positions after some time."""
    unexplained: float = 0.0
    """The largest error of one step that is not due to contacts found differently."""
    acceleration: float = 0.0
    """The median error of the acceleration, relative to the acceleration."""
    contacts: tuple[tuple[str, str, int], ...] = ()
    """Pairs of geoms whose contacts MuJoCo does not find mirrored, and in how many states."""

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a program to read."""
        return asdict(self) | {"bound": BEYOND}


def simulated(
    model: mujoco.MjModel,
    symmetry: Symmetry,
    states: Iterable[State],
    *,
    count: int,
    motions: Sequence[Motion] = (),
) -> Simulated:
    """Simulate states beside their images for a step, and the images of motions for as long as these.

    Parameters that the audit does not know are noticed all the same. Differences after a step are relative to
    the largest number of the state, where that is above 1. Sensor readings that have a map count too.
    """
    with silence():
        given = list(states)
        pair = _Pair(model, symmetry)
        at_once, shares, unexplained = [], [], 0.0
        unlike: Counter[tuple[int, int]] = Counter()
        for state in given:
            error, share = pair.step(state)
            at_once.append(error)
            shares.append(share)
            if error > SIMULATED_TOLERANCE:
                due = pair.unlike_contacts(state)
                unlike.update(due)
            if error <= SIMULATED_TOLERANCE or not due:
                unexplained = max(unexplained, error)
        along = [errors for motion in motions if (errors := pair.follow(motion))]
    return Simulated(
        states=len(given),
        unstable=count - len(given) + len(motions) - len(along),
        step=Spread.of(model.opt.timestep, at_once),
        followed=len(along),
        horizons=tuple(
            Spread.of(seconds, [errors[place] for errors in along if place < len(errors)])
            for place, seconds in enumerate(HORIZONS[: max((each.horizons for each in motions), default=0)])
        ),
        unexplained=unexplained if given else np.inf,
        acceleration=float(np.median(shares)) if given else np.inf,
        contacts=tuple(
            (label(model, "geom", first), label(model, "geom", second), number)
            for (first, second), number in unlike.most_common()
        ),
    )


def simulated_error(model: mujoco.MjModel, symmetry: Symmetry, samples: int = 200, seed: int = 0) -> float:
    """The largest difference between a mapped next state and the next state of the mapped one.

    Contacts that MuJoCo itself does not find mirrored are no fault of the model, and left out.
    """
    return simulated(model, symmetry, occurring(model, samples, seed), count=samples).unexplained


class _Pair:
    """A state and its image, simulated side by side."""

    def __init__(self, model: mujoco.MjModel, symmetry: Symmetry):
        self.model, self.symmetry = model, symmetry
        self.data, self.image = mujoco.MjData(model), mujoco.MjData(model)
        unknown = np.isnan(symmetry.sensors.matrix)
        self.known = np.flatnonzero(~unknown.any(1))
        self.sensors = AffineMap(np.where(unknown, 0.0, symmetry.sensors.matrix), symmetry.sensors.offset)

    def step(self, state: State) -> tuple[float, float]:
        """The largest error after one step, and that of the change of velocity, relative to this change."""
        self._put(state)
        for each in (self.data, self.image):
            mujoco.mj_step(self.model, each)
        symmetry, data, image = self.symmetry, self.data, self.image
        change = np.abs(data.qvel - state.qvel).max(initial=0)
        apart = np.abs(symmetry.qvel(data.qvel) - image.qvel).max(initial=0)
        share = float(apart / change) if change else 0.0
        worst = max(
            _difference(mapped, actual)
            for mapped, actual in (
                (symmetry.qpos(data.qpos), image.qpos),
                (symmetry.qvel(data.qvel), image.qvel),
                (symmetry.act(data.act), image.act),
                (self.sensors(data.sensordata)[self.known], image.sensordata[self.known]),
            )
        )
        return worst, share

    def follow(self, motion: Motion) -> list[float]:
        """The largest error of a position after each horizon; nothing if the simulator gives up."""
        if not motion.positions:
            return []
        start, controls = self._image(motion.start), self.symmetry.ctrl(motion.controls)
        return [
            float(np.abs(self.symmetry.qpos(own) - image).max(initial=0))
            for own, image in zip(
                motion.positions, followed(self.model, self.image, start, controls), strict=False
            )
        ]

    def unlike_contacts(self, state: State) -> set[tuple[int, int]]:
        """Pairs of geoms whose contacts are not found mirrored."""
        if not isinstance(self.symmetry, Reflection):
            return set()
        self._put(state)
        for each in (self.data, self.image):
            mujoco.mj_forward(self.model, each)
        return unlike_contacts(self.model, self.symmetry, self.data, self.image)

    def _put(self, state: State) -> None:
        state.put(self.model, self.data)
        self._image(state).put(self.model, self.image)

    def _image(self, state: State) -> State:
        symmetry = self.symmetry
        return State(
            state.time,
            symmetry.qpos(state.qpos),
            symmetry.qvel(state.qvel),
            symmetry.act(state.act),
            symmetry.ctrl(state.ctrl),
        )


def _difference(mapped: Array, actual: Array) -> float:
    scale = max(1.0, float(np.abs(actual).max(initial=0)))
    difference = float(np.abs(mapped - actual).max(initial=0)) / scale
    return difference if np.isfinite(difference) else np.inf
