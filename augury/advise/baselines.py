"""What anyone would use instead of a prediction, fitted on the same rows and judged on the same families.

A baseline turns a row into a score: positive where it says that the augmentation helps, and larger where it
says that it helps more. None where it has nothing to go by. All but one of them take m = α = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from augury.advise.features import NAMES, settings_of, variables_of
from augury.advise.fitting import target, weight
from augury.advise.table import Row

Score = Callable[[Row], float | None]
Baseline = Callable[[Sequence[Row]], Score]
"""From rows to fit on to scores of others."""


def always(_: Sequence[Row]) -> Score:
    """Always augment."""
    return lambda row: 1.0


def most(_: Sequence[Row]) -> Score:
    """Always augment, and as much as possible: the largest α, then the largest m."""
    return lambda row: 10 + math.log2(row.update_ratio) + 0.01 * math.log2(min(row.ratio, 32))


def early(_: Sequence[Row]) -> Score:
    """Train both arms for a tenth of the steps, and take the one that is ahead."""
    return lambda row: row.early_gain


def alone(name: str, sign: int) -> Baseline:
    """One variable alone: log2 of the worth as a straight line in it, with the sign that theory gives it."""
    place = NAMES.index(name)

    def value(row: Row) -> float | None:
        found = float(variables_of(row.signals, settings_of(row))[place])
        return found if np.isfinite(found) else None

    def baseline(rows: Sequence[Row]) -> Score:
        known = [(found, row) for row in rows if row.worth is not None and (found := value(row)) is not None]
        if not known:
            return lambda row: None
        places = np.array([found for found, _ in known])
        targets = np.array([target(row) for _, row in known])
        weights = np.array([weight(row) for _, row in known])
        centre, height = np.average(places, weights=weights), np.average(targets, weights=weights)
        spread = np.average((places - centre) ** 2, weights=weights)
        slope = np.average((places - centre) * (targets - height), weights=weights) / max(spread, 1e-12)
        slope = sign * max(sign * slope, 0.0)

        def score(row: Row) -> float | None:
            found = value(row)
            return None if found is None else float(height + slope * (found - centre))

        return score

    return baseline


BASELINES: dict[str, Baseline] = {
    "always augment": always,
    "always, as much as possible": most,
    "coverage alone": alone("nearer", 1),
    "reward density alone": alone("reward", 1),
    "validity alone": alone("wrong", -1),
    "a tenth of the training": early,
}
