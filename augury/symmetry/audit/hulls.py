"""Whether the convex hulls of two meshes are mirror images: as sets, whatever their corners are."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.symmetry.audit.findings import Comparison
from augury.symmetry.frames import rotation_of
from augury.symmetry.maps import Array

_STORED_COARSELY = 1e-6
"""MuJoCo keeps the corners of meshes in single precision."""
_DIRECTIONS = 400
_FEW = 1000
"""Distances that are sooner computed than looked up."""


def compare_hulls(comparison: Comparison, pair: tuple[int, int]) -> None:
    """Compare what MuJoCo collides of two meshes that should be mirror images: their convex hulls."""
    model = comparison.model
    own, other = (_corners(model, geom) for geom in pair)
    body = int(model.geom_bodyid[pair[0]])
    mirrored = comparison.places.image_of(body, own)
    rounding = _STORED_COARSELY * max(float(np.abs(each - each.mean(0)).max()) for each in (own, other))
    if len(own) == len(other) and largest_gap(mirrored, other) <= rounding:
        return
    # A few directions tell most hulls apart; only those that agree there are compared face by face.
    apart = float(np.abs(_extents(mirrored) - _extents(other)).max())
    if apart <= rounding:
        apart = max(_sticks_out(mirrored, other), _sticks_out(other, mirrored))
    if apart <= rounding:
        return
    middles = [(each.min(0) + each.max(0)) / 2 for each in (own, other, mirrored)]
    comparison.note(
        "geom hull",
        pair,
        middles[0],
        middles[1],
        f"mirrored, the middle of the first would be {np.round(middles[2], 6).tolist()}",
        mirrored=middles[2],
        size=apart,
        relative=apart / comparison.places.reach(body),
    )


def largest_gap(points: Array, others: Array) -> float:
    """The largest distance from a point of one of two sets to the nearest of the other."""
    if not len(points) or not len(others):
        return 0.0 if len(points) == len(others) else np.inf
    if len(points) * len(others) <= _FEW:
        apart = np.linalg.norm(points[:, None] - others, axis=2)
        return float(max(apart.min(0).max(), apart.min(1).max()))
    from scipy.spatial import cKDTree  # slow to import, and most never get here

    return max(float(cKDTree(a).query(b)[0].max()) for a, b in ((points, others), (others, points)))


def _corners(model: mujoco.MjModel, geom: int) -> Array:
    """The corners of a mesh's convex hull, as far as MuJoCo has computed it, in the frame of the body."""
    mesh = model.geom_dataid[geom]
    start, graph = model.mesh_vertadr[mesh], model.mesh_graphadr[mesh]
    corners = np.asarray(model.mesh_vert[start : start + model.mesh_vertnum[mesh]], float)
    if graph >= 0:  # numbers of corners and faces, where the edges of each corner begin, then the corners
        count = model.mesh_graph[graph]
        corners = corners[model.mesh_graph[graph + 2 + count : graph + 2 + 2 * count]]
    return np.asarray(corners @ rotation_of(model.geom_quat[geom]).T + model.geom_pos[geom])


def _extents(points: Array) -> Array:
    """How far a set of points extends in directions all around, which a spiral gives."""
    steps = np.arange(_DIRECTIONS) + 0.5
    height, angle = 1 - 2 * steps / _DIRECTIONS, np.pi * (1 + np.sqrt(5)) * steps
    width = np.sqrt(1 - height**2)
    directions = np.stack([width * np.cos(angle), width * np.sin(angle), height])
    return np.asarray((points @ directions).max(0))


def _sticks_out(points: Array, others: Array) -> float:
    """How far one set of points sticks out of the convex hull of the other."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        faces = ConvexHull(others).equations
    except QhullError:  # a flat mesh
        return largest_gap(points, others)
    return float((points @ faces[:, :3].T + faces[:, 3]).max())
