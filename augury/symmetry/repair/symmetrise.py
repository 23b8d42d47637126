"""From findings to a model without them.

repeat      the audit's findings ← the text, compiled and paired with its mirror image
            the text ← each of them put right, on both sides
until there are none, or the rest cannot be put right
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco

from augury.symmetry.audit.findings import Comparison, Finding
from augury.symmetry.pairing.images import Pairing
from augury.symmetry.reflection import Reflection, reflection
from augury.symmetry.repair.document import Document, NotEditable
from augury.symmetry.repair.geometry import GeometryRepair
from augury.symmetry.repair.parameters import PLAIN, SIGNED, ParameterRepair
from augury.symmetry.repair.sides import Sides

_ROUNDS = 8
"""What is put right may show what else there is."""
_AT_QPOS0 = ("body pos", "joint axis", "joint pos", "equality data")
"""What the text says at qpos0, and what is another number in another reference pose."""
_INERTIA = ("mass", "ipos", "inertia")
_SHAPE = ("type", "pos", "size", "axes", "hull", "shape")
_MOTOR = ("gainprm", "biasprm", "dynprm")


@dataclass(frozen=True)
class Symmetrised:
    """A model that was made symmetric."""

    document: Document
    model: mujoco.MjModel
    reflection: Reflection
    """Of the new model; its findings could not be put right."""
    changes: Sequence[Finding]
    """What was found, and put right on both sides."""


def symmetrise(
    path: Path,
    normal: str = "auto",
    pairs: Mapping[str, str] | None = None,
    *,
    distance: float | None = None,
    reference: str | None = None,
    only: str | None = None,
    side: str | None = None,
) -> Symmetrised:
    """Make the model in an MJCF file symmetric, by editing its text.

    Left and right become their mean, or that of `side`: "left", "right", "front", "back", "top" or "bottom".
    The mirror is that of `augury.symmetry.reflection`.
    """
    document = Document(path)
    changes: dict[tuple[str, str, str], Finding] = {}
    for _ in range(_ROUNDS):
        model = document.compile()
        found = reflection(model, normal, pairs, distance=distance, reference=reference, only=only)
        normal, distance = found.normal_name, found.distance  # the mirror stays where it was found
        repair = _Repair(document, found.pairing, side)
        put_right = [each for each in found.findings if repair.tried(each)]
        for each in put_right:
            changes.setdefault((each.parameter, each.first, each.second), each)
        if not put_right:
            break
    return Symmetrised(document, model, found, list(changes.values()))


class _Repair:
    """Puts findings right in the text of a model."""

    def __init__(self, document: Document, pairing: Pairing, side: str | None):
        comparison, sides = Comparison(pairing), Sides(pairing, side)
        self.pairing = pairing
        self.geometry = GeometryRepair(document, comparison, sides)
        self.parameters = ParameterRepair(document, comparison, sides)
        self._done: set[tuple[str, tuple[int, int]]] = set()

    def tried(self, finding: Finding) -> bool:
        """Whether a finding could be put right."""
        try:
            return self._put_right(finding)
        except NotEditable:
            return False

    def _put_right(self, finding: Finding) -> bool:
        kind, _, name = finding.parameter.partition(" ")
        if self.pairing.mirror.reference is not None and finding.parameter in _AT_QPOS0:
            return False
        if kind == "option":
            return self.parameters.option(name)
        pair = self._index(kind, finding.first), self._index(kind, finding.second)
        if name == "image" and kind in ("exclude", "pair", "equality"):
            return self.parameters.add_image(kind, pair[0])
        if finding.parameter == "geom image":
            self.geometry.add_image(pair[0])
        elif finding.parameter in PLAIN and name.endswith("limited"):
            self.parameters.limited(finding.parameter, pair)
        elif finding.parameter in PLAIN:
            self.parameters.plain(finding.parameter, pair)
        elif finding.parameter in SIGNED:
            self.parameters.limits(finding.parameter, pair)
        elif kind == "body" and name == "pos":
            self.geometry.body_place(pair)
        elif kind == "body" and name in _INERTIA:
            self._once("inertia", pair)
        elif kind == "joint" and name == "axis":
            self.geometry.joint_axis(pair)
        elif kind == "joint" and name == "pos":
            self.geometry.joint_place(pair)
        elif kind == "joint" and name == "springref":
            self.geometry.spring(pair)
        elif kind in ("geom", "site") and name in _SHAPE:
            self._once(kind, pair)
        elif finding.parameter == "geom contacts":
            self.parameters.contact(pair)
        elif finding.parameter == "actuator gear":
            self.parameters.gear(pair)
        elif kind == "actuator" and name in _MOTOR:
            self.parameters.motor(pair)
        elif finding.parameter == "tendon coef":
            self.parameters.coefficients(pair)
        elif finding.parameter == "equality data":
            return self.parameters.constraint(pair)
        else:
            return False
        return True

    def _once(self, what: str, pair: tuple[int, int]) -> None:
        """Several findings are about one thing, which is put right as a whole."""
        if (what, pair) in self._done:
            return
        self._done.add((what, pair))
        if what == "inertia":
            self.geometry.inertia(pair)
        else:
            self.geometry.shape(what, pair)

    def _index(self, kind: str, label: str) -> int:
        """The index of an element that a finding names."""
        model = self.pairing.model
        sizes = {"body": model.nbody, "joint": model.njnt, "geom": model.ngeom, "site": model.nsite}
        sizes |= {"tendon": model.ntendon, "actuator": model.nactuator, "equality": model.neq}
        sizes |= {"exclude": model.nexclude, "pair": model.npair}
        return next(index for index in range(sizes[kind]) if self.pairing.label(kind, index) == label)
