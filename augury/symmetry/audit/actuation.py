"""Tendons and actuators: lengths and forces may change their sign."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.symmetry.audit.findings import Comparison
from augury.symmetry.audit.joint_parameters import mirrored_range
from augury.symmetry.pairing.actuators import follows_a_target, mirrored_gear
from augury.symmetry.pairing.tendons import coefficients, mirrored_coefficients

_ON_JOINTS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_GAIN, _BIAS, _DYNAMICS = mujoco.mjtGain, mujoco.mjtBias, mujoco.mjtDyn


def audit_tendons(comparison: Comparison) -> None:
    """Compare paths, ranges and every other parameter of tendons."""
    model, pairing = comparison.model, comparison.pairing
    for tendon, image in enumerate(pairing.images["tendon"]):
        if image < 0:
            comparison.without_image("tendon", tendon)
    comparison.same(
        "tendon", "tendon", "limited", "stiffness", "stiffnesspoly", "damping", "dampingpoly", "frictionloss",
        "armature", "margin", "solref_lim", "solimp_lim", "solref_fri", "solimp_fri", "actfrclimited",
        "springyield",
    )  # fmt: skip
    lengths = model.tendon_length0
    for pair in pairing.pairs("tendon"):
        first, second = pair
        sign = pairing.signs["tendon"][first]
        comparison.expect("tendon length0", pair, lengths, sign * lengths[first], pairing.mirror.size)
        if actual := coefficients(model, second):
            mirrored = mirrored_coefficients(pairing, first)
            values = {first: list(coefficients(model, first).values()), second: list(actual.values())}
            comparison.expect("tendon coef", pair, values, [sign * mirrored[joint] for joint in actual])
        for name, matters in (
            ("range", model.tendon_limited),
            ("actfrcrange", model.tendon_actfrclimited),
            ("lengthspring", model.tendon_stiffness),
        ):
            if matters[[first, second]].all():
                ranges = getattr(model, f"tendon_{name}")
                comparison.expect(f"tendon {name}", pair, ranges, mirrored_range(ranges[first], sign))


def audit_actuators(comparison: Comparison) -> None:
    """Compare gears, ranges, gains and every other parameter of actuators."""
    model, pairing = comparison.model, comparison.pairing
    comparison.same(
        "actuator", "actuator", "ctrllimited", "forcelimited", "actlimited", "dynprm", "actearly", "delay",
        "damping", "dampingpoly", "armature", "cranklength",
    )  # fmt: skip
    for pair in pairing.pairs("actuator"):
        first, second = pair
        sign = pairing.signs["actuator"][first]
        _target(comparison, pair)
        gears, mirrored = model.actuator_gear, sign * mirrored_gear(pairing, first)
        if not gears[[first, second], 1:].any():
            gears, mirrored = gears[:, 0], mirrored[0]
        comparison.expect("actuator gear", pair, gears, mirrored)
        for name in ("ctrl", "force", "act"):
            if getattr(model, f"actuator_{name}limited")[[first, second]].all():
                ranges = getattr(model, f"actuator_{name}range")
                offset = pairing.offsets[name][first] if name in pairing.offsets else 0.0
                mirrored = mirrored_range(ranges[first], sign) + offset
                comparison.expect(f"actuator {name}range", pair, ranges, mirrored)
        _motor(comparison, pair, sign)


def has_unknown_motors(model: mujoco.MjModel) -> bool:
    """Whether there are motors whose mirror image is not known."""
    return bool(
        np.any(model.actuator_gaintype > int(_GAIN.mjGAIN_MUSCLE))
        or np.any(model.actuator_biastype > int(_BIAS.mjBIAS_MUSCLE))
        or np.any(model.actuator_dyntype > int(_DYNAMICS.mjDYN_MUSCLE))
    )


def _target(comparison: Comparison, pair: tuple[int, int]) -> None:
    """Note an actuator that drives another joint than the image, as the user or a constraint says."""
    model, pairing = comparison.model, comparison.pairing
    if int(model.actuator_trntype[pair[0]]) not in _ON_JOINTS:
        return
    targets = [int(model.actuator_trnid[actuator, 0]) for actuator in pair]
    mirrored = pairing.images["joint"][targets[0]]
    if mirrored != targets[1]:
        names = [pairing.label("joint", joint) for joint in (*targets, mirrored)]
        why = f"the second should drive {names[2]}"
        comparison.note("actuator joint", pair, names[0], names[1], why)


def _motor(comparison: Comparison, pair: tuple[int, int], sign: float) -> None:
    """Compare gain and bias: where the control changes its sign, length, velocity and force do too."""
    model, first = comparison.model, pair[0]
    kind = model.actuator_gaintype[first]
    if sign < 0 and kind == _GAIN.mjGAIN_MUSCLE:
        comparison.note("actuator gaintype", pair, "muscle", "muscle", "it only pulls, and should push")
    gain, bias = model.actuator_gainprm[first].copy(), model.actuator_biasprm[first].copy()
    if kind == _GAIN.mjGAIN_AFFINE:
        gain[1:3] *= sign
    if model.actuator_biastype[first] == _BIAS.mjBIAS_AFFINE:
        bias[0] *= sign
    comparison.expect("actuator gainprm", pair, model.actuator_gainprm, gain)
    comparison.expect("actuator biasprm", pair, model.actuator_biasprm, bias)
    if (bias.any() or kind != _GAIN.mjGAIN_FIXED) and not follows_a_target(model, first):
        lengths, extent = model.actuator_length0, comparison.pairing.mirror.size
        comparison.expect("actuator length0", pair, lengths, sign * lengths[first], extent)
