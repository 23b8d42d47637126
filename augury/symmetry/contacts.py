"""Which contacts can happen, and whether their friction is symmetric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.frames import Mirror
from augury.symmetry.maps import Array

_DISABLE = mujoco.mjtDisableBit
Relation = npt.NDArray[np.bool_]


def frictional_contacts(model: mujoco.MjModel) -> Iterator[tuple[int, int]]:
    """Pairs of geoms that can touch with friction."""
    if _disabled(model, _DISABLE.mjDSBL_CONTACT):
        return
    for pair in range(model.npair):
        if model.pair_dim[pair] > 1:
            yield int(model.pair_geom1[pair]), int(model.pair_geom2[pair])
    rubbing = np.nonzero(np.triu(touching(model) & (_dimensions(model) > 1)))
    yield from zip(*(geoms.tolist() for geoms in rubbing), strict=True)


def touching(model: mujoco.MjModel, *, excluded: bool = True) -> Relation:
    """Whether MuJoCo looks for a contact of each geom with each other one; explicit pairs are not in it.

    It does not look within a rigid group, nor between parent and child, nor, unless `excluded` is False,
    between bodies that the model excludes.
    """
    types, affinities = model.geom_contype, model.geom_conaffinity
    meet = (types[:, None] & affinities) != 0
    groups = model.body_weldid[model.geom_bodyid]
    parents = model.body_weldid[model.body_parentid[groups]]
    family = groups[:, None] == parents
    if _disabled(model, _DISABLE.mjDSBL_FILTERPARENT):
        family[:] = False
    family &= (groups[:, None] > 0) & (groups > 0)  # the world is no parent here
    meet = (meet | meet.T) & (groups[:, None] != groups) & ~(family | family.T)
    if _disabled(model, _DISABLE.mjDSBL_CONTACT):
        meet[:] = False
    if excluded and model.nexclude:
        bodies = model.geom_bodyid
        low, high = np.minimum(bodies[:, None], bodies), np.maximum(bodies[:, None], bodies)
        apart = [tuple(sorted(pair)) for pair in excluded_bodies(model)]
        meet &= ~np.isin(low * model.nbody + high, [one * model.nbody + other for one, other in apart])
    return np.asarray(meet)


def excluded_bodies(model: mujoco.MjModel) -> list[tuple[int, int]]:
    """Pairs of bodies between which contacts are excluded."""
    return [(signature >> 16, signature & 0xFFFF) for signature in model.exclude_signature.tolist()]


def geoms_that_matter(model: mujoco.MjModel) -> list[int]:
    """Geoms that can touch something, or that a fluid or a tendon feels."""
    matter = touching(model).any(1) | (model.geom_fluid[:, 0] > 0)
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


def _disabled(model: mujoco.MjModel, what: Any) -> bool:
    return bool(model.opt.disableflags & int(what))


def _dimensions(model: mujoco.MjModel) -> npt.NDArray[np.int32]:
    """Of the contact of each geom with each other one: that of higher priority decides, else the larger."""
    priority, dimensions = model.geom_priority, model.geom_condim
    own, other = np.broadcast_to(dimensions[:, None], (model.ngeom,) * 2), dimensions
    larger = np.maximum(own, other)
    return np.where(priority[:, None] == priority, larger, np.where(priority[:, None] > priority, own, other))


def _tangents(normal: Array) -> Array:
    """The two directions of friction that MuJoCo chooses at a contact, as rows."""
    start = np.array([0.0, 1.0, 0.0]) if abs(normal[1]) < 0.5 else np.array([0.0, 0.0, 1.0])
    first = start - (start @ normal) * normal
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(normal, first)])
