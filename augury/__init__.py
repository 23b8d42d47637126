"""Augury tells when data augmentation will help reinforcement learning, and gives it when it does."""

from augury.envs import gym as _gym
from augury.transition import Transition

__version__ = "0.1.0"
_gym.register()

__all__ = ["Transition", "__version__"]
