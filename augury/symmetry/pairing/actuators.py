"""Which actuator is the mirror image of which, and the sign between their controls."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from augury.symmetry.maps import Array, SymmetryError
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
    costs = {
        (a, b): _difference(model, a, b)
        for a in count
        for b in count[a:]
        if _same_drive(pairing, a, b) and allowed(given, names[a], names[b])
    }
    try:
        found = best_pairing(count, costs, np.inf, lambda a, b: mirrored_names(names[a], names[b]))
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
    pairing.images["actuator"] = [found[actuator] for actuator in count]
    pairing.signs["actuator"] = [
        -1.0 if mirrored_gear(pairing, a) @ model.actuator_gear[b] < 0 else 1.0
        for a, b in enumerate(pairing.images["actuator"])
    ]


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
        return pairing.signs["joint"][target] * gear
    if drives == _DRIVES.mjTRN_TENDON:
        return pairing.signs["tendon"][target] * gear
    if drives == _DRIVES.mjTRN_SITE:
        matrix = pairing.turned("site", target if reference < 0 else reference)
        return np.concatenate([matrix @ force, -matrix @ torque])
    if drives in (_DRIVES.mjTRN_BODY, _DRIVES.mjTRN_SLIDERCRANK):
        return gear
    raise SymmetryError(f"actuator '{pairing.label('actuator', actuator)}': its kind is not supported")


def _same_drive(pairing: Pairing, first: int, second: int) -> bool:
    """Whether the second drives the image of what the first drives, with the same kind of motor."""
    model = pairing.model
    kinds = ("trntype", "gaintype", "biastype", "dyntype")
    if any(getattr(model, f"actuator_{k}")[first] != getattr(model, f"actuator_{k}")[second] for k in kinds):
        return False
    drives = int(model.actuator_trntype[first])
    kind = {
        _DRIVES.mjTRN_TENDON: "tendon",
        _DRIVES.mjTRN_SITE: "site",
        _DRIVES.mjTRN_SLIDERCRANK: "site",
        _DRIVES.mjTRN_BODY: "body",
    }.get(drives, "joint")
    mirrored = [pairing.image(kind, int(target)) for target in model.actuator_trnid[first]]
    return mirrored == model.actuator_trnid[second].tolist()


def _difference(model: mujoco.MjModel, first: int, second: int) -> float:
    """How much the parameters of two actuators differ, but for signs."""
    fields = ("gear", "gainprm", "biasprm", "dynprm")
    values = np.abs(
        np.concatenate([getattr(model, f"actuator_{f}")[[first, second]] for f in fields], axis=1)
    )
    return float(np.abs(values[0] - values[1]).sum() / (values.sum() or 1.0))
