"""What hindsight needs to know: which goals were achieved later in the episode of each transition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from augury.augmentations.goals import LATER_GOALS
from augury.transition import Transition

Indices = npt.NDArray[np.intp]


def with_later_goals(rounds: Sequence[Transition], generator: np.random.Generator) -> list[Transition]:
    """Transitions of environments side by side, round after round, with two extras that no simulator gives.

    The future goal was achieved by the step itself or by a later one, each equally likely; the final goal by
    the last. An episode that nobody played to its end is taken to end with the last round.
    """
    achieved = np.stack([one.next_observation["achieved_goal"] for one in rounds])
    last = _last_rounds(np.stack([one.terminated | one.truncated for one in rounds]))
    now = np.arange(len(rounds))[:, None]
    future = now + (generator.random(last.shape) * (last - now + 1)).astype(np.intp)
    environment = np.arange(last.shape[1])
    goals = [achieved[when, environment] for when in (future, last)]
    return [
        one._replace(extras=one.extras | dict(zip(LATER_GOALS, later, strict=True)))
        for one, *later in zip(rounds, *goals, strict=True)
    ]


def _last_rounds(ended: npt.NDArray[np.bool_]) -> Indices:
    """In which round the episode of each transition ends."""
    last = np.empty(ended.shape, np.intp)
    following = np.full(ended.shape[1], len(ended) - 1)
    for place in reversed(range(len(ended))):
        following = np.where(ended[place], place, following)
        last[place] = following
    return last
