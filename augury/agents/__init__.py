"""Algorithms as pure functions: init, act, explore, update."""

from augury.agents.base import ActionScale, Algorithm, Hyperparameters, Learner, Noise, Parameters
from augury.agents.ddpg import DDPG
from augury.agents.sac import SAC
from augury.agents.td3 import TD3

ALGORITHMS = {"ddpg": DDPG, "td3": TD3, "sac": SAC}
"""Algorithms by name."""

__all__ = [
    "ALGORITHMS",
    "DDPG",
    "SAC",
    "TD3",
    "ActionScale",
    "Algorithm",
    "Hyperparameters",
    "Learner",
    "Noise",
    "Parameters",
]
