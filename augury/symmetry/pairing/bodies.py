"""The mirror image of every body: geometry decides, then names; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import mujoco
import numpy as np

from augury.symmetry.frames import Mirror
from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.pairing.couplings import couplings
from augury.symmetry.pairing.matching import Ambiguous, NoImage, allowed, best_pairing, cheapest_columns
from augury.symmetry.pairing.names import body_name, label, mirrored_names
from augury.symmetry.pairing.part import Part

_CLOSE = 0.01
"""Pairs whose distances differ by less than this share of the model's size leave the choice to names."""
_FAR = 0.1
"""Bodies further apart than this are no mirror images, unless the user says so."""
_HINT = 0.01
"""What a joint whose range is another counts in addition, as one more point at this distance."""
_SINGLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


class BodyPairing:
    """Matches the tree of bodies with its mirror image, from the world down."""

    def __init__(self, mirror: Mirror, given: Mapping[str, str], part: Part):
        self.mirror, self.model, self.given, self.part = mirror, mirror.model, given, part
        model = self.model
        self.children: list[list[int]] = [[] for _ in range(model.nbody)]
        for body in range(1, model.nbody):
            if body not in part.bodies:
                self.children[model.body_parentid[body]].append(body)
        self.features = [_features(model, mirror.data, body) for body in range(model.nbody)]
        self.names = [body_name(model, body) for body in range(model.nbody)]
        self.structure = [_structure(model, body) for body in range(model.nbody)]
        self.images: dict[int, int] = {}
        self.shifts = np.zeros((model.nbody, 3))
        """How far the mirrored tree of a free body is from that of its image: a part of the state."""

    def images_of_all(self) -> list[int]:
        """The image of every body."""
        if not self.images:
            self._pair(0, 0, np.zeros(3))
        return [self.images.get(body, body) for body in range(self.model.nbody)]

    def misfits(self, data: mujoco.MjData) -> Array:
        """By how much mirrored bodies, anchors and axes miss their images, in some pose: vectors in rows.

        Centres of mass are left to the audit: of some robots they are known to a centimetre.
        """
        matrix, size, rows = self.mirror.matrix, self.mirror.size, []
        for body, image in self.images.items():
            joints, others = (_joints_of(self.model, each) for each in (body, image))
            points, other_points = (
                np.vstack([data.xpos[each], data.xanchor[own]])
                for each, own in ((body, joints), (image, others))
            )
            rows.append(points @ matrix.T - self.shifts[body] - other_points)
            for joint, other in zip(joints, others, strict=True):
                # An axis and its opposite are one line.
                axis, other_axis = matrix @ data.xaxis[joint], data.xaxis[other]
                rows.append(size * (np.outer(axis, axis) - np.outer(other_axis, other_axis)))
        return np.concatenate(rows)

    def _pair(self, first: int, second: int, shift: Array) -> None:
        """Take two bodies for images of each other, and match their children."""
        self.images |= {first: second, second: first}
        self.shifts[first], self.shifts[second] = shift, -self.mirror.matrix @ shift
        left, right = self.children[first], self.children[second]
        costs = {
            (a, b): distance
            for a in left
            for b in right
            if (a <= b or first != second) and np.isfinite(distance := self._distance(a, b, shift))
        }
        try:
            children = best_pairing({*left, *right}, costs, _CLOSE, self._named)
        except NoImage as error:
            raise self._no_image(error.element) from None
        except Ambiguous as error:
            raise self._ambiguous(error.element, error.images) from None
        for a in left:
            b = children[a]
            if a in self.images:
                continue
            # Where a free body is, is part of the state: only its shape must agree.
            own_shift = self._offset(a, b) if is_free(self.model, a) else shift
            if self._far_apart(a, b, own_shift):
                raise self._no_image(a)
            self._pair(a, b, own_shift)

    def _far_apart(self, first: int, second: int, shift: Array) -> bool:
        """Whether two bodies are no images; one that moves with its parent is left to the audit."""
        far = self._apart(first, second, shift).mean() > _FAR * self.mirror.size
        return bool(far and self._moves(first) and self.names[first] not in self.given)

    def _moves(self, body: int) -> bool:
        return self.model.body_jntnum[body] > 0 or any(map(self._moves, self.children[body]))

    def _distance(self, first: int, second: int, shift: Array) -> float:
        """Mean distance of the mirrored first body and its descendants from the second's, in model sizes."""
        total, count = self._summed(first, second, shift)
        return total / count / self.mirror.size

    def _summed(self, first: int, second: int, shift: Array) -> tuple[float, int]:
        left, right = self.children[first], self.children[second]
        if (
            not self._same_structure(first, second)
            or len(left) != len(right)
            or not allowed(self.given, self.names[first], self.names[second])
        ):
            return np.inf, 1
        apart = self._apart(first, second, shift)
        total, count = float(apart.sum()), len(apart)
        total += _HINT * self.mirror.size * self._ranges_that_differ(first, second)
        if left:
            below = [[self._summed(a, b, shift) for b in right] for a in left]
            distances = np.array([[min(entry[0], 1e9) for entry in row] for row in below])
            for row, column in enumerate(cheapest_columns(distances)):
                total += below[row][column][0]
                count += below[row][column][1]
        return total, count

    def _same_structure(self, first: int, second: int) -> bool:
        one, other = self.structure[first], self.structure[second]
        alike = one.joints == other.joints and one.mocap == other.mocap
        driven_alike = one.driven == other.driven or one.moved == other.moved
        return alike and (driven_alike or self.names[first] in self.given)

    def _ranges_that_differ(self, first: int, second: int) -> int:
        """Joints that move the other way: it tells the fingers of a closed hand apart."""
        model, axes = self.model, self.mirror.data.xaxis
        different = 0
        for joint, other in zip(*(_joints_of(model, body) for body in (first, second)), strict=True):
            kind = int(model.jnt_type[joint])
            if kind in _SINGLE and model.jnt_limited[[joint, other]].all():
                axial = -1 if kind == mujoco.mjtJoint.mjJNT_HINGE else 1
                sign = np.sign(axial * (self.mirror.matrix @ axes[joint]) @ axes[other])
                limits, others = (
                    model.jnt_range[j] - model.qpos0[model.jnt_qposadr[j]] for j in (joint, other)
                )
                mirrored = limits if sign >= 0 else -limits[::-1]
                different += not np.allclose(mirrored, others, rtol=0.1, atol=0.1 * np.ptp(others))
        return different

    def _apart(self, first: int, second: int, shift: Array) -> Array:
        """How far the mirrored points of the first body are from those of the second."""
        mirrored = self.features[first] @ self.mirror.matrix.T - shift
        return np.linalg.norm(mirrored - self.features[second], axis=1)

    def _offset(self, first: int, second: int) -> Array:
        return self.mirror.matrix @ self.features[first][0] - self.features[second][0]

    def _named(self, first: int, second: int) -> bool:
        return mirrored_names(self.names[first], self.names[second])

    def _label(self, body: int) -> str:
        return label(self.model, "body", body)

    def _no_image(self, body: int) -> SymmetryError:
        part = " or let `only` match its image too;" if self.part.joints else ""
        return SymmetryError(
            f"no body with the same joints, actuators and children is where the mirror image of "
            f"'{self._label(body)}' (on '{self._label(self.model.body_parentid[body])}') would be:{part} "
            "choose another normal, or say which it is: "
            f'pairs={{"{self._label(body)}": "…"}}, or --pair one=other'
        )

    def _ambiguous(self, body: int, images: list[int]) -> SymmetryError:
        names = " or ".join(f"'{self._label(image)}'" for image in images)
        return SymmetryError(
            f"the mirror image of '{self._label(body)}' could be {names}, and their names do not tell: say "
            f'which it is: pairs={{"{self._label(body)}": "{self._label(images[-1])}"}}, --pair one=other'
        )


