"""Algorithms as pure functions: init, act, explore, update."""

from typing import Any

from augury.agents.base import (
    ActionScale,
    Algorithm,
    Hyperparameters,
    Learner,
    Noise,
    Parameters,
    Unscaled,
)
from augury.agents.ddpg import DDPG
from augury.agents.dqn import DQN
from augury.agents.sac import SAC
from augury.agents.td3 import TD3

ALGORITHMS: dict[str, Any] = {"ddpg": DDPG, "td3": TD3, "sac": SAC, "dqn": DQN}
"""Algorithms by name."""

__all__ = [
    "ALGORITHMS",
    "DDPG",
    "DQN",
    "SAC",
    "TD3",
    "ActionScale",
    "Algorithm",
    "Hyperparameters",
    "Learner",
    "Noise",
    "Parameters",
    "Unscaled",
]
