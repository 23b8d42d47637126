"""Contacts that MuJoCo finds in a state but not, mirrored, in the state's image.

MuJoCo finds some contacts by iteration, and chooses among equal ones. So the contacts of two shapes that are
mirror images of each other need not be.
"""

from __future__ import annotations

from collections import defaultdict

import mujoco
import numpy as np

from augury.symmetry.audit.hulls import largest_gap
from augury.symmetry.audit.shapes import known_shape
from augury.symmetry.maps import Array
from augury.symmetry.reflection import Reflection

_APART = 1e-8
"""Contacts further apart than this are different ones, in metres."""


def unlike_contacts(
    model: mujoco.MjModel, mirror: Reflection, data: mujoco.MjData, image: mujoco.MjData
) -> set[tuple[int, int]]:
    """Pairs of geoms of known shapes, whose contacts in a state are not mirrored in its image."""
    matrix = np.eye(3) - 2 * np.outer(mirror.normal, mirror.normal)
    here, there = _contacts(data), _contacts(image)
    shift = 2 * mirror.distance * mirror.normal
    return {
        geoms
        for geoms in {*here, *(_image(mirror, other) for other in there)}
        if all(geom >= 0 and mirror.geoms[geom] >= 0 and known_shape(model.geom_type[geom]) for geom in geoms)
        and largest_gap(_reflected(here[geoms], matrix, shift), there[_image(mirror, geoms)]) > _APART
    }


def _contacts(data: mujoco.MjData) -> defaultdict[tuple[int, int], Array]:
    """By pair of geoms: depth, position and direction of every contact."""
    found: dict[tuple[int, int], list[Array]] = {}
    for geoms, depth, place, frame in zip(
        data.contact.geom, data.contact.dist, data.contact.pos, data.contact.frame, strict=True
    ):
        pair = (int(geoms.min()), int(geoms.max()))
        # The direction is from the first geom to the second; without its sign their order does not matter.
        direction = np.outer(frame[:3], frame[:3]).ravel()
        found.setdefault(pair, []).append(np.concatenate([[depth], place, direction]))
    return defaultdict(lambda: np.zeros((0, 13)), {pair: np.array(each) for pair, each in found.items()})


def _image(mirror: Reflection, geoms: tuple[int, int]) -> tuple[int, int]:
    first, second = sorted((mirror.geoms[geoms[0]], mirror.geoms[geoms[1]]))
    return first, second


def _reflected(contacts: Array, matrix: Array, shift: Array) -> Array:
    depths, places, directions = contacts[:, :1], contacts[:, 1:4], contacts[:, 4:].reshape(-1, 3, 3)
    turned = (matrix @ directions @ matrix.T).reshape(-1, 9)
    return np.concatenate([depths, places @ matrix.T + shift, turned], 1)
