"""Joints: their axes and ranges mirrored, all else the same."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy.typing as npt

from augury.symmetry.audit.findings import Comparison
from augury.symmetry.maps import Array
from augury.symmetry.pairing.joints import mirrored_axis
from augury.symmetry.state import position_map

_TYPE = mujoco.mjtJoint
_POSITIONS = {_TYPE.mjJNT_FREE: 7, _TYPE.mjJNT_BALL: 4, _TYPE.mjJNT_SLIDE: 1, _TYPE.mjJNT_HINGE: 1}
_VELOCITIES = {_TYPE.mjJNT_FREE: 6, _TYPE.mjJNT_BALL: 3, _TYPE.mjJNT_SLIDE: 1, _TYPE.mjJNT_HINGE: 1}


def audit_joints(comparison: Comparison) -> None:
    """Compare axes, anchors, ranges, springs and every other parameter of joints."""
    model, pairing = comparison.model, comparison.pairing
    comparison.same(
        "joint", "jnt", "limited", "stiffness", "stiffnesspoly", "springyield", "margin", "solref", "solimp",
        "actfrclimited", "actgravcomp",
    )  # fmt: skip
    spring_images = position_map(pairing)(model.qpos_spring)
    for pair in pairing.pairs("joint"):
        first, second = pair
        kind = int(model.jnt_type[first])
        for name in ("armature", "damping", "dampingpoly", "frictionloss", "solref", "solimp"):
            values = _by_joint(getattr(model, f"dof_{name}"), pair, model.jnt_dofadr, _VELOCITIES[kind])
            comparison.expect(
                f"joint {'friction ' * name.startswith('sol')}{name}", pair, values, values[first]
            )
        if kind == _TYPE.mjJNT_FREE:
            continue
        scale = pairing.mirror.size if kind == _TYPE.mjJNT_SLIDE else 1.0  # metres, or radians
        _axis_and_anchor(comparison, pair)
        if model.jnt_stiffness[first]:
            springs = _by_joint(model.qpos_spring, pair, model.jnt_qposadr, _POSITIONS[kind])
            image = _by_joint(spring_images, pair, model.jnt_qposadr, _POSITIONS[kind])[second]
            comparison.expect("joint springref", pair, springs, image, scale)
        sign, zeros = pairing.signs["joint"][first], model.qpos0[model.jnt_qposadr[[first, second]]]
        if model.jnt_actfrclimited[[first, second]].all():
            mirrored = mirrored_range(model.jnt_actfrcrange[first], sign)
            comparison.expect("joint actfrcrange", pair, model.jnt_actfrcrange, mirrored)
        if model.jnt_limited[[first, second]].all():
            # The range of a ball joint is that of its angle, which has no sign and no zero.
            offset = 0.0 if kind == _TYPE.mjJNT_BALL else zeros[1] - sign * zeros[0]
            mirrored = mirrored_range(model.jnt_range[first], sign) + offset
            comparison.expect("joint range", pair, model.jnt_range, mirrored, scale)


def mirrored_range(limits: Array, sign: float) -> Array:
    """A range; a negative sign exchanges its ends."""
    return limits if sign > 0 else -limits[::-1]


def _axis_and_anchor(comparison: Comparison, pair: tuple[int, int]) -> None:
    """Compare axis and anchor; an anchor may slide along a hinge, and that of a slide has no effect."""
    model, pairing = comparison.model, comparison.pairing
    first, second = pair
    kind, axis = model.jnt_type[first], model.jnt_axis[second]
    if kind != _TYPE.mjJNT_BALL:
        mirrored = pairing.signs["joint"][first] * mirrored_axis(pairing, first)
        comparison.expect("joint axis", pair, model.jnt_axis, mirrored, 1.0)
    if kind != _TYPE.mjJNT_SLIDE:
        body = int(model.jnt_bodyid[first])
        mirrored = comparison.places.image_of(body, model.jnt_pos[first])
        if kind == _TYPE.mjJNT_HINGE:
            mirrored -= ((mirrored - model.jnt_pos[second]) @ axis) * axis
        comparison.expect("joint pos", pair, model.jnt_pos, mirrored, pairing.mirror.size, on=body)


def _by_joint(
    values: npt.NDArray[Any], joints: tuple[int, int], starts: npt.NDArray[Any], width: int
) -> dict[int, npt.NDArray[Any]]:
    """The part of a vector that belongs to each of two joints."""
    return {joint: values[starts[joint] : starts[joint] + width] for joint in joints}
