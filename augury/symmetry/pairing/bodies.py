"""The mirror image of every body: geometry decides, then names; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from augury.symmetry.frames import Mirror
from augury.symmetry.maps import Array, SymmetryError
from augury.symmetry.pairing.matching import Ambiguous, NoImage, allowed, best_pairing
from augury.symmetry.pairing.names import body_name, label, mirrored_names

_CLOSE = 0.01
"""Pairs whose distances differ by less than this share of the model's size leave the choice to names."""
_FAR = 0.1
"""Bodies further apart than this are no mirror images, unless the user says so."""


class BodyPairing:
    """Matches the tree of bodies with its mirror image, from the world down."""

    def __init__(self, mirror: Mirror, given: Mapping[str, str]):
        self.mirror, self.model, self.given = mirror, mirror.model, given
        model = self.model
        self.children: list[list[int]] = [[] for _ in range(model.nbody)]
        for body in range(1, model.nbody):
            self.children[model.body_parentid[body]].append(body)
        self.features = [_features(mirror, body) for body in range(model.nbody)]
        self.names = [body_name(model, body) for body in range(model.nbody)]
        self.structure = [_structure(model, body) for body in range(model.nbody)]
        self.images: dict[int, int] = {}

    def images_of_all(self) -> list[int]:
        """The image of every body."""
        self._pair(0, 0, np.zeros(3))
        return [self.images[body] for body in range(self.model.nbody)]

    def _pair(self, first: int, second: int, shift: Array) -> None:
        """Take two bodies for images of each other, and match their children."""
        self.images |= {first: second, second: first}
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
            self.structure[first] != self.structure[second]
            or len(left) != len(right)
            or not allowed(self.given, self.names[first], self.names[second])
        ):
            return np.inf, 1
        apart = self._apart(first, second, shift)
        total, count = float(apart.sum()), len(apart)
        if left:
            from scipy.optimize import linear_sum_assignment  # slow to import, and most never get here

            below = [[self._summed(a, b, shift) for b in right] for a in left]
            distances = np.array([[min(entry[0], 1e9) for entry in row] for row in below])
            for row, column in zip(*linear_sum_assignment(distances), strict=True):
                total += below[row][column][0]
                count += below[row][column][1]
        return total, count

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
        return SymmetryError(
            f"no body with the same joints, actuators and children is where the mirror image of "
            f"'{self._label(body)}' (on '{self._label(self.model.body_parentid[body])}') would be: "
            "choose another normal, or say which it is: "
            f'pairs={{"{self._label(body)}": "…"}}, or --pair one=other'
        )

    def _ambiguous(self, body: int, images: list[int]) -> SymmetryError:
        names = " or ".join(f"'{self._label(image)}'" for image in images)
        return SymmetryError(
            f"the mirror image of '{self._label(body)}' could be {names}, and their names do not tell: say "
            f'which it is: pairs={{"{self._label(body)}": "{self._label(images[-1])}"}}, --pair one=other'
        )


def _features(mirror: Mirror, body: int) -> Array:
    """Points by which a body is recognised: its origin, its centre of mass, its joints' anchors."""
    start, count = mirror.model.body_jntadr[body], mirror.model.body_jntnum[body]
    points = (mirror.data.xpos[body], mirror.data.xipos[body], *mirror.data.xanchor[start : start + count])
    return np.array(points)


def _structure(model: mujoco.MjModel, body: int) -> tuple[object, ...]:
    """What bodies must have in common to be images of each other: joints, and which of them are driven."""
    joints = range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
    on_joint = [int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)]
    driven = model.actuator_trnid[np.isin(model.actuator_trntype, on_joint), 0]
    return (
        bool(model.body_mocapid[body] >= 0),
        *((int(model.jnt_type[joint]), int((driven == joint).sum())) for joint in joints),
    )


def is_free(model: mujoco.MjModel, body: int) -> bool:
    """Whether a body floats: where it is belongs to the state."""
    free = mujoco.mjtJoint.mjJNT_FREE
    return bool(model.body_jntnum[body] and model.jnt_type[model.body_jntadr[body]] == free)
