"""The mirror map of any MuJoCo model, and what in the model breaks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.audit.findings import Finding
from augury.symmetry.audit.model import findings_in, not_compared
from augury.symmetry.frames import Mirror
from augury.symmetry.maps import AffineMap, Array, Symmetry, SymmetryError
from augury.symmetry.pairing.elements import pair_all
from augury.symmetry.sensors import sensor_map
from augury.symmetry.state import activation_map, control_map, position_map, velocity_map


@dataclass(frozen=True, eq=False)
class Reflection(Symmetry):
    """How a model is mirrored, and everything found that makes the mirror image behave differently."""

    normal: Array
    pairs: dict[str, dict[str, str]]
    """Name of the image by name, for every "body", "joint" and "actuator"."""
    findings: list[Finding]
    not_compared: list[str]
    """What the audit does not know; the simulator does: see `simulated_error`."""


def reflection(
    model: mujoco.MjModel, normal: str | npt.ArrayLike = "y", pairs: Mapping[str, str] | None = None
) -> Reflection:
    """Derive how a model is reflected through the plane with this normal through the origin.

    Bodies are paired by where they are at the reference pose qpos0, and by their names where that does not
    tell. `pairs` says it by name for bodies and actuators: {"thigh": "thigh_left"}.
    """
    mirror = Mirror(model, normal)
    pairing = pair_all(mirror, pairs or {})
    sensors, without_map = sensor_map(pairing)
    found = Reflection(
        qpos=position_map(pairing),
        qvel=velocity_map(pairing),
        act=activation_map(pairing),
        ctrl=control_map(pairing),
        sensors=sensors,
        normal=mirror.normal,
        pairs={
            kind: {
                pairing.label(kind, index): pairing.label(kind, image)
                for index, image in enumerate(pairing.images[kind])
            }
            for kind in ("body", "joint", "actuator")
        },
        findings=findings_in(pairing),
        not_compared=without_map + not_compared(pairing),
    )
    assert all(each.is_involution for each in (found.qpos, found.qvel, found.act, found.ctrl))
    return found


def observation_map(symmetry: Symmetry, places: Sequence[tuple[str, int]]) -> AffineMap:
    """The map of an observation made of these numbers: ("qpos" | "qvel" | "sensor", address)."""
    maps = {"qpos": symmetry.qpos, "qvel": symmetry.qvel, "sensor": symmetry.sensors}
    column = {place: number for number, place in enumerate(places)}
    matrix, offset = np.zeros((len(places), len(places))), np.zeros(len(places))
    for number, (kind, address) in enumerate(places):
        if kind not in maps or not 0 <= address < len(maps[kind].offset):
            raise SymmetryError(f"observation {number}: there is no {kind} {address}")
        row = maps[kind].matrix[address]
        if np.isnan(row).any():
            raise SymmetryError(
                f"observation {number}: sensor reading {address} has no map: see not_compared"
            )
        for needed in np.flatnonzero(row).tolist():
            if (kind, needed) not in column:
                raise SymmetryError(
                    f"observation {number} ({kind} {address}) needs {kind} {needed}, which is not observed"
                )
            matrix[number, column[kind, needed]] = row[needed]
        offset[number] = maps[kind].offset[address]
    return AffineMap(matrix, offset)
