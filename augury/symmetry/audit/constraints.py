"""Equality constraints, explicit contact pairs and exclusions: each needs its mirror image."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from augury.symmetry.audit.findings import Comparison
from augury.symmetry.contacts import excluded_bodies, touching
from augury.symmetry.frames import rotation_of
from augury.symmetry.maps import Array
from augury.symmetry.pairing.matching import cheap_pairing

_E = mujoco.mjtEq


def audit_constraints(comparison: Comparison) -> None:
    """Find constraints without a mirror image, and those whose image differs."""
    _contact_pairs(comparison)
    _exclusions(comparison)
    _equalities(comparison)


def _contact_pairs(comparison: Comparison) -> None:
    model, image = comparison.model, comparison.pairing.image
    geoms = np.stack([model.pair_geom1, model.pair_geom2], 1).tolist()
    for matched in _matched(
        comparison,
        "pair",
        [frozenset(pair) for pair in geoms],
        [frozenset(image("geom", geom) for geom in pair) for pair in geoms],
    ):
        comparison.same_of(
            matched, "pair", "pair", "dim", "friction", "solref", "solreffriction", "solimp", "margin", "gap",
            "adhesion",
        )  # fmt: skip


def _exclusions(comparison: Comparison) -> None:
    """An exclusion needs an image only where bodies could touch without it."""
    model, image = comparison.model, comparison.pairing.image
    can, bodies = touching(model), model.geom_bodyid
    for exclusion, pair in enumerate(excluded_bodies(model)):
        one, other = (bodies == image("body", body) for body in pair)
        if can[np.ix_(one, other)].any():
            comparison.without_image("exclude", exclusion)


def _equalities(comparison: Comparison) -> None:
    model = comparison.model
    mirrored = [_mirrored_objects(comparison, equality) for equality in range(model.neq)]
    kinds = [(int(model.eq_type[i]), int(model.eq_objtype[i])) for i in range(model.neq)]
    objects = [(int(model.eq_obj1id[i]), int(model.eq_obj2id[i])) for i in range(model.neq)]
    data = [_data(model, equality) for equality in range(model.neq)]
    images = [_mirrored_data(comparison, equality) for equality in range(model.neq)]

    def image_of(first: int, second: int) -> Array:
        """The numbers that the second should have as the image of the first."""
        exchanged = mirrored[first] != objects[second]
        return _exchanged(int(model.eq_type[first]), images[first]) if exchanged else images[first]

    for first, second in _matched(
        comparison,
        "equality",
        [(kind, frozenset(pair)) for kind, pair in zip(kinds, objects, strict=True)],
        [(kind, frozenset(pair)) for kind, pair in zip(kinds, mirrored, strict=True)],
        lambda first, second: float(np.abs(image_of(first, second) - data[second]).max()),
    ):
        comparison.same_of((first, second), "equality", "eq", "active0", "solref", "solimp")
        values = {index: data[index] for index in (first, second)}
        comparison.expect("equality data", (first, second), values, image_of(first, second), 1.0)


def _matched(
    comparison: Comparison,
    kind: str,
    keys: Sequence[object],
    mirrored_keys: Sequence[object],
    apart: Callable[[int, int], float] = lambda first, second: 0.0,
) -> list[tuple[int, int]]:
    """Constraints on the images of what others are on, each pair once; findings for those without image.

    Where several are on the same, the nearest are paired, one to one.
    """
    count = range(len(keys))
    likely = {(a, b): apart(a, b) for a in count for b in count[a:] if mirrored_keys[a] == keys[b]}
    images = cheap_pairing(count, likely)
    for constraint in count:
        if constraint not in images:
            comparison.without_image(kind, constraint)
    return [(first, second) for first, second in sorted(images.items()) if first <= second]


def _mirrored_objects(comparison: Comparison, equality: int) -> tuple[int, int]:
    model, image = comparison.model, comparison.pairing.image
    first, second = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
    kind = object_kind(model, equality)
    return image(kind, first), image(kind, second)


def object_kind(model: mujoco.MjModel, equality: int) -> str:
    """What an equality constraint is on."""
    kinds = {int(_E.mjEQ_JOINT): "joint", int(_E.mjEQ_TENDON): "tendon", int(_E.mjEQ_DISTANCE): "geom"}
    at_sites = model.eq_objtype[equality] == int(mujoco.mjtObj.mjOBJ_SITE)
    return kinds.get(int(model.eq_type[equality]), "site" if at_sites else "body")


def _data(model: mujoco.MjModel, equality: int) -> Array:
    """The numbers of an equality constraint; the rotation of a weld as a matrix, which is unique."""
    data = model.eq_data[equality]
    if model.eq_type[equality] != _E.mjEQ_WELD:
        return data
    return np.concatenate([data[:6], rotation_of(data[6:10]).ravel(), data[10:]])


def _mirrored_data(comparison: Comparison, equality: int) -> Array:
    """The numbers that the image of an equality constraint should have."""
    model, pairing = comparison.model, comparison.pairing
    first, second = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
    data, kind = _data(model, equality).copy(), object_kind(model, equality)
    if kind in ("joint", "tendon"):
        # q₁ = p₀ + p₁ q₂ + p₂ q₂² + …, all measured from the reference.
        signs = pairing.signs[kind]
        data[:5] *= signs[first] * (signs[second] if second >= 0 else 1.0) ** np.arange(5)
    elif kind == "body":
        anchors, places = data[:6].reshape(2, 3), comparison.places
        weld = model.eq_type[equality] == _E.mjEQ_WELD  # its first anchor is that of the second body
        bodies = (second, first) if weld else (first, second)
        data[:6] = np.concatenate([places.image_of(*each) for each in zip(bodies, anchors, strict=True)])
        if weld:
            one, other = pairing.turned("body", first), pairing.turned("body", second)
            data[6:15] = (one @ data[6:15].reshape(3, 3) @ other.T).ravel()
    return data


def _exchanged(kind: int, data: Array) -> Array:
    """The same constraint with its two objects exchanged."""
    data = data.copy()
    if kind in (_E.mjEQ_CONNECT, _E.mjEQ_WELD):
        data[:6] = np.concatenate([data[3:6], data[:3]])
        if kind == _E.mjEQ_WELD:
            data[6:15] = data[6:15].reshape(3, 3).T.ravel()
    elif kind in (_E.mjEQ_JOINT, _E.mjEQ_TENDON) and abs(data[1]) == 1:
        data[0] /= -data[1]
    return data
