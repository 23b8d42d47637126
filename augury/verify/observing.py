"""A Gymnasium environment that observes its state as it is simulated, not as it is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from augury.verify.base import Rows


class Observing(ABC):
    """An environment whose observations, in double precision, determine its state."""

    def __init__(self, env: Any) -> None:
        self.env, self.unwrapped, self.action_space = env, env.unwrapped, env.action_space
        self.observation_space = Box(-np.inf, np.inf, env.observation_space.shape, np.float64)

    def reset(self, **options: Any) -> tuple[Rows, dict[str, Any]]:
        _, info = self.env.reset(**options)
        return self._observation(), info

    def step(self, action: Any) -> tuple[Any, ...]:
        _, *outcome = self.env.step(action)
        return self._observation(), *outcome

    @abstractmethod
    def restore(self, observation: Rows, extras: Mapping[str, Any]) -> None:
        """Bring it to the state that is observed like this, as if an episode had just begun there."""

    @abstractmethod
    def _observation(self) -> Rows: ...
