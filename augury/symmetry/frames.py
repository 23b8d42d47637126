"""The model at its reference pose, and what a reflection makes of its frames."""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.placement import placed


class Mirror:
    """A model at its reference pose, before a plane mirror.

    `model` is the given one. Where the plane does not pass through the origin, or the reference is not qpos0,
    it is rewritten so that both are so.

    If the mirror image of a is b, `turned(a, b)` takes vectors in the frame of a to those in the frame of b.
    It is improper: axial vectors, as angular velocity and torque, get its negative.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        normal: str | npt.ArrayLike,
        distance: float = 0.0,
        reference: Array | None = None,
    ):
        self.normal = _unit(normal)
        self.distance, self.reference = distance, reference
        self.matrix: Array = np.eye(3) - 2 * np.outer(self.normal, self.normal)
        self.shift: Array = 2 * distance * self.normal
        """What mirrored positions in the given model's world have in addition."""
        self.model = model = placed(model, reference, distance * self.normal)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        self.data = data
        self.frames: dict[str, tuple[Array, Array]] = {
            kind: (positions.copy(), axes.reshape(-1, 3, 3).copy())
            for kind, positions, axes in (
                ("body", data.xpos, data.xmat),
                ("inertia", data.xipos, data.ximat),
                ("geom", data.geom_xpos, data.geom_xmat),
                ("site", data.site_xpos, data.site_xmat),
            )
        }
        moving = np.concatenate([data.xpos, data.xipos])
        self.size = float(np.ptp(moving, axis=0).max()) or 1.0
        """How large the model is, which says what a small distance is."""

    def turned(self, kind: str, first: int, second: int) -> Array:
        """The matrix that takes vectors in the first's frame to those in the frame of its image."""
        axes = self.frames[kind][1]
        return axes[second].T @ self.matrix @ axes[first]

    def apart(self, kind: str, first: int, second: int) -> float:
        """How far the mirrored first is from the second."""
        positions = self.frames[kind][0]
        return float(np.linalg.norm(self.matrix @ positions[first] - positions[second]))


def rotation_of(quaternion: Array) -> Array:
    """The rotation matrix of a quaternion."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.ascontiguousarray(quaternion, float))
    return matrix.reshape(3, 3)


def quaternion_between(left: Array, right: Array, first: Array, second: Array) -> Array:
    """The 4×4 matrix by which orientations X, as quaternions, become those of left · X · rightᵀ.

    Left and right are improper. A quaternion and its negative are the same orientation: of the two matrices
    we take the one that sends the quaternion `first` to `second`, not to its negative.
    """
    before, after = np.zeros(4), np.zeros(4)
    mujoco.mju_mat2Quat(before, (-left).ravel())
    mujoco.mju_mat2Quat(after, (-right).ravel())
    mujoco.mju_negQuat(after, after)
    columns = []
    for unit in np.eye(4):
        product = np.zeros(4)
        mujoco.mju_mulQuat(product, before, unit)
        mujoco.mju_mulQuat(product, product.copy(), after)
        columns.append(product)
    matrix = np.stack(columns, 1)
    return matrix if (matrix @ first) @ second > 0 else -matrix


def _unit(normal: str | npt.ArrayLike) -> Array:
    if isinstance(normal, str):
        if normal not in ("x", "y", "z"):
            raise SymmetryError(f"normal '{normal}': choose x, y, z, auto or a vector")
        return np.eye(3)["xyz".index(normal)]
    vector = np.asarray(normal, float)
    if vector.shape != (3,) or not np.linalg.norm(vector) > 0:
        raise SymmetryError(f"normal {normal}: choose x, y, z or a vector of three numbers")
    return vector / np.linalg.norm(vector)
