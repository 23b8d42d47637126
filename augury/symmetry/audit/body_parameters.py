"""Bodies, and the geoms and sites on them."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.symmetry.audit.felt import inertia_of
from augury.symmetry.audit.findings import Comparison
from augury.symmetry.audit.shapes import compare_shapes
from augury.symmetry.audit.uses import bodies_read, sites_of, used_sites
from augury.symmetry.contacts import geoms_that_matter, touching

_SENSOR = mujoco.mjtSensor


def audit_bodies(comparison: Comparison) -> None:
    """Compare masses, and where they are; what no motion can show does not count."""
    model, pairing, places = comparison.model, comparison.pairing, comparison.places
    extent = pairing.mirror.size
    tensors = np.array([inertia_of(model, body) for body in range(model.nbody)])
    read = bodies_read(model)
    for pair in pairing.pairs("body"):
        first = pair[0]
        if not first:
            continue
        if first in places.displaced:
            parent = int(model.body_parentid[first])
            mirrored = places.image_of(parent, model.body_pos[first])
            comparison.expect("body pos", pair, model.body_pos, mirrored, extent, on=parent)
        if {*pair} & read:
            origins = dict.fromkeys(pair, np.zeros(3))
            mirrored = places.image_of(first, np.zeros(3))
            comparison.expect("body origin", pair, origins, mirrored, extent, on=first)
        matrix, before = pairing.turned("body", first), len(comparison.findings)
        comparison.same_of(pair, "body", "body", "mass")
        if model.body_mass[list(pair)].any():
            comparison.same_of(pair, "body", "body", "gravcomp")
            centre = places.image_of(first, model.body_ipos[first])
            comparison.expect("body ipos", pair, model.body_ipos, centre, extent, on=first)
        comparison.expect("body inertia", pair, tensors, matrix @ tensors[first] @ matrix.T)
        if len(comparison.findings) > before and comparison.felt.alike(first):
            del comparison.findings[before:]


def audit_geoms(comparison: Comparison) -> None:
    """Compare who can touch whom, and shapes and contacts of the geoms that matter."""
    model, pairing = comparison.model, comparison.pairing
    _audit_relation(comparison)
    matter = geoms_that_matter(model)
    for geom in matter:
        image = pairing.images["geom"][geom]
        if image < 0:
            comparison.without_image("geom", geom)
        elif geom <= image and image in matter:
            compare_shapes(comparison, "geom", (geom, image))
            comparison.same_of(
                (geom, image), "geom", "geom", "condim", "priority", "friction", "margin", "gap", "solref",
                "solimp", "solmix", "fluid", "adhesion",
            )  # fmt: skip
        elif image not in matter and not touching(model)[geom].any():
            comparison.note(
                "geom use", (geom, image), "used", "not used", "by a fluid, a tendon or a contact"
            )


def audit_sites(comparison: Comparison) -> None:
    """Compare the sites that are used: position, for touch sensors the shape, for rangefinders the axis."""
    model, pairing = comparison.model, comparison.pairing
    positions = model.site_pos
    for site in sorted(used_sites(model)):
        image = pairing.images["site"][site]
        if image < 0:
            comparison.without_image("site", site)
        elif site <= image:
            body, extent = int(model.site_bodyid[site]), pairing.mirror.size
            mirrored = comparison.places.image_of(body, positions[site])
            comparison.expect("site pos", (site, image), positions, mirrored, extent, on=body)
            if site in sites_of(model, _SENSOR.mjSENS_TOUCH, _SENSOR.mjSENS_INSIDESITE):
                compare_shapes(comparison, "site", (site, image))
            if site in sites_of(model, _SENSOR.mjSENS_RANGEFINDER):
                ahead = {site: np.eye(3)[2], image: np.eye(3)[2]}
                comparison.expect("site axes", (site, image), ahead, pairing.turned("site", site)[:, 2], 1.0)


def _audit_relation(comparison: Comparison) -> None:
    """Compare who can touch whom. Masks are notation: those of two sides may be exchanged."""
    model, pairing = comparison.model, comparison.pairing
    images = np.array(pairing.images["geom"], int)
    can = touching(model, excluded=False)
    known = images >= 0
    differs = (can != can[np.ix_(images, images)]) & known & known[:, None]
    while differs.any():
        geom = int(differs.sum(1).argmax())
        others = np.flatnonzero(differs[geom])
        other = int(others[0])
        does, does_not = (geom, other), (int(images[geom]), int(images[other]))
        if not can[does]:
            does, does_not = does_not, does
        one, two = (tuple(pairing.label("geom", each) for each in pair) for pair in (does, does_not))
        more = f", and {len(others) - 1} more like this" if len(others) > 1 else ""
        why = f"{one[0]} can touch {one[1]}, {two[0]} cannot touch {two[1]}{more}"
        counts = can.sum(1)
        pair = (geom, int(images[geom]))
        comparison.note("geom contacts", pair, int(counts[pair[0]]), int(counts[pair[1]]), why)
        differs[[geom, images[geom]]] = False
        differs[:, [geom, images[geom]]] = False
