"""Reward density: how much of D, and of f(D), carries the reward that is worth finding.

    density(X) = share of X that succeeded, as the environment defines success
               = share of X with r > 90% quantile of D's rewards, where it defines none
    ratio      = (density(f(D)) + ½ / n) / (density(D) + ½ / n)        n = |D|

Half an observed transition keeps the ratio finite where there are none: 0 of 4,000 is less evidence than 0 of
40,000.

Whether reward is sparse is another matter: a task with a goal may reward every step by the distance to it.
And where a short pilot learns already, little is left for augmentation to speed up.

    common(D)      = share of D that gets the most common reward          near 1 where reward is sparse
    progress(D, E) = (mean reward of E - mean reward of D) / standard deviation of D's
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from augury.errors import UserError

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.float64]

QUANTILE = 0.9


class Density(NamedTuple):
    """How often the reward occurs."""

    observed: float
    augmented: float
    ratio: float


def density(observed: Flags, augmented: Flags) -> Density:
    """Of which transitions carry the reward."""
    if not len(observed) or not len(augmented):
        raise UserError("reward density needs observed and augmented transitions")
    least, before, after = 0.5 / len(observed), float(observed.mean()), float(augmented.mean())
    return Density(before, after, (after + least) / (before + least))


def common(rewards: Rows) -> float:
    """The share of the most common reward."""
    return float(np.unique(rewards, return_counts=True)[1].max() / len(rewards))


def progress(observed: Rows, evaluated: Rows) -> float:
    """How much better evaluated steps are rewarded than observed ones; 0 where all rewards are equal."""
    if np.ptp(observed) == 0:
        return 0.0
    return float((evaluated.mean() - observed.mean()) / observed.std())


def rewarding(observed: Rows, augmented: Rows) -> tuple[Flags, Flags]:
    """Which rewards are beyond the observed ones' 90% quantile; where that is their largest, equal to it."""
    if np.ptp(observed) == 0:
        raise UserError("the pilot's rewards are all equal: which transitions are worth more is not known")
    bar = np.quantile(observed, QUANTILE)
    if bar == observed.max():
        return observed >= bar, augmented >= bar
    return observed > bar, augmented > bar
