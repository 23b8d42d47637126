"""Quaternions x, y, z, w and Euler angles with PyBullet's conventions, row by row."""

from __future__ import annotations

import numpy as np

from augury.envs.mujoco.physics import Rows


def unique_sign(quaternion: Rows) -> Rows:
    """Of the two quaternions of a rotation, the one that PyBullet reports.

    That is the one with a positive w. Where w is within ± 1/2, it is the one whose largest other component is
    positive.
    """
    largest = quaternion[np.arange(len(quaternion)), np.abs(quaternion[:, :3]).argmax(1)]
    leading = np.where(np.abs(quaternion[:, 3]) > 0.5, quaternion[:, 3], largest)
    return np.where(leading[:, None] < 0, -quaternion, quaternion)


def rotated(quaternion: Rows, vector: Rows) -> Rows:
    """A vector in the body's frame, given in the world's."""
    axis, scalar = quaternion[:, :3], quaternion[:, 3:]
    twice = 2 * _cross(axis, vector)
    return vector + scalar * twice + _cross(axis, twice)


def euler_angles(quaternion: Rows) -> Rows:
    """Roll, pitch and yaw as PyBullet computes them. At a pitch of ± 90° all roll becomes yaw."""
    x, y, z, w = quaternion.T
    sine = 2 * (w * y - x * z)
    locked = np.abs(sine) >= 0.99999
    roll = np.where(locked, 0, np.arctan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z))
    pitch = np.arcsin(np.clip(np.where(locked, np.sign(sine), sine), -1, 1))
    side = np.where(sine > 0, -1, 1)
    yaw = np.where(
        locked,
        2 * np.arctan2(side * x, -side * y),
        np.arctan2(2 * (x * y + w * z), w * w + x * x - y * y - z * z),
    )
    return np.stack([roll, pitch, yaw], 1)


_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


def _cross(first: Rows, second: Rows) -> Rows:
    """The cross product; NumPy's own takes ten times as long for a few rows."""
    return first[:, _NEXT] * second[:, _LAST] - first[:, _LAST] * second[:, _NEXT]
