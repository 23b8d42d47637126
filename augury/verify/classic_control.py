"""Some of Gymnasium's classic control, with a `restore`: their observations determine their states.

They observe in single precision what they simulate in double precision. Here they observe what they simulate,
so that a step can be repeated to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.envs.classic_control import (
    AcrobotEnv,
    CartPoleEnv,
    Continuous_MountainCarEnv,
    MountainCarEnv,
    PendulumEnv,
)

from augury.verify.base import Rows
from augury.verify.observing import Observing


class _Maps(NamedTuple):
    observe: Callable[[Rows], Rows]
    """What is observed of a state."""
    restore: Callable[[Rows], Rows]
    """A state that is observed like this."""
    kind: Any = None
    """What it computes with; None where that is what an episode begins with."""


_SAME = _Maps(np.asarray, np.asarray)
_MAPS: Mapping[type, _Maps] = {
    AcrobotEnv: _Maps(
        lambda state: np.array(
            [*(turn(angle) for angle in state[:2] for turn in (np.cos, np.sin)), *state[2:]]
        ),
        lambda seen: np.array([np.arctan2(seen[1], seen[0]), np.arctan2(seen[3], seen[2]), *seen[4:]]),
        np.float64,
    ),
    CartPoleEnv: _SAME,
    Continuous_MountainCarEnv: _SAME,
    MountainCarEnv: _SAME,
    PendulumEnv: _Maps(
        lambda state: np.array([np.cos(state[0]), np.sin(state[0]), state[1]]),
        lambda seen: np.array([np.arctan2(seen[1], seen[0]), seen[2]]),
    ),
}


def is_classic(env: Any) -> bool:
    """Whether this is one of them, and no subclass, whose state may hold more."""
    return type(env) in _MAPS


class Placed(Observing):
    """One of them, with a `restore` that sets its state."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._maps = _MAPS[type(env)]

    def restore(self, observation: Rows, extras: Mapping[str, Any]) -> None:
        """As if an episode had just begun there."""
        del extras
        self.env.reset()
        kind = self._maps.kind or np.asarray(self.env.state).dtype
        self.env.state = self._maps.restore(np.asarray(observation, np.float64)).astype(kind)

    def _observation(self) -> Rows:
        return self._maps.observe(np.asarray(self.env.state, np.float64))
