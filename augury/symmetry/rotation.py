"""Rotations about the vertical: how they change a model's state, and what in the model breaks them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import mujoco
import numpy as np

from augury.envs.mujoco.anatomy import Anatomy
from augury.symmetry.audit.findings import Finding, finding_about
from augury.symmetry.audit.model import solver_findings
from augury.symmetry.contacts import frictional_contacts
from augury.symmetry.maps import AffineMap, Array, Blocks, Symmetry
from augury.symmetry.pairing.bodies import is_free
from augury.symmetry.pairing.names import label

_FREE = int(mujoco.mjtJoint.mjJNT_FREE)


def rotation(model: mujoco.MjModel, angle: float) -> Symmetry:
    """The rotation of a state about the vertical: only free joints change, and sensors have no map."""
    qpos, qvel = Blocks(model.nq), Blocks(model.nv)
    qpos.matrix, qvel.matrix = np.eye(model.nq), np.eye(model.nv)
    matrix = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    for joint in np.flatnonzero(model.jnt_type == _FREE):
        position, velocity = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        qpos.put(position, position, matrix)
        qpos.put(position + 3, position + 3, _rotated_quaternions(angle))
        # The angular velocity is written in the body's own frame, which rotates too.
        qvel.put(velocity, velocity, matrix)
    unchanged = AffineMap(np.eye(3), np.zeros(3))  # the base's own frame rotates too
    return Symmetry(
        qpos=qpos.finished(),
        qvel=qvel.finished(),
        act=AffineMap(np.eye(model.na), np.zeros(model.na)),
        ctrl=AffineMap(np.eye(model.nu), np.zeros(model.nu)),
        sensors=AffineMap(np.full((model.nsensordata,) * 2, np.nan), np.zeros(model.nsensordata)),
        offsets=qpos.finished().about(Anatomy(model).qpos),
        vectors=unchanged,
        pseudovectors=unchanged,
    )


def audit_rotation(model: mujoco.MjModel) -> list[Finding]:
    """Everything found that makes a model behave differently after a rotation about the vertical."""
    return [
        *_leaning_fields(model),
        *solver_findings(model),
        *_cone(model),
        *_held_bodies(model),
        *_fixed_geoms(model),
        *_ties_to_world(model),
        *_tendons_to_world(model),
        *_world_forces(model),
    ]


def _leaning_fields(model: mujoco.MjModel) -> Iterator[Finding]:
    for name, vector in (("gravity", model.opt.gravity), ("wind", model.opt.wind)):
        if np.any(vector[:2]):
            yield finding_about(f"option {name}", "option", vector, "it is not vertical")


def _cone(model: mujoco.MjModel) -> Iterator[Finding]:
    pair = next(frictional_contacts(model), None)
    if pair and model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL:
        first, second = (label(model, "geom", geom) for geom in pair)
        why = f"its edges at a contact of {first} and {second} do not rotate; elliptic has none"
        yield finding_about("option cone", "option", "pyramidal", why)


def _held_bodies(model: mujoco.MjModel) -> Iterator[Finding]:
    for body in range(1, model.nbody):
        on_world = model.body_weldid[model.body_parentid[body]] == 0 and model.body_weldid[body] != 0
        if on_world and not is_free(model, body):
            why = "it is attached to the world, so that it cannot rotate"
            yield finding_about("body joints", label(model, "body", body), "no free joint", why)


def _fixed_geoms(model: mujoco.MjModel) -> Iterator[Finding]:
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for geom in np.flatnonzero(model.geom_contype | model.geom_conaffinity).tolist():
        plane = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
        horizontal = plane and abs(data.geom_xmat[geom][8]) > 1 - 1e-12
        if model.body_weldid[model.geom_bodyid[geom]] == 0 and not horizontal:
            why = "it does not rotate with the robot, and is no horizontal plane"
            yield finding_about("geom type", label(model, "geom", geom), "fixed to the world", why)


def _ties_to_world(model: mujoco.MjModel) -> Iterator[Finding]:
    for equality in range(model.neq):
        if int(model.eq_type[equality]) not in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
            continue
        objects = np.array([model.eq_obj1id[equality], model.eq_obj2id[equality]])
        bodies = (
            model.site_bodyid[objects] if model.eq_objtype[equality] == mujoco.mjtObj.mjOBJ_SITE else objects
        )
        if 0 in model.body_weldid[bodies]:
            why = "the world does not rotate with the robot"
            yield finding_about("equality objects", label(model, "equality", equality), "to the world", why)


def _tendons_to_world(model: mujoco.MjModel) -> Iterator[Finding]:
    of_wrap = {int(mujoco.mjtWrap.mjWRAP_SITE): model.site_bodyid}
    of_wrap |= dict.fromkeys(
        (int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)), model.geom_bodyid
    )
    for tendon in range(model.ntendon):
        for wrap in range(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon]):
            bodies = of_wrap.get(int(model.wrap_type[wrap]))
            if bodies is not None and model.body_weldid[bodies[model.wrap_objid[wrap]]] == 0:
                why = "the world does not rotate with the robot"
                yield finding_about("tendon path", label(model, "tendon", tendon), "through the world", why)
                break


def _world_forces(model: mujoco.MjModel) -> Iterator[Finding]:
    """Actuators whose force keeps its direction in the world."""
    for actuator, (kind, (target, reference)) in enumerate(
        zip(model.actuator_trntype.tolist(), model.actuator_trnid, strict=True)
    ):
        gear = model.actuator_gear[actuator]
        on_joint = kind in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
        free = on_joint and model.jnt_type[target] == mujoco.mjtJoint.mjJNT_FREE
        # Of a free joint forces are in the world's frame, and torques too where they are in the parent's.
        world = gear if kind == mujoco.mjtTrn.mjTRN_JOINTINPARENT else gear[:3]
        pushes = free and np.any(np.delete(world, [2, 5][: len(world) // 3]))
        refers = kind == mujoco.mjtTrn.mjTRN_SITE and reference >= 0
        if pushes or (refers and model.body_weldid[model.site_bodyid[reference]] == 0):
            why = "its direction in the world does not rotate with the robot"
            yield finding_about("actuator gear", label(model, "actuator", actuator), gear, why)


def _rotated_quaternions(angle: float) -> Array:
    quaternion = np.array([math.cos(angle / 2), 0, 0, math.sin(angle / 2)])
    columns = np.zeros((4, 4))
    for unit, column in zip(np.eye(4), columns, strict=True):
        mujoco.mju_mulQuat(column, quaternion, unit)
    return columns.T
