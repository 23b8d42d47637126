"""Where the points of a body should be on its image, whatever frames the model is written in."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from augury.symmetry.audit.felt import Felt
from augury.symmetry.audit.uses import bodies_read, used_sites
from augury.symmetry.contacts import geoms_that_matter
from augury.symmetry.maps import Array
from augury.symmetry.pairing.bodies import is_free
from augury.symmetry.pairing.images import Pairing

_JOINT, _GEOM = mujoco.mjtJoint, mujoco.mjtGeom
_SHORTEST = 0.1
"""How far a body reaches at least, as a share of the model's size."""


class _Mark(NamedTuple):
    """A point of a body beside that of its image, both in the world, and the directions that count."""

    own: Array
    images: Array
    counts: Array


class Places:
    """Where physics puts the image of each body.

    The origin of a body's frame is notation: what counts is where its joints, its centre of mass, the shapes
    that can touch and the sites that are used are. `shifts` says how far these are, together, from where the
    mirror puts them. A body takes over the shift of its parent. If that does not fit and the shift of its
    origin fits better, the body as a whole is displaced.
    """

    def __init__(self, pairing: Pairing, felt: Felt, tolerance: float):
        self.pairing, self.model, self.felt = pairing, pairing.model, felt
        self.limit = tolerance * pairing.mirror.size
        self.shifts = np.zeros((self.model.nbody, 3))
        self.displaced: dict[int, float] = {}
        """Bodies that are displaced against their parent, and by how much."""
        self._on_bodies = {
            "geom": _by_body(geoms_that_matter(self.model), self.model.geom_bodyid),
            "site": _by_body(sorted(used_sites(self.model)), self.model.site_bodyid),
        }
        self._read = bodies_read(self.model)
        for body, image in enumerate(pairing.images["body"]):
            if body > image:
                self.shifts[body] = -pairing.mirror.matrix @ self.shifts[image]
            elif body:
                self.shifts[body] = self._shift(body, image)

    def image_of(self, body: int, point: Array) -> Array:
        """A point in a body's frame (or several, in rows), mirrored, in the frame of the body's image."""
        positions, axes = self.pairing.mirror.frames["body"]
        image = self.pairing.images["body"][body]
        world = positions[body] + point @ axes[body].T
        return np.asarray((self._mirrored(world) - self.shifts[body] - positions[image]) @ axes[image])

    def reach(self, body: int) -> float:
        """How far a body extends from its joint: what a small displacement on it is small against.

        At least a share of the model's size, for there are bodies whose mass is where their joint is.
        """
        model, mirror = self.model, self.pairing.mirror
        if not body:
            return mirror.size
        origins, centres = mirror.frames["body"][0], mirror.frames["inertia"][0]
        joint, geoms = model.body_jntadr[body], self._on_bodies["geom"].get(body, [])
        hinged = joint >= 0 and int(model.jnt_type[joint]) in (_JOINT.mjJNT_HINGE, _JOINT.mjJNT_BALL)
        start = mirror.data.xanchor[joint] if hinged else origins[body]
        points = [centres[body], *origins[model.body_parentid == body], *mirror.frames["geom"][0][geoms]]
        farthest = max(float(np.linalg.norm(point - start)) for point in points)
        return float(np.clip(farthest, _SHORTEST * mirror.size, mirror.size))

    def _mirrored(self, points: Array) -> Array:
        return np.asarray(points @ self.pairing.mirror.matrix.T)

    def _shift(self, body: int, image: int) -> Array:
        origins = self.pairing.mirror.frames["body"][0]
        own = self._mirrored(origins[body]) - origins[image]
        if is_free(self.model, body):  # where it is, is part of the state
            return own
        inherited = self.shifts[self.model.body_parentid[body]]
        marks = self._marks(body, image)
        if self._misplaced(marks, own) < self._misplaced(marks, inherited):
            self.displaced[body] = float(np.abs(own - inherited).max())
            return own
        return inherited.copy()

    def _misplaced(self, marks: list[_Mark], shift: Array) -> int:
        """How many marks are not where the mirror puts them."""
        return sum(
            bool(np.abs(counts @ (self._mirrored(own) - shift - images)).max() > self.limit)
            for own, images, counts in marks
        )

    def _marks(self, body: int, image: int) -> list[_Mark]:
        model, mirror, images = self.model, self.pairing.mirror, self.pairing.images
        marks, everywhere = [], np.eye(3)
        if body in self._read or image in self._read:
            origins = mirror.frames["body"][0]
            marks.append(_Mark(origins[body], origins[image], everywhere))
        for joint in range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body]):
            image_joint, kind = images["joint"][joint], int(model.jnt_type[joint])
            if kind != _JOINT.mjJNT_SLIDE:
                axis, anchors = mirror.data.xaxis[image_joint], mirror.data.xanchor
                counts = everywhere - np.outer(axis, axis) if kind == _JOINT.mjJNT_HINGE else everywhere
                marks.append(_Mark(anchors[joint], anchors[image_joint], counts))
        if model.body_mass[body]:
            own, other = (mirror.frames["inertia"][0][each] for each in (body, image))
            away = self._mirrored(own) - self.shifts[model.body_parentid[body]] - other
            if np.abs(away).max() > self.limit and not self.felt.alike(body):
                marks.append(_Mark(own, other, everywhere))
        for what, by_body in self._on_bodies.items():
            positions, axes = mirror.frames[what]
            for element in by_body.get(body, []):
                other = images[what][element]
                shape = int(model.geom_type[element]) if what == "geom" else -1
                if other < 0 or shape == _GEOM.mjGEOM_MESH:  # of a mesh, it is the convex hull that counts
                    continue
                normal = axes[other][:, 2]
                counts = np.outer(normal, normal) if shape == _GEOM.mjGEOM_PLANE else everywhere
                marks.append(_Mark(positions[element], positions[other], counts))
        return marks


def _by_body(elements: list[int], bodies: Array) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for element in elements:
        found.setdefault(int(bodies[element]), []).append(element)
    return found
