"""Which actuator is the mirror image of which, and the sign between their controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import mujoco
import numpy as np

from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.pairing.couplings import couplings
from augury.symmetry.pairing.images import Pairing
from augury.symmetry.pairing.matching import Ambiguous, NoImage, allowed, best_pairing
from augury.symmetry.pairing.names import given_name, mirrored_names

_DRIVES = mujoco.mjtTrn
_TYPE = mujoco.mjtJoint


def pair_actuators(pairing: Pairing, given: Mapping[str, str]) -> None:
    """Actuators of the same kind on paired elements; names, then parameters, tell several apart."""
    model = pairing.model
    count = range(model.nactuator)
    names = [given_name(model, "actuator", actuator) for actuator in count]
    left_out = {actuator for actuator in count if _drives_what_stays(pairing, actuator)}
    pairing.left_out["actuator"] = left_out
    mirrored = [actuator for actuator in count if actuator not in left_out]
    drives = [_drive(pairing, actuator) for actuator in count]
    costs = {
        (a, b): _difference(model, a, b)
        for place, a in enumerate(mirrored)
        for b in mirrored[place:]
        if drives[a].kind == drives[b].kind
        and (names[a] in given or drives[b].targets in drives[a].images)
        and allowed(given, names[a], names[b])
    }
    try:
        found = best_pairing(mirrored, costs, np.inf, lambda a, b: mirrored_names(names[a], names[b]))
    except NoImage as error:
        raise SymmetryError(
            f"no actuator is the mirror image of '{pairing.label('actuator', error.element)}': "
            "what it drives must be driven in the same way on the other side"
        ) from None
    except Ambiguous as error:
        options = " or ".join(f"'{pairing.label('actuator', image)}'" for image in error.images)
        raise SymmetryError(
            f"the mirror image of actuator '{pairing.label('actuator', error.element)}' could be {options}: "
            "give them names, and say which it is in pairs"
        ) from None
    pairing.images["actuator"] = [found.get(actuator, actuator) for actuator in count]
    signs = {
        a: -1.0 if mirrored_gear(pairing, a) @ model.actuator_gear[b] < 0 else 1.0
        for a, b in pairing.pairs("actuator")
    }
    pairing.signs["actuator"] = [signs.get(min(a, b), 1.0) for a, b in enumerate(pairing.images["actuator"])]
    offsets = [_servo_offset(pairing, actuator) for actuator in count]
    integrates = model.actuator_dyntype == int(mujoco.mjtDyn.mjDYN_INTEGRATOR)
    pairing.offsets = {
        "act": offsets,
        # The control of an integrator is the velocity of its target.
        "ctrl": [0.0 if integral else offset for offset, integral in zip(offsets, integrates, strict=True)],
    }


def follows_a_target(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether an actuator is a servo: its control, or its state, is weighed against a length."""
    return bool(
        model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED
        and model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
        and model.actuator_dyntype[actuator] <= int(mujoco.mjtDyn.mjDYN_FILTEREXACT)
        and model.actuator_gainprm[actuator, 0]
    )


def mirrored_gear(pairing: Pairing, actuator: int) -> Array:
    """The gear that the image of an actuator should have, if it has the same control: force, then torque."""
    model = pairing.model
    gear, (target, reference) = model.actuator_gear[actuator], model.actuator_trnid[actuator]
    force, torque = gear[:3], gear[3:]
    drives = int(model.actuator_trntype[actuator])
    if drives in (_DRIVES.mjTRN_JOINT, _DRIVES.mjTRN_JOINTINPARENT):
        in_parent = drives == _DRIVES.mjTRN_JOINTINPARENT
        body = model.jnt_bodyid[target]
        frame = model.body_parentid[body] if in_parent else body
        if model.jnt_type[target] == _TYPE.mjJNT_FREE:
            matrix = pairing.mirror.matrix
            return np.concatenate(
                [matrix @ force, -(matrix if in_parent else pairing.turned("body", body)) @ torque]
            )
        if model.jnt_type[target] == _TYPE.mjJNT_BALL:
            return np.concatenate([-pairing.turned("body", frame) @ force, torque])
        driven = int(model.actuator_trnid[pairing.images["actuator"][actuator], 0])
        through = couplings(model).get((pairing.images["joint"][target], driven), 1.0)
        return pairing.signs["joint"][target] * through * gear
    if drives == _DRIVES.mjTRN_TENDON:
        return pairing.signs["tendon"][target] * gear
    if drives == _DRIVES.mjTRN_SITE:
        matrix = pairing.turned("site", target if reference < 0 else reference)
        return np.concatenate([matrix @ force, -matrix @ torque])
    if drives in (_DRIVES.mjTRN_BODY, _DRIVES.mjTRN_SLIDERCRANK):
        return gear
    raise SymmetryError(f"actuator '{pairing.label('actuator', actuator)}': its kind is not supported")


def _servo_offset(pairing: Pairing, actuator: int) -> float:
    """What the target of the image has in addition, because the length that it is compared with has it."""
    model = pairing.model
    first, second = sorted((actuator, pairing.images["actuator"][actuator]))
    if not follows_a_target(model, first) or not follows_a_target(model, second):
        return 0.0
    sign, lengths = pairing.signs["actuator"][actuator], model.actuator_length0
    stiffness = -model.actuator_biasprm[first, 1] / model.actuator_gainprm[first, 0]
    offset = float(stiffness * (lengths[second] - sign * lengths[first]))
    return offset if actuator == first else -sign * offset


def target_kind(model: mujoco.MjModel, actuator: int) -> str:
    """What an actuator drives: a kind of element."""
    return {
        _DRIVES.mjTRN_TENDON: "tendon",
        _DRIVES.mjTRN_SITE: "site",
        _DRIVES.mjTRN_SLIDERCRANK: "site",
        _DRIVES.mjTRN_BODY: "body",
    }.get(int(model.actuator_trntype[actuator]), "joint")


def _drives_what_stays(pairing: Pairing, actuator: int) -> bool:
    target = int(pairing.model.actuator_trnid[actuator, 0])
    return target in pairing.left_out[target_kind(pairing.model, actuator)]


class _Drive(NamedTuple):
    """What an actuator is, and what it drives."""

    kind: tuple[int, ...]
    targets: tuple[int, ...]
    images: set[tuple[int, ...]]
    """What its image may drive."""


def _drive(pairing: Pairing, actuator: int) -> _Drive:
    model = pairing.model
    types = (model.actuator_trntype, model.actuator_gaintype, model.actuator_biastype, model.actuator_dyntype)
    targets = tuple(model.actuator_trnid[actuator].tolist())
    kind = target_kind(model, actuator)
    first, *rest = (pairing.image(kind, target) for target in targets)
    images = {(first, *rest)}
    alike = model.actuator_trntype == model.actuator_trntype[actuator]
    if kind == "joint" and first not in model.actuator_trnid[alike, 0]:
        # Nothing drives the image itself: a joint that moves as one with it may be driven instead.
        images |= {(other, *rest) for one, other in couplings(model) if one == first}
    return _Drive(tuple(int(each[actuator]) for each in types), targets, images)


def _difference(model: mujoco.MjModel, first: int, second: int) -> float:
    """How much the parameters of two actuators differ, but for signs."""
    fields = ("gear", "gainprm", "biasprm", "dynprm")
    values = np.abs(
        np.concatenate([getattr(model, f"actuator_{f}")[[first, second]] for f in fields], axis=1)
    )
    return float(np.abs(values[0] - values[1]).sum() / (values.sum() or 1.0))
