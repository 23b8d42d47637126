"""Two shapes that are mirror images: place, axes and size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import mujoco
import numpy as np

from augury.symmetry.maps import Array

_G = mujoco.mjtGeom


def nearest_flip(turned: Array, axes: Array, other: Array, shape: int, *, own: bool) -> Array:
    """The flip of a shape's own axes, which leaves it as it is, that brings its image nearest to the other.

    A rotation mirrored is no rotation: it takes a flip of the shape's axes to write it as one.
    """
    flips = [flip for flip in _flips(shape) if not own or np.array_equal(flip, flip.T)]
    return max(flips, key=lambda flip: float(np.trace((turned @ axes @ flip).T @ other)))


def _flips(shape: int) -> Iterator[Array]:
    """Signed permutations of determinant -1: all for boxes, no others of axes for the rest.

    A plane has a front, and no flip may turn it back.
    """
    with_three_axes = shape in (int(_G.mjGEOM_BOX), int(_G.mjGEOM_ELLIPSOID))
    orders = permutations(range(3)) if with_three_axes else [(0, 1, 2)]
    for order in orders:
        for signs in product((1.0, -1.0), repeat=3):
            flip = np.eye(3)[list(order)] * signs
            if np.linalg.det(flip) < 0 and (shape != _G.mjGEOM_PLANE or flip[2, 2] > 0):
                yield flip


def rotation_between(first: Array, second: Array, share: float) -> Array:
    """The rotation nearest to a weighted sum of two."""
    left, _, right = np.linalg.svd(share * first + (1 - share) * second)
    nearest: Array = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
    return nearest


def quaternion_of(rotation: Array) -> Array:
    """The quaternion of a rotation matrix."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion


def tilted_to(axes: Array, direction: Array) -> Array:
    """Axes tilted, by the shortest way, so that the third has this direction."""
    third, goal = axes[:, 2], direction / np.linalg.norm(direction)
    cross, cosine = np.cross(third, goal), float(third @ goal)
    skew = np.cross(cross, np.eye(3)).T
    return np.asarray((np.eye(3) + skew + skew @ skew / (1 + cosine)) @ axes)
