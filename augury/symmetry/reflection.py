"""The mirror map of any MuJoCo model, and what in the model breaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import numpy.typing as npt

from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.quantities import Quantity
from augury.symmetry.audit.findings import Finding
from augury.symmetry.audit.model import findings_in, not_compared
from augury.symmetry.maps import AffineMap, Array, Symmetry, SymmetryError
from augury.symmetry.pairing.elements import both_ways, pair_all
from augury.symmetry.pairing.images import Pairing
from augury.symmetry.pairing.part import Part, part_of
from augury.symmetry.part_findings import about_the_part
from augury.symmetry.planes import best_mirror
from augury.symmetry.reference import reference_pose
from augury.symmetry.sensors import sensor_map
from augury.symmetry.state import activation_map, control_map, position_map, vector_map, velocity_map

_NORMALS = ("y", "x", "z")
"""Normals to try: left and right first, then front and back."""
_FITS = 0.01
"""Largest misfit of a mirror that is taken without a look at the others."""


@dataclass(frozen=True, eq=False)
class Reflection(Symmetry):
    """How a model is mirrored, and everything found that makes the mirror image behave differently."""

    normal: Array
    distance: float
    """Of the mirror plane from the origin, along the normal."""
    reference: Array | None
    """The pose in which the model is symmetric; None for qpos0."""
    misfit: float
    """How far mirrored bodies are from their images, as a share of the model's size."""
    pairs: dict[str, dict[str, str]]
    """Name of the image by name, for every "body", "joint" and "actuator"."""
    geoms: list[int]
    """Index of the image of each geom; negative where it has none."""
    findings: list[Finding]
    not_compared: list[str]
    """What the audit does not know; the simulator does: see `simulated_error`."""
    pairing: Pairing
    """Which element is the image of which, by index."""
    left_out: dict[str, list[str]]
    """The joints and actuators that stay as they are, where only a part of the robot is mirrored."""

    @property
    def normal_name(self) -> str:
        """The normal as "x", "y", "z", or its numbers."""
        for axis, unit in zip("xyz", np.eye(3), strict=True):
            if np.array_equal(np.abs(self.normal), unit):
                return axis
        return " ".join(f"{number:.6g}" for number in self.normal)

    @property
    def plane(self) -> str:
        """Where the mirror stands, as a person reads it."""
        through = f", {self.distance:.6g} from the origin" if self.distance else ""
        return f"normal {self.normal_name}{through}"

    @property
    def changes_nothing(self) -> bool:
        """Whether every state and every control is its own image."""
        return all(each.is_identity for each in (self.qpos, self.qvel, self.act, self.ctrl))


def reflection(
    model: mujoco.MjModel,
    normal: str | npt.ArrayLike = "auto",
    pairs: Mapping[str, str] | None = None,
    *,
    distance: float | None = None,
    reference: str | npt.ArrayLike | None = None,
    only: str | None = None,
) -> Reflection:
    """Derive how a model is reflected through a plane.

    Its normal is "x", "y", "z" or a vector; "auto" takes the first of y, x and z at which every body has an
    image and something changes. The plane passes through the origin, or where bodies that hang on the world
    fit far better; `distance` says how far from the origin it is.

    Bodies are paired by where they are at the reference pose, and by their names where that does not tell.
    `pairs` says it by name for bodies and actuators: {"thigh": "thigh_left"}. The reference is qpos0, or the
    symmetric pose nearest to a keyframe or to a qpos that is given.

    `only` is a regular expression: joints whose names have no match of it stay as they are. The base is
    mirrored with the part. This is a symmetry of the part, not of the robot: the rest still moves it.
    """
    part, given = part_of(model, only), both_ways(model, pairs or {})
    pose = None if reference is None else reference_pose(model, reference)
    if isinstance(normal, str) and normal == "auto":
        return _first_that_serves(lambda each: _reflection(model, each, given, part, distance, pose))
    return _reflection(model, normal, given, part, distance, pose)


def _reflection(
    model: mujoco.MjModel,
    normal: str | npt.ArrayLike,
    given: Mapping[str, str],
    part: Part,
    distance: float | None,
    pose: Array | None,
) -> Reflection:
    """The reflection with this normal."""
    bodies, misfit = best_mirror(model, normal, given, part, distance, pose)
    mirror, pairing = bodies.mirror, pair_all(bodies)
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
        distance=mirror.distance,
        reference=mirror.reference,
        misfit=misfit,
        pairs={
            kind: {
                pairing.label(kind, index): pairing.label(kind, image)
                for index, image in enumerate(pairing.images[kind])
            }
            for kind in ("body", "joint", "actuator")
        },
        geoms=pairing.images["geom"],
        findings=about_the_part(pairing, findings_in(pairing)),
        not_compared=without_map + not_compared(pairing),
        pairing=pairing,
        left_out={
            kind: [pairing.label(kind, index) for index in sorted(pairing.left_out[kind])]
            for kind in ("joint", "actuator")
            if pairing.left_out[kind]
        },
    )
    assert all(each.is_involution for each in (found.qpos, found.qvel, found.act, found.ctrl))
    return found


def around(mirror: Reflection, controls: Array, name: str) -> Reflection:
    """The same, of actions that are added to these controls of a default pose."""
    ctrl = mirror.ctrl.about(controls)
    if not np.allclose(ctrl.offset, 0):
        raise SymmetryError(
            f"the controls of {name}'s default pose are not symmetric: choose another keyframe"
        )
    return replace(mirror, ctrl=AffineMap(ctrl.matrix, np.zeros_like(ctrl.offset)))


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


def _first_that_serves(derive: Callable[[str], Reflection]) -> Reflection:
    """The first mirror that changes something, fits and keeps gravity; else the one that comes nearest."""
    found, refused = [], []
    for normal in _NORMALS:
        try:
            one = derive(normal)
        except SymmetryError as error:
            refused.append(error)
            continue
        lacks = (one.changes_nothing, _turns_gravity(one), one.misfit * (one.misfit > _FITS))
        if not any(lacks):
            return one
        found.append((lacks, one))
    if not found:
        raise SymmetryError(f"none of the normals y, x and z serves; for y: {refused[0]}")
    return min(found, key=lambda each: each[0])[1]


def _turns_gravity(found: Reflection) -> bool:
    return any(finding.parameter == "option gravity" for finding in found.findings)


def _key(own: Quantity, address: int) -> tuple[str, int, str]:
    """What tells a number of this quantity's kind from others: of vectors there are several."""
    return own.kind, address, own.term if own.kind in ("vector", "pseudovector") else ""
