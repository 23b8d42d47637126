"""How far a critic is from the symmetry that an augmentation f would teach it.

    asymmetry = E[(Q(f(s, a)) - Q(s, a))²] / Var Q

over transitions, for augmentations that keep reward and termination: of a symmetry, the optimal Q is the same
on both sides. 0 is a critic that is symmetric already and has nothing to learn from it; 2 is one whose values
on both sides have nothing to do with each other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from augury.errors import UserError

Rows = npt.NDArray[np.float64]

FEWEST = 20
SAME_REWARD = 1e-4
"""Of the rewards' range: what rounding may change."""


def asymmetry(before: Rows, after: Rows) -> float:
    """Of the critic's values of transitions and of their copies, row by row."""
    if len(before) < FEWEST:
        raise UserError(f"the critic's asymmetry needs {FEWEST} transitions, not {len(before)}")
    variance = float(before.var())
    if variance <= 1e-12 * max(1.0, float((before**2).mean())):
        raise UserError("the critic's values are all equal: whether it is symmetric is not known")
    return float(((after - before) ** 2).mean() / variance)


def keeps_reward(before: Rows, after: Rows, span: float) -> bool:
    """Whether no copy has another reward than its transition; `span` is the range of rewards."""
    return bool((np.abs(after - before) <= SAME_REWARD * span).all())
