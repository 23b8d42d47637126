"""What the actions of an environment are: vectors between bounds, or whole numbers from 0 on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from augury.envs.base import Environment


def blank_action(environment: Environment) -> npt.NDArray[Any]:
    """What an action looks like: a vector of numbers, or one whole number."""
    if environment.action_count is not None:
        return np.zeros((), np.int32)
    return np.zeros_like(environment.action_low)


def action_bounds(environment: Environment) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Vectors between which coverage is measured."""
    if environment.action_count is not None:
        return np.array([0]), np.array([environment.action_count])
    return environment.action_low, environment.action_high


def random_actions(environment: Environment, generator: np.random.Generator, rows: int) -> npt.NDArray[Any]:
    """Uniform actions, one for every row."""
    if environment.action_count is not None:
        return generator.integers(environment.action_count, size=rows, dtype=np.int32)
    low, high = environment.action_low, environment.action_high
    return generator.uniform(low, high, (rows, len(low)))
