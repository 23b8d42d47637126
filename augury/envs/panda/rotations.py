"""Quaternions x, y, z, w and Euler angles with PyBullet's conventions, for NumPy and JAX arrays alike.

Arrays may have any leading axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

AnyArray = Any  # a NumPy or a JAX array


def unique_sign(quaternion: AnyArray) -> AnyArray:
    """Of the two quaternions of a rotation, the one that PyBullet reports.

    That is the one with a positive w. Where w is within ± 1/2, it is the one whose largest other component is
    positive.
    """
    xp = quaternion.__array_namespace__()
    vector, scalar = quaternion[..., :3], quaternion[..., 3:]
    largest = xp.take_along_axis(vector, abs(vector).argmax(-1)[..., None], -1)
    leading = xp.where(abs(scalar) > 0.5, scalar, largest)
    return xp.where(leading < 0, -quaternion, quaternion)


def rotated(quaternion: AnyArray, vector: AnyArray) -> AnyArray:
    """A vector in the body's frame, given in the world's."""
    axis, scalar = quaternion[..., :3], quaternion[..., 3:]
    twice = 2 * _cross(axis, vector)
    return vector + scalar * twice + _cross(axis, twice)


def euler_angles(quaternion: AnyArray) -> AnyArray:
    """Roll, pitch and yaw as PyBullet computes them. At a pitch of ± 90° all roll becomes yaw."""
    xp = quaternion.__array_namespace__()
    x, y, z, w = (quaternion[..., part] for part in range(4))
    sine = 2 * (w * y - x * z)
    locked = abs(sine) >= 0.99999
    roll = xp.where(locked, 0, xp.arctan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z))
    pitch = xp.arcsin(xp.clip(xp.where(locked, xp.sign(sine), sine), -1, 1))
    side = xp.where(sine > 0, -1, 1)
    yaw = xp.where(
        locked,
        2 * xp.arctan2(side * x, -side * y),
        xp.arctan2(2 * (x * y + w * z), w * w + x * x - y * y - z * z),
    )
    return xp.stack([roll, pitch, yaw], -1)


_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])


def _cross(first: AnyArray, second: AnyArray) -> AnyArray:
    """The cross product; NumPy's own takes ten times as long for a few rows."""
    return first[..., _NEXT] * second[..., _LAST] - first[..., _LAST] * second[..., _NEXT]
