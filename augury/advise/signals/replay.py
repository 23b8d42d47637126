"""Replay: how often augmented transitions would be learned from, against observed ones.

    β   = replay ratio / m             updates per augmented transition
    use = α / m                        draws of an augmented transition for each draw of an observed one

The replay ratio is the learner's own, updates per observed transition. m = ∞ gives 0 for both: no copy is
used twice.
"""

from __future__ import annotations

from typing import NamedTuple

from augury.errors import UserError


class Replayed(NamedTuple):
    """How often transitions are learned from."""

    replay_ratio: float
    augmented_replay_ratio: float
    """β."""
    update_ratio: float
    """α."""
    use: float


def replayed(replay_ratio: float, ratio: float, update_ratio: float) -> Replayed:
    """Of a learner's replay ratio, m and α."""
    for name, value in (("ratio", ratio), ("update_ratio", update_ratio)):
        if not value > 0:
            raise UserError(f"{name} must be above 0, not {value:g}")
    return Replayed(replay_ratio, replay_ratio / ratio, update_ratio, update_ratio / ratio)
