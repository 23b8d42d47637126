"""The paths of tendons, and which is the mirror image of which."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from augury.symmetry.pairing.images import NO_IMAGE, Pairing
from augury.symmetry.pairing.matching import cheap_pairing

_STEP = mujoco.mjtWrap
_Step = tuple[int, int, float]
"""Type, element, and an amount."""


def pair_tendons(pairing: Pairing) -> None:
    """Pair tendons along mirrored paths; where one is made of joints its length may change its sign."""
    count = range(pairing.model.ntendon)
    pairing.left_out["tendon"] = {tendon for tendon in count if _stays(pairing, tendon)}
    courses = [_Course.of(pairing, tendon) for tendon in count]
    likeness = {(a, b): _likeness(courses[a], courses[b]) for a in count for b in count[a:]}
    found = cheap_pairing(count, {pair: -abs(like) for pair, like in likeness.items() if like})
    pairing.images["tendon"] = [found.get(tendon, NO_IMAGE) for tendon in count]
    pairing.signs["tendon"] = [
        float(np.sign(likeness.get((min(a, b), max(a, b)), 1.0)))
        for a, b in enumerate(pairing.images["tendon"])
    ]


def coefficients(model: mujoco.MjModel, tendon: int) -> dict[int, float]:
    """The coefficient of every joint of a tendon; empty for one that runs through space."""
    joint = _STEP.mjWRAP_JOINT
    return {index: amount for kind, index, amount in _path(model, tendon) if kind == joint}


def mirrored_coefficients(pairing: Pairing, tendon: int) -> dict[int, float]:
    """The coefficients that the image of a tendon should have, if its length keeps its sign."""
    images, signs = pairing.images["joint"], pairing.signs["joint"]
    return {
        images[joint]: signs[joint] * amount for joint, amount in coefficients(pairing.model, tendon).items()
    }


class _Course(NamedTuple):
    """What a tendon runs along, and what its image should."""

    own: dict[int, float]
    """Coefficients of its joints, if it is made of joints."""
    mirrored: dict[int, float]
    path: list[_Step]
    images: list[list[_Step]]

    @classmethod
    def of(cls, pairing: Pairing, tendon: int) -> _Course:
        path = _path(pairing.model, tendon)
        image = [_mirrored_step(pairing, *step) for step in path]
        # The length of a path is the same backwards, but for pulleys.
        pulley = _STEP.mjWRAP_PULLEY in (kind for kind, _, _ in path)
        images = [image] if pulley else [image, image[::-1]]
        own, mirrored = coefficients(pairing.model, tendon), mirrored_coefficients(pairing, tendon)
        return cls(own, mirrored, path, images)


def _likeness(first: _Course, second: _Course) -> float:
    """0 for tendons that cannot be images; else the cosine between their coefficients, 1 for equal paths."""
    if not first.mirrored:
        return float(second.path in first.images)
    if first.mirrored.keys() != second.own.keys():
        return 0.0
    a, b = np.array([[first.mirrored[joint], second.own[joint]] for joint in second.own]).T
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def _stays(pairing: Pairing, tendon: int) -> bool:
    """Whether all that a tendon runs along stays as it is."""
    kinds = {int(_STEP.mjWRAP_JOINT): "joint", int(_STEP.mjWRAP_SITE): "site"}
    passed = [(kinds[kind], index) for kind, index, _ in _path(pairing.model, tendon) if kind in kinds]
    return all(index in pairing.left_out[kind] for kind, index in passed)


def _path(model: mujoco.MjModel, tendon: int) -> list[_Step]:
    """What a tendon passes."""
    steps = slice(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
    parts = (model.wrap_type, model.wrap_objid, model.wrap_prm)
    return list(zip(*(part[steps].tolist() for part in parts), strict=True))


def _mirrored_step(pairing: Pairing, kind: int, index: int, amount: float) -> _Step:
    """One step of a path, mirrored; around a geom the amount is the site that tells the side."""
    if kind == _STEP.mjWRAP_SITE:
        return kind, pairing.image("site", index), amount
    if kind in (_STEP.mjWRAP_SPHERE, _STEP.mjWRAP_CYLINDER):
        return kind, pairing.image("geom", index), float(pairing.image("site", int(amount)))
    return kind, index, amount
