"""Augmentation for SB3, SB3-contrib and SBX: a replay buffer that augments and a callback that logs."""

try:
    import stable_baselines3  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("augury.sb3 needs Stable-Baselines3: pip install 'augury[sb3]'") from error

from augury.sb3.buffer import AugmentedReplayBuffer
from augury.sb3.callback import AugmentationCallback

__all__ = ["AugmentationCallback", "AugmentedReplayBuffer"]
