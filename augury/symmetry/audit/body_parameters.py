"""Bodies, and the geoms and sites on them."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.symmetry.audit.findings import Comparison
from augury.symmetry.audit.shapes import compare_shapes
from augury.symmetry.contacts import geoms_that_matter
from augury.symmetry.frames import rotation_of
from augury.symmetry.maps import Array
from augury.symmetry.pairing.bodies import is_free

_SENSOR = mujoco.mjtSensor
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)


def audit_bodies(comparison: Comparison) -> None:
    """Compare masses, and where they are."""
    model, pairing = comparison.model, comparison.pairing
    extent = pairing.mirror.size
    tensors = np.array([_inertia(model, body) for body in range(model.nbody)])
    comparison.same("body", "body", "mass", "gravcomp")
    for pair in pairing.pairs("body")[1:]:
        first = pair[0]
        matrix, outer = pairing.turned("body", first), pairing.turned("body", model.body_parentid[first])
        comparison.expect("body inertia", pair, tensors, matrix @ tensors[first] @ matrix.T)
        if model.body_mass[first]:
            comparison.expect("body ipos", pair, model.body_ipos, matrix @ model.body_ipos[first], extent)
        if not is_free(model, first):
            comparison.expect("body pos", pair, model.body_pos, outer @ model.body_pos[first], extent)


def audit_geoms(comparison: Comparison) -> None:
    """Compare shapes and contacts of the geoms that matter."""
    model, pairing = comparison.model, comparison.pairing
    matter = geoms_that_matter(model)
    for geom in matter:
        image = pairing.images["geom"][geom]
        if image < 0:
            comparison.without_image("geom", geom)
        elif geom <= image or image not in matter:
            compare_shapes(comparison, "geom", (geom, image))
            comparison.same_of(
                (geom, image), "geom", "geom", "contype", "conaffinity", "condim", "priority", "friction",
                "margin", "gap", "solref", "solimp", "solmix", "fluid", "adhesion",
            )  # fmt: skip


def audit_sites(comparison: Comparison) -> None:
    """Compare the sites that are used: position, for touch sensors the shape, for rangefinders the axis."""
    model, pairing = comparison.model, comparison.pairing
    positions = model.site_pos
    for site in sorted(_used_sites(model)):
        image = pairing.images["site"][site]
        if image < 0:
            comparison.without_image("site", site)
        elif site <= image:
            mirrored = pairing.turned("body", model.site_bodyid[site]) @ positions[site]
            comparison.expect("site pos", (site, image), positions, mirrored, pairing.mirror.size)
            if site in _sites_of(model, _SENSOR.mjSENS_TOUCH, _SENSOR.mjSENS_INSIDESITE):
                compare_shapes(comparison, "site", (site, image))
            if site in _sites_of(model, _SENSOR.mjSENS_RANGEFINDER):
                ahead = {site: (0, 0, 1), image: (0, 0, 1)}
                comparison.expect("site axes", (site, image), ahead, pairing.turned("site", site)[:, 2], 1.0)


def _inertia(model: mujoco.MjModel, body: int) -> Array:
    axes = rotation_of(model.body_iquat[body])
    return axes @ np.diag(model.body_inertia[body]) @ axes.T


def _sites_of(model: mujoco.MjModel, *sensors: mujoco.mjtSensor) -> set[int]:
    chosen = np.isin(model.sensor_type, [int(sensor) for sensor in sensors])
    return set(model.sensor_objid[chosen & (model.sensor_objtype == _SITE)].tolist())


def _used_sites(model: mujoco.MjModel) -> set[int]:
    """Sites of sensors, actuators, tendons and equality constraints."""
    drives = [int(mujoco.mjtTrn.mjTRN_SITE), int(mujoco.mjtTrn.mjTRN_SLIDERCRANK)]
    on_sites = model.eq_objtype == _SITE
    users = (
        model.sensor_objid[model.sensor_objtype == _SITE],
        model.sensor_refid[model.sensor_reftype == _SITE],
        model.actuator_trnid[np.isin(model.actuator_trntype, drives)].ravel(),
        model.wrap_objid[model.wrap_type == int(mujoco.mjtWrap.mjWRAP_SITE)],
        model.eq_obj1id[on_sites],
        model.eq_obj2id[on_sites],
    )
    return set(np.concatenate(users).tolist()) - {-1}
