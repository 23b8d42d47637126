"""The audit of a robot model: its mirror map, what breaks its symmetries, what the simulator says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from augury.envs.mujoco.quantities import Quantity, positions, velocities
from augury.errors import UserError
from augury.symmetry import (
    SIMULATED_TOLERANCE,
    AffineMap,
    Finding,
    Reflection,
    SymmetryError,
    audit_rotation,
    observation_map,
    reflection,
    rotation,
    simulated_error,
)

SIMULATED = 400
"""Random steps that the simulator is asked for."""
ANGLE = 0.5
"""By which the robot is rotated in simulation, in radians."""


@dataclass(frozen=True)
class Audit:
    """What breaks a model's symmetries, and by how much."""

    name: str
    normal: str
    reflection: Reflection
    table: tuple[Quantity, ...]
    """What an observation of the robot holds."""
    observation: AffineMap
    """Its mirror map."""
    simulated_error: float | None
    """Largest difference between the motion's mirror image and the mirror image's motion; None where only a
    part of the robot is mirrored, which the rest still moves."""
    rotation_findings: tuple[Finding, ...]
    simulated_rotation_error: float | None
    """The same for a rotation about the vertical; None where the robot cannot rotate."""

    @property
    def symmetric(self) -> bool:
        """Whether nothing was found that breaks the reflection, neither by comparison nor by simulation."""
        return not self.reflection.findings and (self.simulated_error or 0.0) <= SIMULATED_TOLERANCE

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a program to read."""
        mirror = self.reflection
        return {
            "model": self.name,
            "normal": self.normal,
            "distance": mirror.distance,
            "reference": None if mirror.reference is None else mirror.reference.tolist(),
            "reflection": {
                "findings": [finding.as_json() for finding in mirror.findings],
                "not_compared": mirror.not_compared,
                "simulated_error": self.simulated_error,
                "pairs": mirror.pairs,
                "left_out": mirror.left_out,
                "changes_nothing": mirror.changes_nothing,
                "qpos": _plain(mirror.qpos),
                "qvel": _plain(mirror.qvel),
                "ctrl": _plain(mirror.ctrl),
                "observation": {"names": [own.name for own in self.table], **_plain(self.observation)},
            },
            "rotation": {
                "findings": [finding.as_json() for finding in self.rotation_findings],
                "simulated_error": self.simulated_rotation_error,
            },
        }


def audit(
    model: mujoco.MjModel,
    name: str,
    *,
    normal: str = "auto",
    table: Sequence[Quantity] | None = None,
    pairs: Mapping[str, str] | None = None,
    distance: float | None = None,
    reference: str | None = None,
    only: str | None = None,
) -> Audit:
    """Derive the reflection of a model, and list what breaks it or rotations about the vertical."""
    seen = tuple(positions(model) + velocities(model) if table is None else table)
    mirror = reflection(model, normal, pairs, distance=distance, reference=reference, only=only)
    rotation_findings = tuple(audit_rotation(model))
    rotates = not any(finding.parameter == "body joints" for finding in rotation_findings)
    return Audit(
        name=name,
        normal=mirror.normal_name,
        reflection=mirror,
        table=seen,
        observation=observation_map(mirror, seen),
        simulated_error=None if mirror.left_out else simulated_error(model, mirror, SIMULATED),
        rotation_findings=rotation_findings,
        simulated_rotation_error=simulated_error(model, rotation(model, ANGLE), SIMULATED)
        if rotates
        else None,
    )


def read_model(path: Path) -> mujoco.MjModel:
    """The model in an MJCF or URDF file."""
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read the model {path}: {' '.join(str(error).split())}") from error


def _plain(given: AffineMap) -> dict[str, Any]:
    try:
        return {"permutation": given.permutation.tolist(), "signs": given.signs.tolist()}
    except SymmetryError:  # numbers mix: only the matrix says how
        return {"matrix": given.matrix.tolist(), "offset": given.offset.tolist()}
