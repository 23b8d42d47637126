"""Many copies of one MuJoCo model, advanced at once: pure functions from rows of numbers to rows of numbers.

A row is the state, on which alone the next step depends, and the readings at that state: [state | readings].
So a copy of the rows is a saved simulation, and any row can continue on another thread or in another process.

- `Rollout` steps in MuJoCo's own C++ threads. Its readings are sensors of positions and velocities, evaluated
  at exactly this state.
- `Stepped` keeps what Gymnasium keeps: the solver's warm start, and readings as `mj_step` leaves them, which
  are a little older than the state.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import mujoco
import mujoco.rollout
import numpy as np
import numpy.typing as npt

from augury.envs.mujoco.anatomy import Anatomy
from augury.errors import UserError

Rows = npt.NDArray[np.float64]

_PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
_EVERYTHING = mujoco.mjtState.mjSTATE_INTEGRATION.value
_STILL = (
    mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    | mujoco.mjtDisableBit.mjDSBL_CONTACT
    | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    | mujoco.mjtDisableBit.mjDSBL_SPRING
    | mujoco.mjtDisableBit.mjDSBL_DAMPER
)


class Physics(Protocol):
    """The simulator of a vector environment."""

    model: mujoco.MjModel
    anatomy: Anatomy
    """Of the model with its sensors."""
    first_reading: int
    """Column at which a row's readings begin."""
    seconds: float
    """By how much `advance` increases the time, which is a row's first number."""

    def start(self, qpos: Rows, qvel: Rows) -> Rows:
        """Rows at time 0, with these positions and velocities."""

    def advance(self, rows: Rows, control: Rows) -> Rows:
        """The rows after a number of simulator steps under constant controls."""

    def close(self) -> None: ...


CORES = "AUGURY_CORES"


def available_cores() -> int:
    """Cores that this process may use: AUGURY_CORES if that is set (tasks on a cluster set it), or all."""
    if given := os.environ.get(CORES):
        return int(given)
    has_affinity = hasattr(os, "sched_getaffinity")  # Linux has it, macOS does not
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def columns(model: mujoco.MjModel) -> tuple[slice, slice]:
    """Where a row holds qpos and qvel: after the time, in both kinds of physics."""
    return slice(1, 1 + model.nq), slice(1 + model.nq, 1 + model.nq + model.nv)


