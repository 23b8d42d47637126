"""Coverage: what f(D) adds to D, of all states and of those that evaluation visits.

Let d(x, X) be the distance from a whitened state to the nearest of X, and ρ the 90% quantile of d(x, D∖{x})
over D: how far apart observed states lie.

    added     = share of x in f(D) with d(x, D) > ρ
    nearer    = share of e in E with d(e, D ∪ f(D)) < d(e, D)
    approach  = mean over E of log d(e, D) - log d(e, D ∪ f(D))
    departure = mean over x in f(D) of log d(x, E) - log d(o, E)      o: what x is a copy of; d ≥ ρ here

E are states that evaluation visits. All four are 0 for the identity. A copy of D's own kind, as of a
symmetry that starts already cover, is nearer to about half of E and adds little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from augury.errors import UserError

Rows = npt.NDArray[np.float64]

QUANTILE = 0.9
FEWEST = 20
SAME = 1e-6
"""Distances below this are rounding; so is a share of the distance by which something is nearer."""


class Coverage(NamedTuple):
    """What augmented states add."""

    added: float
    nearer: float
    approach: float
    departure: float


def coverage(observed: Rows, augmented: Rows, origins: Rows, evaluated: Rows) -> Coverage:
    """Of whitened states, row by row; `origins` are those that the augmented ones are copies of."""
    for name, rows in (("observed", observed), ("augmented", augmented), ("evaluated", evaluated)):
        if len(rows) < FEWEST:
            raise UserError(f"coverage needs {FEWEST} {name} states, not {len(rows)}")
    own = KDTree(observed)
    apart = np.quantile(own.query(observed, 2)[0][:, 1], QUANTILE)
    radius = max(float(apart), SAME)
    before = own.query(evaluated)[0]
    after = np.minimum(before, KDTree(augmented).query(evaluated)[0])
    # Rounding must not decide where both are practically there.
    floor = max(SAME, 1e-3 * radius)
    visited = KDTree(evaluated)
    away, home = (np.maximum(visited.query(rows)[0], radius) for rows in (augmented, origins))
    return Coverage(
        added=float((own.query(augmented)[0] > radius).mean()),
        nearer=float((after < before * (1 - SAME) - SAME).mean()),
        approach=float(np.log(np.maximum(before, floor) / np.maximum(after, floor)).mean()),
        departure=float(np.log(away / home).mean()),
    )
