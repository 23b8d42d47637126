"""Joints of paired bodies, and the sign between their angles."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.pairing.images import Pairing

_TYPE = mujoco.mjtJoint


def pair_joints(pairing: Pairing) -> None:
    """Joints of paired bodies follow in the same order; the sign is that of the axes."""
    model = pairing.model
    images, signs = [], []
    for joint in range(model.njnt):
        if joint in pairing.left_out["joint"]:
            images.append(joint)
            signs.append(1.0)
            continue
        body = model.jnt_bodyid[joint]
        image = model.body_jntadr[pairing.images["body"][body]] + joint - model.body_jntadr[body]
        if image in pairing.left_out["joint"]:
            raise SymmetryError(
                f"only: '{pairing.label('joint', joint)}' is mirrored to '{pairing.label('joint', image)}', "
                "which must match too"
            )
        images.append(int(image))
        signs.append(_axis_sign(pairing, joint, image))
    pairing.images["joint"], pairing.signs["joint"] = images, signs


def mirrored_axis(pairing: Pairing, joint: int) -> Array:
    """A joint's axis in the frame of its image; that of a hinge is axial."""
    model = pairing.model
    axis = pairing.turned("body", model.jnt_bodyid[joint]) @ model.jnt_axis[joint]
    return -axis if model.jnt_type[joint] == _TYPE.mjJNT_HINGE else axis


def _axis_sign(pairing: Pairing, joint: int, image: int) -> float:
    model = pairing.model
    if int(model.jnt_type[joint]) in (_TYPE.mjJNT_FREE, _TYPE.mjJNT_BALL):
        return 1.0
    aligned = float(mirrored_axis(pairing, joint) @ model.jnt_axis[image])
    if abs(aligned) < 0.1:
        raise SymmetryError(
            f"joint '{pairing.label('joint', joint)}', mirrored, is perpendicular to its image "
            f"'{pairing.label('joint', image)}': choose another normal, or other pairs"
        )
    return float(np.sign(aligned))
