"""Which parameters of a model break its mirror symmetry."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from augury.symmetry.audit.actuation import audit_actuators, audit_tendons, has_unknown_motors
from augury.symmetry.audit.body_parameters import audit_bodies, audit_geoms, audit_sites
from augury.symmetry.audit.constraints import audit_constraints
from augury.symmetry.audit.findings import TOLERANCE, Comparison, Finding, finding_about, ranked
from augury.symmetry.audit.joint_parameters import audit_joints
from augury.symmetry.audit.shapes import known_shape
from augury.symmetry.contacts import frictional_contacts, geoms_that_matter, pyramid_is_mirrored
from augury.symmetry.pairing.images import Pairing


def findings_in(pairing: Pairing) -> list[Finding]:
    """Everything found that is not symmetric, by group, the largest first."""
    comparison = Comparison(pairing)
    comparison.findings += _fields(pairing)
    comparison.findings += solver_findings(pairing.model)
    comparison.findings += _cone(pairing)
    for part in (
        audit_bodies,
        audit_joints,
        audit_geoms,
        audit_sites,
        audit_tendons,
        audit_actuators,
        audit_constraints,
    ):
        part(comparison)
    return ranked(comparison.findings)


def not_compared(pairing: Pairing) -> list[str]:
    """What the audit does not look at, so that its silence says nothing."""
    model = pairing.model
    shapes = [
        f"geom '{pairing.label('geom', geom)}': shapes of this type are not compared"
        for geom in geoms_that_matter(model)
        if not known_shape(model.geom_type[geom])
    ]
    unknown = {
        "flexible bodies": model.nflex,
        "plugins": model.nplugin,
        "plasticity": getattr(model, "nplastic", 0),  # the oldest MuJoCo we support has none
        "surface velocities": np.any(model.geom_surfacevel),
        "poses of mocap bodies": model.nmocap,
        "motors with inner states of their own (DC, PID, user)": has_unknown_motors(model),
    }
    return shapes + [f"{what} are not compared" for what, present in unknown.items() if present]


def solver_findings(model: mujoco.MjModel) -> Iterator[Finding]:
    """Options by which the order of constraints shows in the result."""
    if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
        why = "it visits constraints in order, so that the result is not symmetric until it has converged"
        yield finding_about("option solver", "option", "PGS", why)
    if count := int(model.opt.noslip_iterations):
        yield finding_about("option noslip_iterations", "option", count, "they visit constraints in order")


def _fields(pairing: Pairing) -> Iterator[Finding]:
    """Fields must be their own mirror image; the magnetic one, which is only measured, up to its sign."""
    model, matrix = pairing.model, pairing.mirror.matrix
    fields = {"gravity": (model.opt.gravity, [1]), "wind": (model.opt.wind, [1])}
    if int(mujoco.mjtSensor.mjSENS_MAGNETOMETER) in model.sensor_type:
        fields["magnetic"] = (model.opt.magnetic, [1, -1])
    for name, (vector, signs) in fields.items():
        length = float(np.abs(vector).max())
        apart = min(float(np.abs(matrix @ vector - sign * vector).max()) for sign in signs)
        if apart > TOLERANCE * length:
            why = "it is not its own mirror image"
            yield finding_about(f"option {name}", "option", vector, why, apart, apart / length)


def _cone(pairing: Pairing) -> Iterator[Finding]:
    model = pairing.model
    if model.opt.cone != mujoco.mjtCone.mjCONE_PYRAMIDAL:
        return
    for pair in frictional_contacts(model):
        if not pyramid_is_mirrored(pairing.mirror, *pair):
            first, second = (pairing.label("geom", geom) for geom in pair)
            why = f"its edges at a contact of {first} and {second} are not mirrored; elliptic has none"
            yield finding_about("option cone", "option", "pyramidal", why)
            return
