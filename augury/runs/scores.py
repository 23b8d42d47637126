"""Scores with agents as the first axis, and their interquartile mean (IQM).

A score that is not finite, as a diverged agent's may be, counts as worse than any other: to leave that agent
out would flatter its arm. So the IQM is -inf once such agents are more than the quarter it trims.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.floating[Any]]


def finite_or_worst(scores: Scores) -> Scores:
    """Scores that can be sorted and added."""
    assert len(scores), "there are no agents"
    return np.where(np.isfinite(scores), scores, -np.inf).astype(np.float64)


def interquartile_mean(scores: Scores) -> Scores:
    """The mean of the middle half of the agents (Agarwal et al. 2021): the 25%-trimmed mean."""
    return mean_of_middle_half(finite_or_worst(scores))


def mean_of_middle_half(scores: Scores) -> Scores:
    """The same for scores that are finite or -inf."""
    trimmed = len(scores) // 4
    return np.asarray(np.sort(scores, axis=0)[trimmed : len(scores) - trimmed].mean(axis=0))


def middle(scores: Iterable[float | None]) -> float:
    """The IQM of scores read from JSON, where None stands for an agent that diverged."""
    return float(interquartile_mean(np.array(list(scores), float)))
