"""Which contacts can happen, and whether their friction is symmetric."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import mujoco
import numpy as np

from augury.symmetry.frames import Mirror
from augury.symmetry.maps import Array

_DISABLE = mujoco.mjtDisableBit


def frictional_contacts(model: mujoco.MjModel) -> Iterator[tuple[int, int]]:
    """Pairs of geoms that can touch with friction."""
    if model.opt.disableflags & int(_DISABLE.mjDSBL_CONTACT):
        return
    for pair in range(model.npair):
        if model.pair_dim[pair] > 1:
            yield int(model.pair_geom1[pair]), int(model.pair_geom2[pair])
    excluded = {(signature >> 16, signature & 0xFFFF) for signature in model.exclude_signature.tolist()}
    can_touch = np.flatnonzero(model.geom_contype | model.geom_conaffinity).tolist()
    for first, second in combinations(can_touch, 2):
        bodies = int(model.geom_bodyid[first]), int(model.geom_bodyid[second])
        kept_apart = bodies in excluded or bodies[::-1] in excluded
        if not kept_apart and _dimensions(model, first, second) > 1 and _meet(model, first, second):
            yield first, second


def geoms_that_matter(model: mujoco.MjModel) -> list[int]:
    """Geoms that can touch something, or that a fluid or a tendon feels."""
    matter = (model.geom_contype | model.geom_conaffinity).astype(bool) | (model.geom_fluid[:, 0] > 0)
    matter[model.pair_geom1] = matter[model.pair_geom2] = True
    around = [int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)]
    matter[model.wrap_objid[np.isin(model.wrap_type, around)]] = True
    return np.flatnonzero(matter).tolist()


def pyramid_is_mirrored(mirror: Mirror, first: int, second: int) -> bool:
    """Whether the friction pyramid of a contact between two geoms is mirrored to that of its image.

    A pyramid has its edges along the tangents, which MuJoCo chooses by the world's axes. A mirror along one
    of these respects the choice at every contact. An oblique one may do so at a plane, whose normal is known;
    elsewhere it does not.
    """
    matrix = mirror.matrix
    if np.allclose(np.abs(matrix), np.eye(3), atol=1e-12):
        return True
    for geom in (first, second):
        if mirror.model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            normal = mirror.frames["geom"][1][geom][:, 2]
            overlap = np.abs(_tangents(matrix @ normal) @ matrix @ _tangents(normal).T)
            return bool(np.allclose(np.sort(overlap.ravel()), [0, 0, 1, 1], atol=1e-9))
    return False


def _dimensions(model: mujoco.MjModel, first: int, second: int) -> int:
    """The geom of higher priority decides, else the larger number."""
    priority = model.geom_priority[[first, second]]
    dimensions = model.geom_condim[[first, second]]
    return int(dimensions.max() if priority[0] == priority[1] else dimensions[priority.argmax()])


def _meet(model: mujoco.MjModel, first: int, second: int) -> bool:
    """Whether MuJoCo looks for a contact: not within a rigid group, nor between parent and child."""
    types, affinities = model.geom_contype, model.geom_conaffinity
    if not (types[first] & affinities[second] or types[second] & affinities[first]):
        return False
    groups = model.body_weldid[model.geom_bodyid[[first, second]]]
    if groups[0] == groups[1]:
        return False
    parents = model.body_weldid[model.body_parentid[groups]]
    family = groups[0] == parents[1] or groups[1] == parents[0]
    filtered = not model.opt.disableflags & int(_DISABLE.mjDSBL_FILTERPARENT)
    return not (filtered and family and groups.all())


def _tangents(normal: Array) -> Array:
    """The two directions of friction that MuJoCo chooses at a contact, as rows."""
    start = np.array([0.0, 1.0, 0.0]) if abs(normal[1]) < 0.5 else np.array([0.0, 0.0, 1.0])
    first = start - (start @ normal) * normal
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(normal, first)])
