"""Make bodies, joints, geoms and sites mirror images."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import mujoco
import numpy as np

from augury.symmetry.audit.felt import inertia_of
from augury.symmetry.audit.findings import Comparison
from augury.symmetry.frames import rotation_of
from augury.symmetry.maps import Array
from augury.symmetry.pairing.joints import mirrored_axis
from augury.symmetry.repair.document import Document
from augury.symmetry.repair.shapes import nearest_flip, quaternion_of, rotation_between, tilted_to
from augury.symmetry.repair.sides import Sides

Pair = tuple[int, int]
_G = mujoco.mjtGeom
_AROUND = (int(_G.mjGEOM_SPHERE), int(_G.mjGEOM_CAPSULE), int(_G.mjGEOM_CYLINDER), int(_G.mjGEOM_PLANE))


class GeometryRepair:
    """Writes places, axes, sizes and masses."""

    def __init__(self, document: Document, comparison: Comparison, sides: Sides):
        self.document, self.comparison, self.sides = document, comparison, sides
        self.model, self.pairing = comparison.model, comparison.pairing

    def body_place(self, pair: Pair) -> None:
        """The place of a body on its parent."""
        parents = tuple(int(self.model.body_parentid[body]) for body in pair)
        values = self._settled_points(pair, (parents[0], parents[1]), self.model.body_pos[list(pair)])
        for body, parent, value in zip(pair, parents, values, strict=True):
            self.document.set("body", body, pos=value + self._origin(parent))

    def inertia(self, pair: Pair) -> None:
        """Mass, centre of mass and inertia."""
        model, turned = self.model, self.pairing.turned("body", pair[0])
        tensors = (inertia_of(model, pair[0]), inertia_of(model, pair[1]))
        centres = self._settled_points(pair, pair, model.body_ipos[list(pair)])
        masses = self.sides.settled(pair, tuple(model.body_mass[list(pair)]), _same, _same)
        inertias = self.sides.settled(
            pair, tensors, lambda x: turned @ x @ turned.T, lambda x: turned.T @ x @ turned
        )
        for body, centre, mass, inertia in zip(pair, centres, masses, inertias, strict=True):
            self._write_inertia(body, centre, float(mass), inertia)

    def joint_axis(self, pair: Pair) -> None:
        """The axis of a joint."""
        model, pairing = self.model, self.pairing
        turned = pairing.turned("body", model.jnt_bodyid[pair[0]])
        # Mirroring an axis is a matrix; what it does to this axis tells its sign.
        mirrored = pairing.signs["joint"][pair[0]] * mirrored_axis(pairing, pair[0])
        matrix = turned * np.sign(turned @ model.jnt_axis[pair[0]] @ mirrored)
        axes = self.sides.settled(
            self._bodies("joint", pair), tuple(model.jnt_axis[list(pair)]), lambda x: matrix @ x,
            lambda x: matrix.T @ x,
        )  # fmt: skip
        for joint, axis in zip(pair, axes, strict=True):
            self.document.set("joint", joint, axis=axis / np.linalg.norm(axis))

    def joint_place(self, pair: Pair) -> None:
        """The anchor of a joint."""
        bodies = self._bodies("joint", pair)
        for joint, value in zip(
            pair, self._settled_points(bodies, bodies, self.model.jnt_pos[list(pair)]), strict=True
        ):
            self.document.set("joint", joint, pos=value)

    def spring(self, pair: Pair) -> None:
        """The angle or the length at which the spring of a joint rests."""
        model, first = self.model, pair[0]
        places = model.jnt_qposadr[list(pair)]
        sign, zeros = self.pairing.signs["joint"][first], model.qpos0[places]
        offset = float(zeros[1] - sign * zeros[0])
        rests = self.sides.settled(
            self._bodies("joint", pair), tuple(model.qpos_spring[places]), lambda x: sign * x + offset,
            lambda x: sign * (x - offset),
        )  # fmt: skip
        angle = model.jnt_type[first] == mujoco.mjtJoint.mjJNT_HINGE and self.document.in_degrees
        for joint, rest in zip(pair, rests, strict=True):
            self.document.set("joint", joint, springref=np.degrees(rest) if angle else rest)

    def shape(self, kind: str, pair: Pair) -> None:
        """Place, axes and size of a geom or a site."""
        model, (first, second) = self.model, pair
        types, bodies = getattr(model, f"{kind}_type"), self._bodies(kind, pair)
        shape = int(types[first])
        if kind == "geom":
            for body in bodies:
                self._keep_inertia(body)
        meshes = shape == _G.mjGEOM_MESH
        if meshes and first == second:
            self._own_hull(first)
            return
        if meshes or int(types[second]) != shape:
            source, target = pair if self.sides.kept(*bodies) >= 0 else pair[::-1]
            self._write_image(kind, source, self.document.element(kind, target))
            return
        turned = self.pairing.turned("body", bodies[0])
        places = self._settled_points(bodies, bodies, getattr(model, f"{kind}_pos")[list(pair)])
        one, other = (rotation_of(getattr(model, f"{kind}_quat")[each]) for each in pair)
        flip = nearest_flip(turned, one, other, shape, own=first == second)
        share = {1: 1.0, -1: 0.0, 0: 0.5}[self.sides.kept(*bodies)]
        image = turned @ one @ flip
        if shape in _AROUND:
            axes = tilted_to(other, share * image[:, 2] + (1 - share) * other[:, 2])
        else:
            axes = rotation_between(image, other, share)
        sizes = self.sides.settled(
            bodies, tuple(getattr(model, f"{kind}_size")[list(pair)]), lambda x: np.abs(flip).T @ x,
            lambda x: np.abs(flip) @ x,
        )  # fmt: skip
        for each, body, place, rotation, size in zip(
            pair, bodies, places, (turned.T @ axes @ flip.T, axes), sizes, strict=True
        ):
            self.document.set(
                kind, each, pos=place + self._origin(body), quat=quaternion_of(rotation), size=size
            )

    def add_image(self, geom: int) -> None:
        """Give a geom that has no image one; with a side, a geom of the other side is taken away."""
        body = int(self.model.geom_bodyid[geom])
        image = self.pairing.images["body"][body]
        for each in (body, image):
            self._keep_inertia(each)
        element = self.document.element("geom", geom)
        if self.sides.kept(body, image) < 0:
            self.document.remove(element)
        else:
            self._write_image("geom", geom, self.document.copied_to(image, element))

    def _write_image(self, kind: str, source: int, element: Element) -> None:
        """Write the mirror image of a shape: of two types, or two meshes, there is no middle."""
        model, document = self.model, self.document
        body = int(getattr(model, f"{kind}_bodyid")[source])
        image = self.pairing.images["body"][body]
        shape = int(getattr(model, f"{kind}_type")[source])
        for name in ("mesh", "type", "size", "fromto"):
            element.attrib.pop(name, None)
        if shape == _G.mjGEOM_MESH:
            points = self.comparison.places.image_of(body, self._points(source))
            self._write_hull(element, f"symmetrised_{source}", points + self._origin(image))
            return
        turned = self.pairing.turned("body", body)
        axes = rotation_of(getattr(model, f"{kind}_quat")[source])
        flip = nearest_flip(turned, axes, turned @ axes, shape, own=False)
        place = self.comparison.places.image_of(body, getattr(model, f"{kind}_pos")[source])
        document.set_on(
            element,
            type=mujoco.mjtGeom(shape).name.removeprefix("mjGEOM_").lower(),
            pos=place + self._origin(image),
            quat=quaternion_of(turned @ axes @ flip),
            size=np.abs(flip).T @ getattr(model, f"{kind}_size")[source],
        )

    def _write_hull(self, element: Element, name: str, points: Array) -> None:
        self.document.mesh(name, points.ravel())
        self.document.set_on(element, type="mesh", mesh=name, pos=np.zeros(3), quat=np.array([1.0, 0, 0, 0]))

    def _own_hull(self, geom: int) -> None:
        """A mesh that is its own image becomes the hull of both halves."""
        body, element = int(self.model.geom_bodyid[geom]), self.document.element("geom", geom)
        points = self._points(geom)
        points = np.concatenate([points, self.comparison.places.image_of(body, points)])
        for name in ("type", "size", "fromto"):
            element.attrib.pop(name, None)
        self._write_hull(element, f"symmetrised_{geom}", points[_hull(points)] + self._origin(body))

    def _points(self, geom: int) -> Array:
        """The corners of a mesh, in the frame of its body."""
        model = self.model
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        corners = np.asarray(model.mesh_vert[start : start + model.mesh_vertnum[mesh]], float)
        corners = corners[_hull(corners)]
        return corners @ rotation_of(model.geom_quat[geom]).T + model.geom_pos[geom]

    def _keep_inertia(self, body: int) -> None:
        """Write the inertia that a body may have from its geoms, which are about to change."""
        model = self.model
        self._write_inertia(body, model.body_ipos[body], model.body_mass[body], inertia_of(model, body))

    def _write_inertia(self, body: int, centre: Array, mass: float, inertia: Array) -> None:
        model = self.model
        if self.document.infers_inertia:
            self.document.take_inertias_as_written()
            for each in range(1, model.nbody):
                self._write_inertia(
                    each, model.body_ipos[each], model.body_mass[each], inertia_of(model, each)
                )
        if body and mass:
            six = np.concatenate([np.diag(inertia), inertia[[0, 0, 1], [1, 2, 2]]])
            self.document.inertia(body, pos=centre, mass=mass, fullinertia=six)

    def _settled_points(self, sides: Pair, frames: Pair, values: Array) -> tuple[Array, Array]:
        """Two points, each in the frame of a body; the bodies in `sides` tell on which side they are."""
        image_of, rounding = self.comparison.places.image_of, 1e-15 * self.pairing.mirror.size
        settled = self.sides.settled(
            sides, (values[0], values[1]), lambda x: image_of(frames[0], x), lambda x: image_of(frames[1], x)
        )
        first, second = (np.where(np.abs(each) < rounding, 0.0, each) for each in settled)
        return first, second

    def _bodies(self, kind: str, pair: Pair) -> Pair:
        of = {"joint": "jnt_bodyid", "geom": "geom_bodyid", "site": "site_bodyid"}[kind]
        first, second = (int(getattr(self.model, of)[each]) for each in pair)
        return first, second

    def _origin(self, body: int) -> Array:
        """What positions on the world have in addition, where the mirror does not pass through the origin."""
        mirror = self.pairing.mirror
        return mirror.distance * mirror.normal * (body == 0)


def _same(value: Array) -> Array:
    return value


def _hull(points: Array) -> Array:
    from scipy.spatial import ConvexHull  # slow to import, and most never get here

    return np.asarray(ConvexHull(points).vertices)
