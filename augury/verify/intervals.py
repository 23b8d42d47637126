"""How sure a share is where transitions of one episode resemble each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

CONFIDENCE = 0.95


def clustered(wrong: npt.NDArray[np.bool_], episode: npt.NDArray[Any]) -> tuple[float, float]:
    """A 95% confidence interval of the share that is wrong (Korn and Graubard, 1998).

    It is Clopper and Pearson's, of as many independent transitions as tell as much as these do. Where all
    agree nobody knows how much those of an episode differ, and each episode counts as one transition.
    """
    count, episodes = len(wrong), len(np.unique(episode))
    if not count:  # nothing is known
        return 0.0, 1.0
    share = float(wrong.mean())
    effective = float(episodes)
    if 0 < share < 1 and episodes > 1:
        _, member = np.unique(episode, return_inverse=True)
        surplus = np.bincount(member, wrong - share)
        variance = episodes / (episodes - 1) * (surplus**2).sum() / count**2
        effective = min(share * (1 - share) / max(variance, 1e-12), count)
    hits = share * effective
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if share == 0 else float(beta.ppf(tail, hits, effective - hits + 1))
    high = 1.0 if share == 1 else float(beta.ppf(1 - tail, hits + 1, effective - hits))
    return low, high
