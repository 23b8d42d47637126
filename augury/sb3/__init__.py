"""Augmentation for SB3, SB3-contrib and SBX: a replay buffer that augments and a callback that logs."""

from augury.sb3.buffer import AugmentedReplayBuffer
from augury.sb3.callback import AugmentationCallback

__all__ = ["AugmentationCallback", "AugmentedReplayBuffer"]
