"""Where the mirror stands: planes to try, and which of them fits a model best."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.frames import Mirror
from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.pairing.bodies import BodyPairing, is_free
from augury.symmetry.pairing.part import Part
from augury.symmetry.reference import nearest_symmetric

_BETTER = 0.1
"""A plane replaces the one through the origin if it leaves less than this share of its misfit."""
_MOST = 100
"""Planes that are tried, at most."""


def best_mirror(
    model: mujoco.MjModel,
    normal: str | npt.ArrayLike,
    given: Mapping[str, str],
    part: Part,
    distance: float | None = None,
    reference: Array | None = None,
) -> tuple[BodyPairing, float]:
    """The mirror with this normal: at the given distance from the origin, or where bodies fit best.

    It comes with the bodies that it pairs, and with how far these are from their images, as a share of the
    model's size.
    """
    through_origin = Mirror(model, normal, 0.0, reference)
    distances = _distances(through_origin, part) if distance is None else [distance]
    best, least, refused = None, np.inf, None
    for each in distances:
        mirror = through_origin if each == 0 else Mirror(model, normal, each, reference)
        pairing = BodyPairing(mirror, given, part)
        try:
            pairing.images_of_all()
        except SymmetryError as error:
            refused = refused or error
            continue
        misfit = _misfit(pairing)
        if best is None or misfit < _BETTER * least:
            best, least = pairing, misfit
    if best is None:
        assert refused is not None
        raise refused
    if reference is None:
        return best, least
    mirror = Mirror(model, normal, best.mirror.distance, nearest_symmetric(best, reference))
    pairing = BodyPairing(mirror, given, part)
    pairing.images_of_all()
    return pairing, _misfit(pairing)


def _misfit(pairing: BodyPairing) -> float:
    apart = np.linalg.norm(pairing.misfits(pairing.mirror.data), axis=1)
    return float(np.sqrt(np.mean(apart**2)) / pairing.mirror.size)


def _distances(mirror: Mirror, part: Part) -> list[float]:
    """Planes through the origin, and half-way between bodies that hang on the world by a joint."""
    model = mirror.model
    roots = [
        body
        for body in range(1, model.nbody)
        if model.body_parentid[body] == 0 and not is_free(model, body) and body not in part.bodies
    ]
    heights = mirror.data.xpos[roots] @ mirror.normal
    middles = {float(np.round((a + b) / 2, 12)) for a in heights for b in heights}
    return [0.0, *sorted(middles - {0.0}, key=abs)][:_MOST]
