"""What breaks a symmetry: a parameter of two elements that should be mirror images, with both values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from augury.symmetry.pairing.images import Pairing

TOLERANCE = 1e-9
"""Differences below this, relative to the values, are rounding."""
LATER = frozenset({"springyield"})
"""Parameters that the oldest MuJoCo we support does not have: there, no element has them."""


@dataclass(frozen=True)
class Finding:
    """One parameter that is not symmetric."""

    parameter: str
    """Kind of element and parameter, as "joint armature"."""
    first: str
    second: str
    """The element that should be its mirror image; itself where it should be its own."""
    first_value: Any
    second_value: Any
    why: str = ""

    def __str__(self) -> str:
        first = f"{self.parameter}: {self.first} has {shown(self.first_value)}"
        second = "" if self.second == self.first else f", {self.second} has {shown(self.second_value)}"
        return f"{first}{second}{self.why and f' ({self.why})'}"


def finding_about(parameter: str, name: str, value: Any, why: str) -> Finding:
    """A finding about one element by itself."""
    return Finding(parameter, name, name, _plain(value), _plain(value), why)


class Comparison:
    """Collects findings while going through a model's pairs."""

    def __init__(self, pairing: Pairing):
        self.pairing, self.model = pairing, pairing.model
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
    ) -> bool:
        """Whether the second of a pair has the mirrored value of the first; if not, note a finding.

        Differences are measured against the values themselves, or `scale` where that is larger.
        """
        value, actual = np.asarray(values[pair[0]]), np.asarray(values[pair[1]])
        size = max(scale, float(np.abs(mirrored).max(initial=0)), float(np.abs(actual).max(initial=0)))
        if np.allclose(mirrored, actual, rtol=0, atol=TOLERANCE * size):
            return True
        changed = not np.array_equal(value, np.asarray(mirrored))
        why = f"mirrored, the first would be {shown(_plain(mirrored))}" if changed else ""
        self.note(parameter, pair, value, actual, why)
        return False

    def note(
        self,
        parameter: str,
        pair: tuple[int, int],
        value: npt.ArrayLike,
        actual: npt.ArrayLike,
        why: str = "",
    ) -> None:
        """Note a finding about a pair of the kind with which the parameter begins."""
        first, second = (self.pairing.label(parameter.split()[0], index) for index in pair)
        self.findings.append(Finding(parameter, first, second, _plain(value), _plain(actual), why))

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
