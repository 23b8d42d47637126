"""A pytest plugin under which SB3's own tests get our buffer wherever they ask for SB3's."""

import types

from stable_baselines3.common import buffers, off_policy_algorithm

from augury.sb3 import AugmentedReplayBuffer


class ReplayBuffer(AugmentedReplayBuffer):
    """Stands for SB3's buffer of that name; its tests tell the two by their class."""


class DictReplayBuffer(AugmentedReplayBuffer):
    """Stands for SB3's buffer of that name."""


class Substituted(types.ModuleType):
    """What others import from SB3's module. Its own code, which refers to itself by name, is not affected."""

    ReplayBuffer = property(lambda module: ReplayBuffer)
    DictReplayBuffer = property(lambda module: DictReplayBuffer)


buffers.__class__ = Substituted
off_policy_algorithm.ReplayBuffer = ReplayBuffer
off_policy_algorithm.DictReplayBuffer = DictReplayBuffer