class Rollout:
    """Rows advanced by `mujoco.rollout`. A step depends on positions and velocities alone, not on the past.

    A row's numbers depend neither on the other rows nor on the number of threads.
    """

    def __init__(self, spec: mujoco.MjSpec, substeps: int, threads: int | None = None) -> None:
        # MuJoCo evaluates sensors at the beginning of a step. We read them at its end, by a second model that
        # does nothing else.
        self._observer = spec.compile()
        if np.any(self._observer.sensor_needstage == mujoco.mjtStage.mjSTAGE_ACC):
            raise UserError("a sensor of forces or accelerations cannot be read off a state")
        self._observer.opt.disableflags |= _STILL
        self._observer.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self.anatomy = Anatomy(self._observer)
        bare = spec.copy()
        for sensor in bare.sensors:
            bare.delete(sensor)
        self.model = bare.compile()
        self.first_reading = mujoco.mj_stateSize(self.model, _PHYSICS)
        self._width = self.first_reading + self._observer.nsensordata
        self._substeps = substeps
        self.seconds = substeps * self.model.opt.timestep
        threads = available_cores() if threads is None else max(threads, 1)
        self._pool = mujoco.rollout.Rollout(nthread=threads if threads > 1 else 0)
        self._here = mujoco.rollout.Rollout(nthread=0)
        self._data = [mujoco.MjData(self.model) for _ in range(threads)]
        self._observer_data = [mujoco.MjData(self._observer) for _ in range(threads)]

    def start(self, qpos: Rows, qvel: Rows) -> Rows:
        rows = np.zeros((len(qpos), self._width))
        at_qpos, at_qvel = columns(self.model)
        rows[:, at_qpos], rows[:, at_qvel] = qpos, qvel
        return self._read(rows)

    def advance(self, rows: Rows, control: Rows) -> Rows:
        after = np.empty_like(rows)
        after[:, : self.first_reading] = self.simulate(rows, control)
        return self._read(after)

    def simulate(self, rows: Rows, control: Rows) -> Rows:
        """The states after the steps, without readings."""
        states = np.empty((len(rows), self._substeps, self.first_reading))
        controls = np.repeat(control[:, None], self._substeps, 1)
        self._roll(self.model, self._data, rows, controls, self._substeps, states, None)
        return states[:, -1]

    def close(self) -> None:
        self._pool.close()

    def _read(self, rows: Rows) -> Rows:
        """Fill in the sensors' readings of each row's state."""
        if self._width == self.first_reading:
            return rows
        if len(rows) == 1:  # it is read sooner than the pool's arrays are made
            data = self._observer_data[0]
            mujoco.mj_setState(self._observer, data, rows[0, : self.first_reading], _PHYSICS)
            mujoco.mj_step1(self._observer, data)
            rows[0, self.first_reading :] = data.sensordata
        else:
            readings = np.empty((len(rows), 1, self._observer.nsensordata))
            unused = np.empty((len(rows), 1, self.first_reading))
            self._roll(self._observer, self._observer_data, rows, None, 1, unused, readings)
            rows[:, self.first_reading :] = readings[:, 0]
        return rows

    def _roll(
        self,
        model: mujoco.MjModel,
        data: list[mujoco.MjData],
        rows: Rows,
        controls: Rows | None,
        steps: int,
        states: Rows,
        readings: Rows | None,
    ) -> None:
        """Advance every row on the threads, or a single row on this one: that is quicker than waking them.

        A thread takes few rows at a time, so that all threads finish together. For readings it takes its
        whole share, since fetching rows would cost more than reading them.
        """
        count = len(rows)
        pool, data = (self._pool, data) if count > 1 else (self._here, data[:1])
        pool.rollout(
            [model] * count,
            data,
            np.ascontiguousarray(rows[:, : self.first_reading]),
            controls,
            nstep=steps,
            state=states,
            sensordata=readings,
            skip_checks=True,
            chunk_size=-(-count // len(data)) if readings is not None else 2 if count >= 4 * len(data) else 1,
        )


class Stepped:
    """Rows advanced by `mj_step`, one after the other on each thread, exactly as Gymnasium would.

    `read` finds MuJoCo's data as the last stage of the integrator left them, a little older than the state.
    The solver starts from its last solution. Both make a step depend on the one before it.
    """

    def __init__(
        self,
        spec: mujoco.MjSpec,
        substeps: int,
        read: Callable[[mujoco.MjModel, mujoco.MjData], Rows],
        threads: int | None = None,
    ) -> None:
        self.model = spec.compile()
        self.anatomy = Anatomy(self.model)
        self.first_reading = mujoco.mj_stateSize(self.model, _EVERYTHING)
        self._substeps = substeps
        self.seconds = substeps * self.model.opt.timestep
        self._read = read
        self._threads = available_cores() if threads is None else max(threads, 1)
        self._pool = ThreadPoolExecutor(self._threads)
        self._data = [mujoco.MjData(self.model) for _ in range(self._threads)]

    def start(self, qpos: Rows, qvel: Rows) -> Rows:
        data = self._data[0]

        def one(positions: Rows, velocities: Rows) -> Rows:
            mujoco.mj_resetData(self.model, data)
            data.qpos[:], data.qvel[:] = positions, velocities
            mujoco.mj_forward(self.model, data)
            return self._row(data)

        return np.stack(
            [one(positions, velocities) for positions, velocities in zip(qpos, qvel, strict=True)]
        )

    def advance(self, rows: Rows, control: Rows) -> Rows:
        after = np.empty_like(rows)

        def share(thread: int) -> None:
            data = self._data[thread]
            for row in range(thread, len(rows), self._threads):
                mujoco.mj_setState(self.model, data, rows[row, : self.first_reading], _EVERYTHING)
                data.ctrl[:] = control[row]
                mujoco.mj_step(self.model, data, self._substeps)
                mujoco.mj_rnePostConstraint(self.model, data)
                after[row] = self._row(data)

        list(self._pool.map(share, range(self._threads)))
        return after

    def close(self) -> None:
        self._pool.shutdown()

    def _row(self, data: mujoco.MjData) -> Rows:
        state = np.empty(self.first_reading)
        mujoco.mj_getState(self.model, data, state, _EVERYTHING)
        return np.concatenate([state, self._read(self.model, data)])
