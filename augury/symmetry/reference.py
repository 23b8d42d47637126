"""The pose in which a robot is symmetric: qpos0, or the symmetric pose nearest to a keyframe."""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt

from augury.errors import unknown_name
from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.pairing.bodies import BodyPairing

_SINGLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_STEPS = 10
_PROBE = 1e-6
"""By how much a joint is moved to see what it does."""
_BETTER = 0.1
"""A pose replaces the given one if it leaves less than this share of the misfit."""


def reference_pose(model: mujoco.MjModel, given: str | npt.ArrayLike) -> Array:
    """The pose of a keyframe, or one given as qpos; of free and ball joints that of qpos0."""
    if isinstance(given, str):
        names = [model.key(key).name for key in range(model.nkey)]
        if given not in names:
            raise unknown_name("keyframe", given, {*names} - {""})
        qpos = model.key_qpos[names.index(given)]
    else:
        qpos = np.asarray(given, float)
        if qpos.shape != (model.nq,):
            raise SymmetryError(
                f"the reference pose has shape {qpos.shape}: give {model.nq} positions, or a keyframe"
            )
    pose: Array = model.qpos0.copy()
    places = _places(model)
    pose[places] = qpos[places]
    return pose


def nearest_symmetric(pairing: BodyPairing, reference: Array) -> Array:
    """The symmetric pose nearest to the reference: keyframes are often written to a few digits.

    Where no pose is much more symmetric than the given one, the given one stays.
    """
    model = pairing.model  # with the reference as its qpos0
    data, places = mujoco.MjData(model), _places(model)

    def misfits(pose: Array) -> Array:
        data.qpos[:] = pose
        mujoco.mj_kinematics(model, data)
        return pairing.misfits(data).ravel()

    start: Array = model.qpos0.copy()
    pose = start.copy()
    for _ in range(_STEPS):
        apart = misfits(pose)
        columns = []
        for place in places:
            probe = pose.copy()
            probe[place] += _PROBE
            columns.append((misfits(probe) - apart) / _PROBE)
        if not columns:
            break
        # The shortest of the steps that serve best: joints that have no say stay where they are.
        pose[places] -= np.linalg.lstsq(np.stack(columns, 1), apart, rcond=1e-4)[0]
    before, after = (float(np.linalg.norm(misfits(each))) for each in (start, pose))
    found = reference.copy()
    if after < _BETTER * before:
        found[places] = pose[places]
    return found


def _places(model: mujoco.MjModel) -> npt.NDArray[np.intp]:
    """Where qpos holds hinges and slides."""
    places: npt.NDArray[np.intp] = model.jnt_qposadr[np.isin(model.jnt_type, _SINGLE)]
    return places
