"""The audit of a robot model: its mirror map, what breaks its symmetries, what the simulator says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco

from augury.envs.mujoco.quantities import Quantity, positions, velocities
from augury.errors import UserError
from augury.symmetry import (
    DEFAULT_TOLERANCE,
    AffineMap,
    Finding,
    Reflection,
    SymmetryError,
    audit_rotation,
    observation_map,
    reflection,
    rotation,
)
from augury.symmetry.effects import with_effects
from augury.symmetry.motions import FEWEST, FOLLOWED, motions
from augury.symmetry.occurring import occurring, silence
from augury.symmetry.simulate import STATES, Simulated, simulated
from augury.symmetry.verdict import Verdict, checked, reason, verdict_of

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
    simulated: Simulated | None
    """How far the motion's mirror image and the mirror image's motion are apart. None where only a part of
    the robot is mirrored, which the rest still moves."""
    rotation_findings: tuple[Finding, ...]
    simulated_rotation: Simulated | None
    """The same for a rotation about the vertical; None where the robot cannot rotate."""
    tolerance: float
    """Relative size of findings that are not taken for design."""

    @property
    def verdict(self) -> Verdict:
        """How symmetric the model is in the mirror."""
        return verdict_of(self.reflection, self.tolerance, self.simulated)

    @property
    def symmetric(self) -> bool:
        """Whether the model is symmetric, exactly or approximately."""
        return self.verdict != "not symmetric"

    @property
    def reason(self) -> str:
        """Why the model is not exactly symmetric, in one line."""
        return reason(self.reflection, self.tolerance, self.simulated)

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a program to read."""
        mirror = self.reflection
        return {
            "model": self.name,
            "normal": self.normal,
            "distance": mirror.distance,
            "reference": None if mirror.reference is None else mirror.reference.tolist(),
            "verdict": self.verdict,
            "tolerance": None if self.tolerance == float("inf") else self.tolerance,
            "reason": self.reason,
            "reflection": {
                "findings": [finding.as_json() for finding in mirror.findings],
                "not_compared": mirror.not_compared,
                "simulated_error": None if self.simulated is None else self.simulated.unexplained,
                "simulated": None if self.simulated is None else self.simulated.as_json(),
                "pairs": mirror.pairs,
                "left_out": mirror.left_out,
                "changes_nothing": mirror.changes_nothing,
                "qpos": _plain(mirror.qpos),
                "qvel": _plain(mirror.qvel),
                "act": _plain(mirror.act),
                "ctrl": _plain(mirror.ctrl),
                "observation": {"names": [own.name for own in self.table], **_plain(self.observation)},
            },
            "rotation": {
                "findings": [finding.as_json() for finding in self.rotation_findings],
                "simulated_error": None
                if self.simulated_rotation is None
                else self.simulated_rotation.unexplained,
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
    tolerance: float = DEFAULT_TOLERANCE,
) -> Audit:
    """Derive the reflection of a model, and list what breaks it or rotations about the vertical."""
    limit = checked(tolerance)
    seen = tuple(positions(model) + velocities(model) if table is None else table)
    mirror = reflection(model, normal, pairs, distance=distance, reference=reference, only=only)
    rotation_findings = tuple(audit_rotation(model))
    rotates = not any(finding.parameter == "body joints" for finding in rotation_findings)
    with silence():
        states = list(occurring(model, STATES))
    moved = motions(model, states, FEWEST if mirror.left_out else FOLLOWED)
    measured = replace(mirror, findings=with_effects(model, mirror.findings, moved))
    return Audit(
        name=name,
        normal=mirror.normal_name,
        reflection=measured,
        table=seen,
        observation=observation_map(mirror, seen),
        simulated=None if mirror.left_out else simulated(model, mirror, states, count=STATES, motions=moved),
        rotation_findings=rotation_findings,
        simulated_rotation=simulated(model, rotation(model, ANGLE), states, count=STATES)
        if rotates
        else None,
        tolerance=limit,
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
