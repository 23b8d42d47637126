"""Gymnasium's robot models, and the corrections that make their physics as symmetric as they look.

Model files are read from Gymnasium and edited in memory, so there is no copy to keep up to date. `augury
symmetry` finds the parameters that break a symmetry; the corrections here repair them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal, NamedTuple

import gymnasium
import mujoco

from augury.errors import unknown_name

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"

Variant = Literal["corrected", "paper", "stock"]
VARIANTS: tuple[Variant, ...] = ("corrected", "paper", "stock")


class Correction(NamedTuple):
    """One edit of a model."""

    name: str
    edit: Callable[[mujoco.MjSpec], None]
    in_paper: bool = True
    """Whether the paper made it too."""


def _foot_friction(spec: mujoco.MjSpec) -> None:
    spec.geom("foot_left_geom").friction[0] = 0.9


def _hip_armature(spec: mujoco.MjSpec) -> None:
    spec.joint("right_hip_y").armature = 0.01


def _knee_stiffness(spec: mujoco.MjSpec) -> None:
    spec.joint("right_knee").stiffness[0] = 1.0


def _newton_solver(spec: mujoco.MjSpec) -> None:
    """PGS solves the constraints one after the other, and stops while their order still matters."""
    spec.option.solver = mujoco.mjtSolver.mjSOL_NEWTON


def _elliptic_cone(spec: mujoco.MjSpec) -> None:
    """A friction pyramid has edges along x and y, so rotating the robot changes how it slips."""
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC


def _upright_pole(spec: mujoco.MjSpec) -> None:
    spec.geom("cpole").fromto[3] = 0.0


def _vertical_gravity(spec: mujoco.MjSpec) -> None:
    spec.option.gravity[0] = 0.0


_POLE = Correction("pole", _upright_pole)
_CONE = Correction("cone", _elliptic_cone, in_paper=False)

CORRECTIONS: dict[str, tuple[Correction, ...]] = {
    "swimmer": (),
    "walker2d": (Correction("foot-friction", _foot_friction),),
    "ant": (_CONE,),
    "humanoid": (
        Correction("hip-armature", _hip_armature),
        Correction("knee-stiffness", _knee_stiffness),
        Correction("solver", _newton_solver),
        _CONE,
    ),
    "inverted_pendulum": (_POLE,),
    # Gymnasium's pole is upright in recent versions; its gravity still leans.
    "inverted_double_pendulum": (_POLE, Correction("gravity", _vertical_gravity, in_paper=False)),
}
"""Corrections of each model file, by its name."""


MIRROR_NORMAL: dict[str, Literal["x", "y"]] = {
    **dict.fromkeys(CORRECTIONS, "y"),
    "ant": "x",  # the paper exchanges front and back
    "inverted_pendulum": "x",
    "inverted_double_pendulum": "x",
}
"""Normal of the plane through which each robot is reflected."""


def corrections_of(robot: str, variant: Variant) -> tuple[str, ...]:
    """The names of a variant's corrections: all, those of the paper, or none."""
    if variant not in VARIANTS:
        raise unknown_name("variant", variant, VARIANTS)
    return tuple(
        correction.name
        for correction in CORRECTIONS[robot]
        if variant == "corrected" or (variant == "paper" and correction.in_paper)
    )


def load(robot: str, corrections: Collection[str]) -> mujoco.MjSpec:
    """Gymnasium's model of a robot with the named corrections made; ready to compile."""
    known = {correction.name: correction for correction in CORRECTIONS[robot]}
    spec = mujoco.MjSpec.from_file(str(ASSETS / f"{robot}.xml"))
    for name in corrections:
        if name not in known:
            raise unknown_name(f"correction of {robot}", name, known)
        known[name].edit(spec)
    return spec
