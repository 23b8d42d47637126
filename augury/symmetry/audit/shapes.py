"""Whether shapes are mirror images, up to the symmetry that each shape has by itself."""

from __future__ import annotations

from itertools import product

import mujoco
import numpy as np

from augury.symmetry.audit.findings import TOLERANCE, Comparison
from augury.symmetry.audit.hulls import compare_hulls, largest_gap
from augury.symmetry.frames import rotation_of
from augury.symmetry.maps import Array

_G = mujoco.mjtGeom
_KNOWN = (
    _G.mjGEOM_PLANE, _G.mjGEOM_SPHERE, _G.mjGEOM_CAPSULE, _G.mjGEOM_CYLINDER, _G.mjGEOM_ELLIPSOID,
    _G.mjGEOM_BOX, _G.mjGEOM_MESH,
)  # fmt: skip
_WITH_THREE_AXES = (_G.mjGEOM_BOX, _G.mjGEOM_ELLIPSOID)


def known_shape(kind: int) -> bool:
    """Whether shapes of this type can be compared."""
    return int(kind) in _KNOWN


def compare_shapes(comparison: Comparison, kind: str, pair: tuple[int, int]) -> None:
    """Compare type, position, size and axes of two geoms or sites that should be mirror images."""
    model, pairing = comparison.model, comparison.pairing
    types, positions, sizes, quaternions, bodies = (
        getattr(model, f"{kind}_{name}") for name in ("type", "pos", "size", "quat", "bodyid")
    )
    first, second = pair
    shape = int(types[first])
    if not comparison.expect(f"{kind} type", pair, types, shape) or not known_shape(shape):
        return
    if shape == _G.mjGEOM_MESH:
        compare_hulls(comparison, pair)
        return
    body = int(bodies[first])
    matrix, extent = pairing.turned("body", body), pairing.mirror.size
    axes, other_axes = matrix @ rotation_of(quaternions[first]), rotation_of(quaternions[second])
    place = comparison.places.image_of(body, positions[first])
    if shape == _G.mjGEOM_PLANE:
        # A plane has no edge: what counts is where it faces, and how far it is along that direction.
        normals = {second: other_axes[:, 2], first: matrix.T @ axes[:, 2]}
        heights = {index: normal @ positions[index] for index, normal in normals.items()}
        comparison.expect(f"{kind} axes", pair, normals, axes[:, 2], 1.0)
        comparison.expect(f"{kind} pos", pair, heights, axes[:, 2] @ place, extent, on=body)
        return
    comparison.expect(f"{kind} pos", pair, positions, place, extent, on=body)
    points, other_points = _marks(shape, sizes[first]), _marks(shape, sizes[second])
    if shape in _WITH_THREE_AXES:  # whose order is arbitrary
        sizes = np.sort(sizes)
    if not comparison.expect(f"{kind} size", pair, sizes, sizes[first]) and shape in _WITH_THREE_AXES:
        return
    apart = largest_gap(points @ axes.T, other_points @ other_axes.T)
    relative = apart / (float(np.abs(points).max(initial=0)) or 1.0)
    if relative > TOLERANCE:
        comparison.note(
            f"{kind} axes", pair, quaternions[first], quaternions[second], size=relative, relative=relative
        )


def _marks(shape: int, size: Array) -> Array:
    """Points around the centre that a rotation maps to themselves only if it does so to the shape."""
    if shape == _G.mjGEOM_BOX:
        return np.array(list(product((-1, 1), repeat=3))) * size
    if shape == _G.mjGEOM_ELLIPSOID:
        # Its poles, but where two axes are equally long these may lie anywhere between them.
        alone = np.isclose(size, size[:, None], rtol=TOLERANCE, atol=0).sum(1) == 1
        poles = np.diag(size)[alone]
    else:
        poles = np.array([[0.0, 0.0, 0.0 if shape == _G.mjGEOM_SPHERE else 1.0]])
    return np.concatenate([poles, -poles])
