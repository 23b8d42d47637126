"""Coefficients of terms: least squares with signs that theory gives, a ridge, and a fold for each family.

    minimise  Σ w (y - c·x)² + λ W Σ c²      with c ≥ 0 or c ≤ 0 where a term has a sign

y is log2 of the worth, W the sum of the weights, and terms are scaled to a root mean square of 1. The weight
of a row is 1 / (¼ + s²), s being the standard error of its y: a worth that is hardly known counts little. λ
is the one with the least error on families that were left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from augury.advise.features import TERMS, Values
from augury.advise.table import Row
from augury.advise.worth import FRACTIONS

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)
LEAST, MOST = float(np.log2(FRACTIONS[0])), 3.0
"""log2 of the worths that can be told apart."""

SPREAD = 0.5
"""Of y around what terms can tell; it keeps a row that is known exactly from outweighing all others."""

_WIDTH = 2 * 1.645
"""Standard errors between the ends of a 90% interval."""


class Fit(NamedTuple):
    """Coefficients of all families, of all but one, and the ridge that was chosen."""

    coefficients: Values
    folds: Mapping[str, Values]
    """By the family that was left out."""
    ridge: float


def target(row: Row) -> float:
    """log2 of the worth, within what can be told apart."""
    assert row.worth is not None
    return float(np.clip(np.log2(row.worth), LEAST, MOST))


def weight(row: Row) -> float:
    """How much a row counts."""
    assert row.worth_low is not None
    assert row.worth_high is not None
    error = np.log2(row.worth_high / row.worth_low) / _WIDTH
    return float(1 / (SPREAD**2 + error**2))


def fitted(terms: Values, targets: Values, weights: Values, families: Sequence[str]) -> Fit:
    """The coefficients of (rows, 1 + terms)."""
    scales = np.sqrt((terms**2).mean(axis=0))
    scales = np.where(scales > 0, scales, 1.0)
    sums = {
        family: _Sums.of(terms[held] / scales, targets[held], weights[held])
        for family in sorted(set(families))
        for held in [np.array([one == family for one in families])]
    }
    total = _Sums(*(sum(parts) for parts in zip(*sums.values(), strict=True)))
    best: tuple[float, Fit] | None = None
    for ridge in RIDGES:
        folds = {family: _solved(total.less(part), ridge) for family, part in sums.items()}
        error = sum(part.error(folds[family]) for family, part in sums.items())
        if best is None or error < best[0]:
            scaled = {family: found / scales for family, found in folds.items()}
            best = error, Fit(_solved(total, ridge) / scales, scaled, ridge)
    assert best is not None
    return best[1]


class _Sums(NamedTuple):
    """What least squares needs to know of rows: Σ w x xᵀ, Σ w x y, Σ w y², Σ w."""

    squares: Values
    products: Values
    targets: float
    weight: float

    @staticmethod
    def of(terms: Values, targets: Values, weights: Values) -> _Sums:
        weighted = terms * weights[:, None]
        return _Sums(
            terms.T @ weighted, weighted.T @ targets, float(weights @ targets**2), float(weights.sum())
        )

    def less(self, part: _Sums) -> _Sums:
        return _Sums(
            self.squares - part.squares,
            self.products - part.products,
            self.targets - part.targets,
            self.weight - part.weight,
        )

    def error(self, coefficients: Values) -> float:
        """Σ w (y - c·x)²."""
        return float(
            coefficients @ self.squares @ coefficients - 2 * coefficients @ self.products + self.targets
        )


def _solved(sums: _Sums, ridge: float) -> Values:
    """The coefficients of scaled terms; that of the constant is free and not drawn to 0."""
    penalty = ridge * sums.weight * np.diag([0.0, *np.ones(len(TERMS))])
    tiny = 1e-9 * max(sums.weight, 1.0) * np.eye(len(penalty))
    root = np.linalg.cholesky(sums.squares + penalty + tiny)
    signs = np.array([0, *(term.sign for term in TERMS)])
    bounds = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    found = lsq_linear(root.T, np.linalg.solve(root, sums.products), bounds, method="bvls")
    return np.asarray(found.x)
