"""A model rewritten so that its mirror is simple: symmetric at qpos0, about a plane through the origin.

Both are choices of coordinates: the rewritten model moves as the given one does.
"""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from augury.symmetry.maps import Array

_JOINT, _EQUALITY = mujoco.mjtJoint, mujoco.mjtEq
_NOT_OF_QPOS0 = ("eq_data", "body_invweight0", "dof_invweight0", "tendon_invweight0")
"""What MuJoCo would compute at the new qpos0, and what keeps the values with which the given model moves."""


def placed(model: mujoco.MjModel, reference: Array | None, origin: Array) -> mujoco.MjModel:
    """The model with its reference pose at qpos0 and its origin moved; itself where that is so already."""
    if reference is None and not origin.any():
        return model
    rewritten = copy.deepcopy(model)
    if reference is not None:
        _refer_to(rewritten, reference)
    if origin.any():
        _move_origin(rewritten, origin)
    kept = {name: getattr(rewritten, name).copy() for name in _NOT_OF_QPOS0}
    mujoco.mj_setConst(rewritten, mujoco.MjData(rewritten))
    for name, values in kept.items():
        getattr(rewritten, name)[:] = values
    return rewritten


def _refer_to(model: mujoco.MjModel, reference: Array) -> None:
    """Write every frame, axis and anchor as it is in the reference pose."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    tendons = data.ten_length.copy()
    data.qpos[:] = reference
    mujoco.mj_forward(model, data)
    axes = data.xmat.reshape(-1, 3, 3)
    for joint, body in enumerate(model.jnt_bodyid):
        if model.jnt_type[joint] != _JOINT.mjJNT_FREE:
            model.jnt_axis[joint] = axes[body].T @ data.xaxis[joint]
            model.jnt_pos[joint] = axes[body].T @ (data.xanchor[joint] - data.xpos[body])
    for body in range(1, model.nbody):
        if model.body_jntnum[body]:
            parent = model.body_parentid[body]
            model.body_pos[body] = axes[parent].T @ (data.xpos[body] - data.xpos[parent])
            mujoco.mju_mat2Quat(model.body_quat[body], (axes[parent].T @ axes[body]).ravel())
    moved = data.qpos - model.qpos0
    for equality in range(model.neq):
        kind = int(model.eq_type[equality])
        objects = [int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])]
        if kind in (_EQUALITY.mjEQ_JOINT, _EQUALITY.mjEQ_TENDON):
            # The polynomial is of differences from qpos0.
            by = (
                moved[model.jnt_qposadr[objects]]
                if kind == _EQUALITY.mjEQ_JOINT
                else (data.ten_length - tendons)[objects]
            )
            polynomial = np.polynomial.Polynomial(model.eq_data[equality, :5])
            elsewhere = polynomial(np.polynomial.Polynomial([by[1] if objects[1] >= 0 else 0.0, 1.0]))
            model.eq_data[equality, :5] = np.pad(elsewhere.coef, (0, 5 - len(elsewhere.coef)))
            model.eq_data[equality, 0] -= by[0]
    model.qpos0[:] = data.qpos


def _move_origin(model: mujoco.MjModel, origin: Array) -> None:
    """Measure what is in the world from another point."""
    model.body_pos[1:][model.body_parentid[1:] == 0] -= origin
    model.geom_pos[model.geom_bodyid == 0] -= origin
    model.site_pos[model.site_bodyid == 0] -= origin
    for joint in np.flatnonzero(model.jnt_type == int(_JOINT.mjJNT_FREE)):
        model.qpos0[model.jnt_qposadr[joint] :][:3] -= origin
    on_bodies = model.eq_objtype == int(mujoco.mjtObj.mjOBJ_BODY)
    for equality in np.flatnonzero(on_bodies & (model.eq_type == int(_EQUALITY.mjEQ_CONNECT))):
        model.eq_data[equality, :3] -= origin * (model.eq_obj1id[equality] == 0)
        model.eq_data[equality, 3:6] -= origin * (model.eq_obj2id[equality] == 0)
    for equality in np.flatnonzero(on_bodies & (model.eq_type == int(_EQUALITY.mjEQ_WELD))):
        # Of a weld the second body's anchor comes first.
        model.eq_data[equality, :3] -= origin * (model.eq_obj2id[equality] == 0)
        model.eq_data[equality, 3:6] -= origin * (model.eq_obj1id[equality] == 0)
