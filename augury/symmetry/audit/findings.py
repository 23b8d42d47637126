"""What breaks a symmetry: a parameter of two elements that should be mirror images, with both values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.audit.felt import Felt
from augury.symmetry.audit.places import Places
from augury.symmetry.audit.units import GROUPS, group_of, unit_of
from augury.symmetry.pairing.images import Pairing

_SLIDE = mujoco.mjtJoint.mjJNT_SLIDE

TOLERANCE = 1e-9
"""Differences below this, relative to the values, are rounding."""
_MOST_NUMBERS = 5
"""Of a value that is read in a line: the impedance of a contact has so many."""
LATER = frozenset({"springyield"})
"""Parameters that the oldest MuJoCo we support does not have: there, no element has them."""


@dataclass(frozen=True)
class Finding:
    """One parameter that is not symmetric, and by how much."""

    parameter: str
    """Kind of element and parameter, as "joint armature"."""
    first: str
    second: str
    """The element that should be its mirror image; itself where it should be its own."""
    first_value: Any
    second_value: Any
    why: str = ""
    mirrored: Any = None
    """What the second should have: the mirrored value of the first."""
    size: float | None = None
    """The largest difference, in `unit`; None where the finding is no difference of numbers."""
    unit: str = ""
    relative: float | None = None
    """The difference relative to the values, or to how far a body reaches where they are positions on it.
    None for choices and for what is missing, which no tolerance covers."""
    index: int = -1
    """Of the second, among elements of its kind."""
    effect: float | None = None
    """By how much a second of motion changes if this alone is put right, in metres or radians: the median
    over a few states. None where that was not simulated."""

    @property
    def group(self) -> str:
        """What it is about: one of GROUPS."""
        return group_of(self.parameter)

    @property
    def difference(self) -> str:
        """The size as a person reads it; nothing where there is none."""
        return "" if self.size is None else f"{self.size:.2g} {self.unit}".strip()

    def within(self, tolerance: float) -> bool:
        """Whether the difference is that small; an infinite tolerance covers everything."""
        return tolerance == np.inf or (self.relative is not None and self.relative <= tolerance)

    def __str__(self) -> str:
        if self.size is not None and not self._compared_at_a_glance:
            image = (
                "its own mirror image" if self.second == self.first else f"the mirror image of {self.first}"
            )
            return f"{self.parameter}: {self.second} is {self.difference} off {image}"
        first = f"{self.parameter}: {self.first} has {shown(self.first_value)}"
        second = "" if self.second == self.first else f", {self.second} has {shown(self.second_value)}"
        return f"{first}{second}{self.why and f' ({self.why})'}"

    @property
    def _compared_at_a_glance(self) -> bool:
        """Whether both values say how they differ: they should be the same, and are few numbers."""
        value = self.first_value
        few = np.size(value) <= _MOST_NUMBERS
        return not isinstance(value, tuple) or (few and self.mirrored == value)

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a program to read."""
        return asdict(self) | {"group": self.group}


def finding_about(
    parameter: str, name: str, value: Any, why: str, size: float | None = None, relative: float | None = None
) -> Finding:
    """A finding about one element by itself."""
    unit = unit_of(parameter)
    return Finding(parameter, name, name, _plain(value), _plain(value), why, None, size, unit, relative)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """By group, and the largest first: what cannot be measured, then by relative size."""

    def place(finding: Finding) -> tuple[int, float]:
        return GROUPS.index(finding.group), -np.inf if finding.relative is None else -finding.relative

    return sorted(findings, key=place)


def largest(findings: Iterable[Finding]) -> Finding | None:
    """The finding of the largest relative size, if there is any."""
    return max(findings, key=lambda one: np.inf if one.relative is None else one.relative, default=None)


class Comparison:
    """Collects findings while going through a model's pairs."""

    def __init__(self, pairing: Pairing):
        self.pairing, self.model = pairing, pairing.model
        self.felt = Felt(pairing)
        self.places = Places(pairing, self.felt, TOLERANCE)
        self.findings: list[Finding] = []

    def same(self, kind: str, prefix: str, *fields: str) -> None:
        """Compare fields that a mirror leaves as they are, of all pairs of a kind."""
        for pair in self.pairing.pairs(kind):
            self.same_of(pair, kind, prefix, *fields)

    def same_of(self, pair: tuple[int, int], kind: str, prefix: str, *fields: str) -> None:
        """Compare them of one pair."""
        for name in fields:
            field = f"{prefix}_{name}"
            if name in LATER and not hasattr(self.model, field):
                continue
            values = getattr(self.model, field)
            self.expect(f"{kind} {name}", pair, values, values[pair[0]])

    def expect(
        self,
        parameter: str,
        pair: tuple[int, int],
        values: npt.NDArray[Any] | Mapping[int, npt.ArrayLike],
        mirrored: npt.ArrayLike,
        scale: float = 0.0,
        on: int | None = None,
    ) -> bool:
        """Whether the second of a pair has the mirrored value of the first; if not, note a finding.

        Differences are measured against the values themselves, or `scale` where that is larger. Those of
        points on a body are said relative to how far this body reaches.
        """
        value, actual, mirrored = (np.asarray(each) for each in (values[pair[0]], values[pair[1]], mirrored))
        size = max(scale, float(np.abs(mirrored).max(initial=0)), float(np.abs(actual).max(initial=0)))
        apart = float(np.abs(mirrored - actual.astype(float)).max(initial=0))
        if apart <= TOLERANCE * size:
            return True
        chosen = np.issubdtype(actual.dtype, np.integer) or actual.dtype == bool
        relative = None if chosen else apart / (size if on is None else self.places.reach(on))
        self.note(parameter, pair, value, actual, mirrored=mirrored, size=apart, relative=relative)
        return False

    def note(
        self,
        parameter: str,
        pair: tuple[int, int],
        value: npt.ArrayLike,
        actual: npt.ArrayLike,
        why: str = "",
        *,
        mirrored: npt.ArrayLike | None = None,
        size: float | None = None,
        relative: float | None = None,
    ) -> None:
        """Note a finding about a pair of the kind with which the parameter begins."""
        kind = parameter.split()[0]
        first, second = (self.pairing.label(kind, index) for index in pair)
        if mirrored is not None and not np.array_equal(np.asarray(value), np.asarray(mirrored)):
            why = why or f"mirrored, the first would be {shown(_plain(mirrored))}"
        self.findings.append(
            Finding(
                parameter,
                first,
                second,
                _plain(value),
                _plain(actual),
                why,
                None if mirrored is None else _plain(mirrored),
                size,
                unit_of(parameter, slides=kind == "joint" and self.model.jnt_type[pair[0]] == _SLIDE),
                relative,
                pair[1],
            )
        )

    def without_image(self, kind: str, index: int) -> None:
        """Note an element that has no image."""
        name = self.pairing.label(kind, index)
        self.findings.append(finding_about(f"{kind} image", name, "none", "nothing is its mirror image"))


def _plain(value: Any) -> Any:
    """A number, a word, or nested tuples of them."""
    array = np.asarray(value)
    if array.size == 1:
        return array.item()
    return tuple(_plain(part) for part in array)


def shown(value: Any) -> str:
    """A value as a person reads it."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
