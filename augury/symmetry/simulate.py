"""Ask the simulator whether the image of a state moves as the image of its motion."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.symmetry.maps import AffineMap, Array, Symmetry

SIMULATED_TOLERANCE = 1e-6
"""Largest `simulated_error` of a model that is called symmetric."""
_FAR = 0.1
"""How far states begin from the reference, in metres."""
_FALL = 200
"""Every second state is left to fall until something touches, for at most this many steps."""
_AFTER = 100
"""And then for some steps more, fewer than this."""


def simulated_error(model: mujoco.MjModel, symmetry: Symmetry, samples: int = 200, seed: int = 0) -> float:
    """The largest difference between a mapped next state and the next state of the mapped one.

    Differences are relative to the largest number of the state, where that is above 1. Sensor readings that
    have a map count too. So parameters that the audit does not know are noticed all the same.
    """
    generator = np.random.default_rng(seed)
    data, image = mujoco.MjData(model), mujoco.MjData(model)
    unknown = np.isnan(symmetry.sensors.matrix)
    known = np.flatnonzero(~unknown.any(1))
    sensors = AffineMap(np.where(unknown, 0.0, symmetry.sensors.matrix), symmetry.sensors.offset)
    worst = 0.0
    for sample in range(samples):
        _random_state(model, data, generator)
        if sample % 2:
            _fall(model, data, int(generator.integers(_AFTER)))
        mujoco.mj_resetData(model, image)
        image.time = data.time
        image.qpos[:], image.qvel[:] = symmetry.qpos(data.qpos), symmetry.qvel(data.qvel)
        image.act[:], image.ctrl[:] = symmetry.act(data.act), symmetry.ctrl(data.ctrl)
        mujoco.mj_step(model, data)
        mujoco.mj_step(model, image)
        for mapped, actual in (
            (symmetry.qpos(data.qpos), image.qpos),
            (symmetry.qvel(data.qvel), image.qvel),
            (symmetry.act(data.act), image.act),
            (sensors(data.sensordata)[known], image.sensordata[known]),
        ):
            worst = max(worst, _difference(mapped, actual))
    return worst


def _random_state(model: mujoco.MjModel, data: mujoco.MjData, generator: np.random.Generator) -> None:
    """A pose within the joints' ranges, near the reference, in any orientation; velocities and controls."""
    free, slide, hinge = (
        int(joint)
        for joint in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
    )
    mujoco.mj_resetData(model, data)
    away = 3 * generator.normal(size=model.nv)
    for joint, kind in enumerate(model.jnt_type):
        if kind in (free, slide):
            away[model.jnt_dofadr[joint] :][: 3 if kind == free else 1] *= _FAR
    mujoco.mj_integratePos(model, data.qpos, away, 1.0)
    for joint in np.flatnonzero(model.jnt_limited).tolist():
        if model.jnt_type[joint] in (slide, hinge):
            data.qpos[model.jnt_qposadr[joint]] = generator.uniform(*model.jnt_range[joint])
    data.qvel[:] = generator.normal(size=model.nv)
    data.act[:] = 0.3 * generator.uniform(size=model.na)
    low, high = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, (-1.0, 1.0)).T
    data.ctrl[:] = generator.uniform(low, high)


def _fall(model: mujoco.MjModel, data: mujoco.MjData, after: int) -> None:
    for _ in range(_FALL):
        mujoco.mj_step(model, data)
        if data.ncon:
            break
    mujoco.mj_step(model, data, after)
    data.qacc_warmstart[:] = 0


def _difference(mapped: Array, actual: Array) -> float:
    scale = max(1.0, float(np.abs(actual).max(initial=0)))
    difference = float(np.abs(mapped - actual).max(initial=0)) / scale
    return difference if np.isfinite(difference) else np.inf
