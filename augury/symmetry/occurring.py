"""States that occur: around keyframes, settled, driven; and poses in which nothing penetrates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.maps import Array

_JOINT = mujoco.mjtJoint
_NEAR = 0.05
"""How far states begin from a keyframe: standard deviation in radians, and of a tenth of it in metres."""
_LONGEST = 0.2
"""For how long, at most, states are left to settle or driven, in seconds."""
HOLD = 0.05
"""For how long a random control is held, in seconds."""
_EFFORT = 0.05
"""How far random controls are from those that hold a pose: standard deviation in widths of their range."""
_STRIDE = 0.1
"""And of servos at most so far, in radians or metres."""
_FALL = 200
"""Poses in the air are left to fall until something touches, for at most this many steps."""
_AFTER = 0.1
"""And every second of them for some time more, less than this, in seconds."""
KINDS = ("settled", "driven", "any pose")
_DEEP = 1e-3
"""Penetration beyond this does not occur, in metres."""
_TRIES = 20
_GIVEN_UP = 3
"""After so many times in a row without a pose in which nothing penetrates, none is looked for any more."""
_BROKEN = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
)


class State(NamedTuple):
    """What the simulator needs to go on."""

    time: float
    qpos: Array
    qvel: Array
    act: Array
    ctrl: Array
    kind: str = ""
    """How it came about: one of KINDS."""

    @classmethod
    def of(cls, data: mujoco.MjData, kind: str) -> State:
        """The state that the data are in."""
        return cls(data.time, data.qpos.copy(), data.qvel.copy(), data.act.copy(), data.ctrl.copy(), kind)

    def put(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Put data into this state, with nothing left of what was before."""
        mujoco.mj_resetData(model, data)
        data.time = self.time
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = self.qpos, self.qvel, self.act, self.ctrl


def occurring(model: mujoco.MjModel, count: int, seed: int = 0) -> Iterator[State]:
    """States in which a robot may be: settled, driven, and in any pose of its joints, in turn.

    Those in which the simulation is unstable are left out, so that there may be fewer than `count`.
    """
    data, in_vain = mujoco.MjData(model), 0
    for number in range(count):
        generator = np.random.default_rng([seed, number])
        kind = KINDS[number % len(KINDS)]
        found = kind == "any pose" and in_vain < _GIVEN_UP and _any_pose(model, data, generator)
        in_vain = 0 if found else in_vain + (kind == "any pose")
        if found:
            after = generator.integers(2) * generator.uniform() * _AFTER
            _fall(model, data, _steps(model, after))
            data.ctrl[:] = _any_controls(model, generator)
        else:
            _keyframe(model, data, generator)
            seconds = _LONGEST * generator.uniform()
            held = holding(model, data)
            if kind == "driven":
                drive(model, data, held, generator, seconds)
            else:
                data.ctrl[:] = held
                mujoco.mj_step(model, data, _steps(model, seconds))
            data.ctrl[:] = near(model, held, generator)[0]
        if stable(data):
            yield State.of(data, kind)


def drive(
    model: mujoco.MjModel, data: mujoco.MjData, held: Array, generator: np.random.Generator, seconds: float
) -> None:
    """Simulate with random controls near those that hold a pose, each held for a while."""
    steps, hold = _steps(model, seconds), max(1, round(HOLD / model.opt.timestep))
    starts = range(0, steps, hold)
    for done, controls in zip(starts, near(model, held, generator, len(starts)), strict=True):
        data.ctrl[:] = controls
        mujoco.mj_step(model, data, min(hold, steps - done))


