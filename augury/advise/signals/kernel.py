"""Data multiplier: how much more of D would teach as much about evaluation as f(D) does.

A Gaussian process with kernel k(x, x') = exp(-‖x - x'‖² / 2ℓ²) over whitened states and actions knows its
value at e, after rows X, up to the variance

    v(X) = mean over E of  1 - k(e, X) (k(X, X) + σ² I)⁻¹ k(X, e)

ℓ is half the median distance between rows of D, and σ² a jitter. The multiplier M solves

    v(D_{Mn}) / v(D_n) = mean of  v(D_n ∪ f(D_n)) / v(D_n)

where D_n are n rows of D in random order, and the mean is over four such sets: M times as many observed rows
leave as much unknown. It is at least 1, as nothing known is forgotten, and 1 for the identity: a row that is
there already teaches nothing. Where M is beyond what the pilot holds, the largest that it can show is given,
and said to be capped; the log of the right-hand side has no such limit.

It is a question of where rows lie, not of what they hold: a wrong augmentation is as far-reaching.

With k(X, X) + σ² I = L Lᵀ, the first j rows of L⁻¹ k(X, e) give the variance after the first j rows of X. So
one factorisation gives the whole curve v(D_1), v(D_2), ….
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist, pdist

from augury.errors import UserError

Rows = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

BASE = 64
"""n: observed rows that are augmented together."""
SETS = 4
"""How many such sets there are."""
MOST_ROWS = 2_048
"""Of the curve: 32 times as many."""
JITTER = 1e-6
SAME = 1e-6
"""Rows closer than that are one."""
SCALE = 0.5
"""ℓ in median distances: with 1, a few dozen rows tell nearly everything about tasks of few dimensions."""
SCALE_ROWS = 256


class Multiplier(NamedTuple):
    """What augmented rows tell."""

    value: float
    """M."""
    capped: bool
    """Whether the pilot holds too little to show a larger one."""
    log_variance_ratio: float
    """Log of the variance that is left, with augmented rows and without."""


class Curve(NamedTuple):
    """What is left unknown at the evaluated points after so many observed rows."""

    observed: Rows
    """In random order."""
    evaluated: Rows
    scale: float
    """ℓ."""
    variances: Rows
    """After 1, 2, … rows."""

    @classmethod
    def of(cls, observed: Rows, evaluated: Rows) -> Curve:
        """Of whitened points; observed ones are in random order."""
        if len(observed) < SETS * BASE:
            raise UserError(
                f"the data multiplier needs {SETS * BASE} observed transitions, not {len(observed)}"
            )
        if not len(evaluated):
            raise UserError("the data multiplier needs evaluated transitions")
        scale = SCALE * float(np.median(pdist(observed[:SCALE_ROWS])))
        if not scale > 0:
            raise UserError("the pilot's transitions are all the same: there is no distance between them")
        kept = observed[:MOST_ROWS]
        return cls(kept, evaluated, scale, variances(kept, evaluated, scale))


def multiplier(curve: Curve, augmented: Rows, place: Indices) -> Multiplier:
    """Of copies of observed rows; `place` says of which row of the curve each is a copy."""
    ratios = [
        _left(curve, slice(first, first + BASE), augmented[(place >= first) & (place < first + BASE)])
        for first in range(0, SETS * BASE, BASE)
    ]
    ratio = float(np.mean(ratios))
    after = ratio * curve.variances[BASE - 1]
    if after < curve.variances[-1]:
        return Multiplier(len(curve.variances) / BASE, True, float(np.log(ratio)))
    sizes = np.arange(1, len(curve.variances) + 1)
    # Variances fall: turned round, they rise, as interpolation wants it.
    rows = np.exp(np.interp(np.log(after), np.log(curve.variances[::-1]), np.log(sizes[::-1])))
    return Multiplier(float(max(rows / BASE, 1)), False, float(np.log(ratio)))


def _left(curve: Curve, base: slice, augmented: Rows) -> float:
    """Share of the variance after these observed rows that augmented ones leave."""
    known = curve.observed[base]
    new = augmented[cdist(augmented, known).min(1) > SAME] if len(augmented) else augmented
    if not len(new):
        return 1.0
    left = variances(np.vstack([known, new]), curve.evaluated, curve.scale)
    return float(left[-1] / left[len(known) - 1])


def variances(rows: Rows, evaluated: Rows, scale: float) -> Rows:
    """What is left unknown at the evaluated points, on average, after each of the rows."""

    def kernel(one: Rows, other: Rows) -> Rows:
        return np.exp(-cdist(one, other, "sqeuclidean") / (2 * scale**2))

    gram = kernel(rows, rows)
    gram[np.diag_indices_from(gram)] += JITTER
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    told = solve_triangular(factor, kernel(rows, evaluated), lower=True, check_finite=False)
    left = 1 - np.cumsum((told**2).mean(1))
    # Rounding of what is nearly nothing; it must go on falling.
    return np.minimum.accumulate(np.maximum(left, JITTER))
