"""Statistics over agents. Scores have one shape: (agents, evaluations)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import trim_mean

Scores = npt.NDArray[np.floating[Any]]


class Curve(NamedTuple):
    """A statistic over agents at every evaluation, with its confidence belt."""

    middle: Scores
    low: Scores
    high: Scores


def interquartile_mean(scores: Scores) -> Scores:
    """The mean of the middle half of the agents (Agarwal et al. 2021): the 25%-trimmed mean."""
    trimmed: Scores = np.asarray(trim_mean(scores, 0.25, axis=0))
    return trimmed


def iqm_curve(scores: Scores, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0) -> Curve:
    """IQM with a percentile bootstrap belt: agents are drawn again, with replacement."""
    agents = scores.shape[0]
    drawn = np.random.default_rng(seed).integers(0, agents, (agents, resamples))
    bootstrapped = interquartile_mean(scores[drawn])  # (agents, resamples, evaluations) → (resamples, …)
    tail = (1 - confidence) / 2
    low, high = np.quantile(bootstrapped, [tail, 1 - tail], axis=0)
    return Curve(interquartile_mean(scores), low, high)


def first_to_reach(steps: npt.NDArray[np.integer[Any]], curve: Scores, threshold: float) -> int | None:
    """The step of the first evaluation at or above the threshold."""
    above = np.flatnonzero(curve >= threshold)
    return int(steps[above[0]]) if above.size else None