def holding(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Controls that hold a pose: the keyframe's; without such, of servos those of where they are, else 0."""
    if data.ctrl.any():
        return data.ctrl.copy()
    mujoco.mj_fwdPosition(model, data)
    gains, biases, servo = model.actuator_gainprm[:, 0], model.actuator_biasprm[:, 1], _servos(model)
    held = np.zeros(model.nu)
    at = model.actuator_ctrladr[servo]
    held[at] = -biases[servo] / gains[servo] * data.actuator_length[servo]
    low, high = _limits(model)
    return np.asarray(np.clip(held, low, high))


def near(model: mujoco.MjModel, held: Array, generator: np.random.Generator, count: int = 1) -> Array:
    """Random controls around some, within their ranges, in rows."""
    low, high = _limits(model)
    effort = _EFFORT * (high - low)
    servos = model.actuator_ctrladr[_servos(model)]
    effort[servos] = np.minimum(effort[servos], _STRIDE)
    return np.asarray(np.clip(held + effort * generator.normal(size=(count, model.nu)), low, high))


def stable(data: mujoco.MjData) -> bool:
    """Whether the simulator has not given up: it resets what it cannot go on with."""
    return not any(data.warning[int(kind)].number for kind in _BROKEN)


@contextmanager
def silence() -> Iterator[None]:
    """Keep MuJoCo from writing its warnings into a file in the working directory."""
    own = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(own)


def _steps(model: mujoco.MjModel, seconds: float) -> int:
    """Steps for some time; models with very small steps get less time, so that they take no longer."""
    return min(int(seconds / model.opt.timestep), _FALL)


def _servos(model: mujoco.MjModel) -> npt.NDArray[np.bool_]:
    """Actuators whose control is a position."""
    pulls = (model.actuator_gainprm[:, 0] != 0) & (model.actuator_biasprm[:, 1] != 0)
    return np.asarray(pulls & (model.actuator_ctrlnum == 1))


def _limits(model: mujoco.MjModel) -> tuple[Array, Array]:
    low, high = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, (-1.0, 1.0)).T
    return low, high


def _any_controls(model: mujoco.MjModel, generator: np.random.Generator) -> Array:
    return np.asarray(generator.uniform(*_limits(model)))


def _fall(model: mujoco.MjModel, data: mujoco.MjData, after: int) -> None:
    """Simulate until something touches, and for some steps more."""
    for _ in range(_FALL):
        mujoco.mj_step(model, data)
        if data.ncon:
            break
    mujoco.mj_step(model, data, after)


def _keyframe(model: mujoco.MjModel, data: mujoco.MjData, generator: np.random.Generator) -> None:
    """Near a keyframe, or near the reference pose where there is none, moving a little."""
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, int(generator.integers(model.nkey)))
    else:
        mujoco.mj_resetData(model, data)
    mujoco.mj_integratePos(model, data.qpos, _NEAR * _units(model) * generator.normal(size=model.nv), 1.0)
    data.qvel[:] += 0.1 * generator.normal(size=model.nv)


def _any_pose(model: mujoco.MjModel, data: mujoco.MjData, generator: np.random.Generator) -> bool:
    """Any pose within the joints' ranges, in any orientation, moving, in which nothing penetrates deeply."""
    single = np.isin(model.jnt_type, [int(_JOINT.mjJNT_SLIDE), int(_JOINT.mjJNT_HINGE)])
    limited, units = np.flatnonzero(single & (model.jnt_limited != 0)), _units(model)
    for _ in range(_TRIES):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, 3 * units * generator.normal(size=model.nv), 1.0)
        data.qpos[model.jnt_qposadr[limited]] = generator.uniform(*model.jnt_range[limited].T)
        heights = model.jnt_qposadr[model.jnt_type == int(_JOINT.mjJNT_FREE)] + 2
        data.qpos[heights] += 0.3 * model.stat.extent * generator.uniform(size=len(heights))
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        if not data.ncon or data.contact.dist.min() > -_DEEP:
            data.qvel[:] = generator.normal(size=model.nv)
            data.act[:] = 0.3 * generator.uniform(size=model.na)
            return True
    return False


def _units(model: mujoco.MjModel) -> Array:
    """1 for angles; for distances a tenth."""
    kind = model.jnt_type[model.dof_jntid]
    first = np.arange(model.nv) - model.jnt_dofadr[model.dof_jntid] < 3
    distance = (kind == int(_JOINT.mjJNT_SLIDE)) | (kind == int(_JOINT.mjJNT_FREE)) & first
    return np.where(distance, 0.1, 1.0)