def _features(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> Array:
    """Points by which a body is recognised: its joints' anchors, its centre of mass, or its origin.

    The origin is notation where there is a joint, and so is the mass of what is welded to the world.
    """
    start, count = model.body_jntadr[body], model.body_jntnum[body]
    origin = data.xpos[body]
    first = data.xanchor[start] if count and not is_free(model, body) else origin
    centre = data.xipos[body] if model.body_weldid[body] else origin
    return np.array([first, centre, *data.xanchor[start : start + count]])


def _joints_of(model: mujoco.MjModel, body: int) -> list[int]:
    return list(range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body]))


class _Structure(NamedTuple):
    """What images have in common."""

    joints: tuple[int, ...]
    """Their types."""
    mocap: bool
    driven: tuple[int, ...]
    """Actuators on each of them."""
    moved: tuple[bool, ...]
    """Whether one drives it, or a joint that moves as one with it."""


def _structure(model: mujoco.MjModel, body: int) -> _Structure:
    joints, coupled = _joints_of(model, body), couplings(model)
    on_joint = [int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)]
    targets = model.actuator_trnid[np.isin(model.actuator_trntype, on_joint), 0].tolist()
    return _Structure(
        joints=tuple(int(model.jnt_type[joint]) for joint in joints),
        mocap=bool(model.body_mocapid[body] >= 0),
        driven=tuple(targets.count(joint) for joint in joints),
        moved=tuple(any(t == joint or (joint, t) in coupled for t in targets) for joint in joints),
    )


def is_free(model: mujoco.MjModel, body: int) -> bool:
    """Whether a body floats: where it is belongs to the state."""
    free = mujoco.mjtJoint.mjJNT_FREE
    return bool(model.body_jntnum[body] and model.jnt_type[model.body_jntadr[body]] == free)
