"""Pairs every element of a model with its mirror image."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from augury.errors import unknown_name
from augury.symmetry.contacts import geoms_that_matter
from augury.symmetry.maps import SymmetryError
from augury.symmetry.pairing.actuators import pair_actuators
from augury.symmetry.pairing.bodies import BodyPairing
from augury.symmetry.pairing.images import NO_IMAGE, Pairing
from augury.symmetry.pairing.joints import pair_joints
from augury.symmetry.pairing.matching import cheap_pairing
from augury.symmetry.pairing.names import body_name, given_name
from augury.symmetry.pairing.tendons import pair_tendons


def pair_all(bodies: BodyPairing) -> Pairing:
    """Find every other image, where the bodies have theirs."""
    model, part = bodies.model, bodies.part
    pairing = Pairing(bodies.mirror)
    pairing.left_out = {"body": set(part.bodies), "joint": set(part.joints)}
    pairing.images["body"] = bodies.images_of_all()
    pair_joints(pairing)
    _pair_attached(pairing, "geom", set(geoms_that_matter(model)))
    _pair_attached(pairing, "site", set())
    pair_tendons(pairing)
    pair_actuators(pairing, bodies.given)
    return pairing


def both_ways(model: mujoco.MjModel, given: Mapping[str, str]) -> dict[str, str]:
    """What the user gave, by name, in both directions."""
    bodies = {body_name(model, body) for body in range(model.nbody)}
    actuators = {given_name(model, "actuator", actuator) for actuator in range(model.nactuator)}
    joints = {
        given_name(model, "joint", joint): body_name(model, model.jnt_bodyid[joint])
        for joint in range(model.njnt)
    }
    known = bodies | actuators | joints.keys()
    both: dict[str, str] = {}
    for pair in given.items():
        # Joints are paired with their bodies; an actuator of the same name is paired with its joint.
        first, second = (joints.get(name, name) if name not in bodies | actuators else name for name in pair)
        for name, image in ((first, second), (second, first)):
            if name not in known:
                raise unknown_name("body, joint or actuator in pairs", name, known - {""})
            if both.setdefault(name, image) != image:
                raise SymmetryError(
                    f"pairs: '{name}' cannot be the image of both '{both[name]}' and '{image}'"
                )
    return both


def _pair_attached(pairing: Pairing, kind: str, matter: set[int]) -> None:
    """Pair the nearest geoms or sites of paired bodies; of the same type and use, where there are such."""
    mirror, model = pairing.mirror, pairing.model
    bodies, types, sizes = (getattr(model, f"{kind}_{name}") for name in ("bodyid", "type", "size"))

    def cost(a: int, b: int) -> float:
        different = int(types[a] != types[b]) + int((a in matter) != (b in matter))
        return mirror.apart(kind, a, b) + float(np.abs(sizes[a] - sizes[b]).sum()) + different * mirror.size

    count = range(len(bodies))
    left_out = {element for element in count if int(bodies[element]) in pairing.left_out["body"]}
    pairing.left_out[kind] = left_out
    images = np.array(pairing.images["body"])
    costs = {
        (a, b): cost(a, b)
        for a in count
        for b in count[a:]
        if bodies[b] == images[bodies[a]] and a not in left_out
    }
    found = {element: element for element in left_out} | cheap_pairing(count, costs)
    pairing.images[kind] = [found.get(element, NO_IMAGE) for element in count]
