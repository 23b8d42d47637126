"""The mirror map of any MuJoCo model, and what in the model breaks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
import numpy.typing as npt

from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.quantities import Quantity
from augury.symmetry.audit.findings import Finding
from augury.symmetry.audit.model import findings_in, not_compared
from augury.symmetry.frames import Mirror
from augury.symmetry.maps import AffineMap, Array, Symmetry, SymmetryError
from augury.symmetry.pairing.elements import pair_all
from augury.symmetry.sensors import sensor_map
from augury.symmetry.state import activation_map, control_map, position_map, vector_map, velocity_map


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
    qpos, vectors = position_map(pairing), vector_map(pairing)
    found = Reflection(
        qpos=qpos,
        qvel=velocity_map(pairing),
        act=activation_map(pairing),
        ctrl=control_map(pairing),
        sensors=sensors,
        offsets=qpos.about(Anatomy(model).qpos),
        vectors=vectors,
        pseudovectors=AffineMap(-vectors.matrix, vectors.offset),
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


def observation_map(symmetry: Symmetry, table: Sequence[Quantity]) -> AffineMap:
    """The map of an observation whose numbers are these quantities."""
    maps = {
        "qpos": symmetry.qpos,
        "qvel": symmetry.qvel,
        "offset": symmetry.offsets,
        "reading": symmetry.sensors,
        "action": symmetry.ctrl,
        "vector": symmetry.vectors,
        "pseudovector": symmetry.pseudovectors,
    }
    column = {_key(own, own.address): number for number, own in enumerate(table)}
    matrix, offset = np.zeros((len(table), len(table))), np.zeros(len(table))
    for number, own in enumerate(table):
        kind, address = own.kind, own.address
        if kind == "scalar":
            matrix[number, number] = 1.0
            continue
        what = f"observation {number} ({own.name})"
        if kind not in maps or not 0 <= address < len(maps[kind].offset):
            raise SymmetryError(f"{what}: there is no {kind} {address}")
        row = maps[kind].matrix[address]
        if np.isnan(row).any():
            raise SymmetryError(f"{what} has no map: see not_compared")
        for needed in np.flatnonzero(row).tolist():
            if _key(own, needed) not in column:
                raise SymmetryError(f"{what} needs {kind} {needed}, which is not observed")
            matrix[number, column[_key(own, needed)]] = row[needed]
        offset[number] = maps[kind].offset[address]
    return AffineMap(matrix, offset)


def _key(own: Quantity, address: int) -> tuple[str, int, str]:
    """What tells a number of this quantity's kind from others: of vectors there are several."""
    return own.kind, address, own.term if own.kind in ("vector", "pseudovector") else ""
