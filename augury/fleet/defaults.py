"""Defaults of an arm's settings: the environment's own, else those for its kind of actions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from augury.envs import Environment


class Unset:
    """The value of a setting that was not given."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"  # a singleton, also after pickling


UNSET: Any = Unset()
"""Not given: `resolved` fills it in."""

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "algorithm": "td3",
        "environments": 1,
        "steps": 200_000,
        "random_steps": 10_000,
        "collect": 64,
        "updates": 32,
        "batch_size": 128,
        "buffer_size": 1_000_000,
        "hidden": (64, 64),
        "learning_rate": 1e-3,
        "discount": 0.99,
        "target_rate": 0.005,
        "exploration_noise": 0.1,
        "random_action_probability": 0.0,
        "smoothing_noise": 0.2,
        "smoothing_clip": 0.5,
        "evaluate_every": 10_000,
        "evaluation_episodes": 80,
    }
)
"""The paper's settings for Goal2D (TD3)."""

DISCRETE_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        **DEFAULTS,
        "algorithm": "dqn",
        "steps": 50_000,
        "random_steps": 1_000,
        "hidden": (128, 128),
        "target_rate": 0.05,
        "random_action_probability": 0.1,
        "evaluate_every": 5_000,
        "evaluation_episodes": 20,
    }
)
"""Those for environments with discrete actions (DQN), with which CartPole is learned."""


def defaults_for(environment: Environment) -> Mapping[str, Any]:
    """The settings of arms on an environment, where it has none of its own."""
    return DEFAULTS if environment.action_count is None else DISCRETE_DEFAULTS
