"""How positions, velocities, activations and controls map, given who is whose image."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.envs.mujoco.anatomy import Anatomy
from augury.symmetry.frames import quaternion_between
from augury.symmetry.maps import AffineMap, Array, Blocks, SymmetryError
from augury.symmetry.pairing.images import Pairing

_JOINT = mujoco.mjtJoint


def position_map(pairing: Pairing) -> AffineMap:
    """How qpos maps."""
    model = pairing.model
    blocks = Blocks(model.nq)
    for joint, image in enumerate(pairing.images["joint"]):
        to, source = int(model.jnt_qposadr[image]), int(model.jnt_qposadr[joint])
        kind = model.jnt_type[joint]
        if kind == _JOINT.mjJNT_FREE:
            blocks.put(to, source, pairing.mirror.matrix, pairing.mirror.shift)
            blocks.put(to + 3, source + 3, _free_orientation(pairing, joint, image))
        elif kind == _JOINT.mjJNT_BALL and joint in pairing.left_out["joint"]:
            blocks.put(to, source, np.eye(4))
        elif kind == _JOINT.mjJNT_BALL:
            blocks.put(to, source, ball_orientation(pairing, joint))
        else:
            sign = pairing.signs["joint"][joint]
            blocks.put(to, source, sign, model.qpos0[to] - sign * model.qpos0[source])
    return blocks.finished()


def velocity_map(pairing: Pairing) -> AffineMap:
    """How qvel maps: MuJoCo writes the angular velocity of free and ball joints in the body's own frame."""
    model = pairing.model
    blocks = Blocks(model.nv)
    for joint, image in enumerate(pairing.images["joint"]):
        to, source = int(model.jnt_dofadr[image]), int(model.jnt_dofadr[joint])
        kind = model.jnt_type[joint]
        if kind == _JOINT.mjJNT_FREE:
            blocks.put(to, source, pairing.mirror.matrix)
            blocks.put(to + 3, source + 3, -pairing.turned("body", model.jnt_bodyid[joint]))
        elif kind == _JOINT.mjJNT_BALL and joint in pairing.left_out["joint"]:
            blocks.put(to, source, np.eye(3))
        elif kind == _JOINT.mjJNT_BALL:
            blocks.put(to, source, -pairing.turned("body", model.jnt_bodyid[joint]))
        else:
            blocks.put(to, source, pairing.signs["joint"][joint])
    return blocks.finished()


def control_map(pairing: Pairing) -> AffineMap:
    """How ctrl maps."""
    model = pairing.model
    if np.any(model.actuator_ctrlnum != 1):
        many = int(np.argmax(model.actuator_ctrlnum != 1))
        raise SymmetryError(
            f"actuator '{pairing.label('actuator', many)}' has several controls: not supported"
        )
    return _actuator_map(pairing, "ctrl", model.nu, model.actuator_ctrladr, model.actuator_ctrlnum)


def activation_map(pairing: Pairing) -> AffineMap:
    """How the states of actuators map: like their controls."""
    model = pairing.model
    return _actuator_map(pairing, "act", model.na, model.actuator_actadr, model.actuator_actnum)


def vector_map(pairing: Pairing) -> AffineMap:
    """How vectors in the frame of the model's base map; there is no map where it is not its own image."""
    anatomy = Anatomy(pairing.model)
    blocks = Blocks(3)
    if anatomy.has_base and pairing.images["body"][anatomy.base.body] == anatomy.base.body:
        blocks.put(0, 0, pairing.turned("body", anatomy.base.body))
    else:
        blocks.matrix[:] = np.nan
    return blocks.finished()


def ball_orientation(pairing: Pairing, joint: int) -> Array:
    """The matrix by which a ball joint's quaternion maps."""
    matrix = np.eye(4)
    matrix[1:, 1:] = -pairing.turned("body", pairing.model.jnt_bodyid[joint])
    return matrix


def _free_orientation(pairing: Pairing, joint: int, image: int) -> Array:
    model = pairing.model
    first, second = (model.qpos0[model.jnt_qposadr[j] + 3 :][:4] for j in (joint, image))
    return quaternion_between(
        pairing.mirror.matrix, pairing.turned("body", model.jnt_bodyid[joint]), first, second
    )


def _actuator_map(pairing: Pairing, what: str, size: int, start: Array, count: Array) -> AffineMap:
    blocks = Blocks(size)
    for actuator, image in enumerate(pairing.images["actuator"]):
        if count[actuator]:
            matrix = pairing.signs["actuator"][actuator] * np.eye(count[actuator])
            blocks.put(int(start[image]), int(start[actuator]), matrix, pairing.offsets[what][actuator])
    return blocks.finished()
