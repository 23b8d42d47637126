"""For RL Zoo: importing this makes AugmentedReplayBuffer a name in its hyperparameter files.

    python -m rl_zoo3.train --gym-packages augury.sb3.zoo --conf-file td3.yml …

RL Zoo evaluates `replay_buffer_class` where HerReplayBuffer is imported; a package can add to these names.
"""

from rl_zoo3 import exp_manager

from augury.sb3 import AugmentedReplayBuffer

exp_manager.AugmentedReplayBuffer = AugmentedReplayBuffer
