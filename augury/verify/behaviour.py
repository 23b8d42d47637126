"""What is done while transitions are collected: random actions alone never get far.

| of four episodes | each step |
|---|---|
| two | a random action |
| one | a random action, held for some steps: it drives into walls and joint limits |
| one | a random linear policy: now and then it balances, walks or runs away |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from augury.envs.actions import random_actions
from augury.transition import Observation
from augury.verify.base import Flags
from augury.verify.observations import flat

RENEWED = 0.1
"""Chance that a held action is drawn anew."""
GAIN = 2.0
"""Of linear policies, of observations divided by the largest ones so far."""

Act = Callable[[Observation, Flags], npt.NDArray[Any]]
"""Actions for rows of observations; the flags say which episodes begin."""


class Actions(NamedTuple):
    """The actions of an environment."""

    sample: Callable[[int], npt.NDArray[Any]]
    """So many random ones."""
    low: Any
    high: Any
    """Bounds; None where actions are discrete or have no finite ones."""
    discrete: int | None = None
    """How many there are, where they are whole numbers from 0 on."""

    @classmethod
    def of(cls, environment: Any, generator: np.random.Generator) -> Actions:
        def sample(rows: int) -> npt.NDArray[Any]:
            return random_actions(environment, generator, rows)

        if environment.action_count is not None:
            return cls(sample, None, None, environment.action_count)
        return cls(sample, environment.action_low, environment.action_high)


class Mixture:
    """Each copy of an environment behaves in one of the four ways, and in another in its next episode."""

    def __init__(self, actions: Actions, copies: int, generator: np.random.Generator) -> None:
        self._actions, self._generator = actions, generator
        self._kind = np.arange(copies)
        self._held: Any = actions.sample(copies)
        self._weights: Any = None
        self._scale: Any = None

    def __call__(self, observation: Observation, begins: Flags) -> npt.NDArray[Any]:
        seen = flat(observation).astype(float)
        copies = len(seen)
        self._kind = self._kind + begins
        fresh = self._actions.sample(copies)
        renew = begins | (self._generator.random(copies) < RENEWED)
        self._held = _where(renew, fresh, self._held)
        action = _where(self._kind % 4 == 2, self._held, fresh)
        linear = self._linear(seen, begins)
        return action if linear is None else _where(self._kind % 4 == 3, linear, action)

    def _linear(self, seen: Any, begins: Flags) -> Any:
        low, high, count = self._actions.low, self._actions.high, self._actions.discrete
        if low is None and count is None:
            return None
        size = len(low) if count is None else count
        drawn = self._generator.normal(size=(len(seen), size, seen.shape[1] + 1))
        self._weights = drawn if self._weights is None else _where(begins, drawn, self._weights)
        largest = np.abs(seen).max(0)
        self._scale = largest if self._scale is None else np.maximum(self._scale, largest)
        inputs = np.column_stack([seen / np.maximum(self._scale, 1e-9), np.full(len(seen), 0.3)])
        scores = GAIN * np.einsum("ris,rs->ri", self._weights, inputs)
        if count is not None:
            return scores.argmax(1).astype(np.int32)
        return low + (high - low) * (np.tanh(scores) + 1) / 2


def _where(flags: Flags, yes: Any, no: Any) -> Any:
    return np.where(flags.reshape(-1, *(1,) * (np.ndim(yes) - 1)), yes, no)
