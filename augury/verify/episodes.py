"""What hindsight needs to know: which goals were achieved later in the episode of each transition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from augury.augmentations.goals import LATER_GOALS
from augury.precision import double_precision
from augury.replay import copies
from augury.replay.episodes import EpisodesOnHost
from augury.transition import Transition


def with_later_goals(rounds: Sequence[Transition], seed: int) -> list[Transition]:
    """Transitions of environments side by side, round after round, with two extras that no simulator gives.

    They are the goals that copy 0 of each transition reads, of the root key with this seed. An episode that
    nobody played to its end is taken to end with the last round.
    """
    achieved = np.stack([one.next_observation["achieved_goal"] for one in rounds])
    over = np.stack([one.terminated | one.truncated for one in rounds])
    over[-1] = True
    episodes = EpisodesOnHost(*over.shape)
    for last, ended in np.argwhere(over).tolist():
        episodes.finish(ended, last)
    number, environment = (places.ravel() for places in np.indices(over.shape))
    identity = copies.identity(number, environment, over.shape[1])
    remaining = episodes.remaining(number, environment, number).astype(np.int32)

    def read(goal: str) -> Any:
        root = jax.random.key(seed)
        ahead = np.asarray(copies.steps_ahead(goal, root, identity, np.uint32(0), remaining))
        return achieved[number + ahead, environment].reshape(achieved.shape)

    with double_precision():
        goals = {goal: read(goal) for goal in LATER_GOALS}
    return [
        one._replace(extras=one.extras | {goal: values[number] for goal, values in goals.items()})
        for number, one in enumerate(rounds)
    ]
