"""Quaternions x, y, z, w and Euler angles with PyBullet's conventions, all given by their `components`."""

from __future__ import annotations

from collections.abc import Sequence

from augury.envs.panda.components import Component, namespace


def unique_sign(quaternion: Sequence[Component]) -> list[Component]:
    """Of the two quaternions of a rotation, the one that PyBullet reports.

    That is the one with a positive w. Where w is within ± 1/2, it is the one whose largest other component is
    positive.
    """
    x, y, z, w = quaternion
    xp = namespace(w)
    larger = xp.where(abs(y) > abs(x), y, x)
    largest = xp.where(abs(z) > abs(larger), z, larger)
    negative = xp.where(abs(w) > 0.5, w, largest) < 0
    return [xp.where(negative, -part, part) for part in quaternion]


def rotated(quaternion: Sequence[Component], vector: Sequence[Component]) -> list[Component]:
    """A vector in the body's frame, given in the world's."""
    *axis, scalar = quaternion
    twice = [2 * part for part in _cross(axis, vector)]
    across = _cross(axis, twice)
    return [vector[part] + scalar * twice[part] + across[part] for part in range(3)]


def euler_angles(quaternion: Sequence[Component]) -> list[Component]:
    """Roll, pitch and yaw as PyBullet computes them. At a pitch of ± 90° all roll becomes yaw."""
    x, y, z, w = quaternion
    xp = namespace(w)
    sine = 2 * (w * y - x * z)
    locked = abs(sine) >= 0.99999
    roll = xp.where(locked, 0.0, xp.arctan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z))
    pitch = xp.arcsin(xp.where(locked, xp.sign(sine), sine))
    side = xp.where(sine > 0, -1, 1)
    yaw = xp.where(
        locked,
        2 * xp.arctan2(side * x, -side * y),
        xp.arctan2(2 * (x * y + w * z), w * w + x * x - y * y - z * z),
    )
    return [roll, pitch, yaw]


def _cross(first: Sequence[Component], second: Sequence[Component]) -> list[Component]:
    (a, b, c), (x, y, z) = first, second
    return [b * z - c * y, c * x - a * z, a * y - b * x]
