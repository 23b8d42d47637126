"""Dict observations and goal relabelling: flip bits until they spell the goal.

    python examples/goal_relabelling.py                    about a minute
    python examples/goal_relabelling.py --no-augmentation  never finds the goal

The task of the HER paper: with 15 bits there are 32,768 goals, the reward is -1 until all bits are right, and
random flips hardly ever get there. Hindsight pretends that what was spelt later in the episode was the goal.
"""

import argparse

import numpy as np
from stable_baselines3 import DQN
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.evaluation import evaluate_policy

from augury.augmentations import hindsight
from augury.sb3 import AugmentedReplayBuffer


def compute_reward(achieved, desired, info):
    """0 where all bits are right, else -1."""
    return -(achieved != desired).any(-1).astype(np.float32)


def main(arguments=None):
    """Train and evaluate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--bits", type=int, default=15)
    parser.add_argument("--no-augmentation", action="store_true")
    options = parser.parse_args(arguments)

    env = BitFlippingEnv(n_bits=options.bits, continuous=False, max_steps=options.bits)
    augment = {"augmentation": hindsight(compute_reward, "future"), "ratio": 4, "update_ratio": 4}
    model = DQN(
        "MultiInputPolicy",
        env,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={} if options.no_augmentation else augment,
        learning_rate=1e-3,
        learning_starts=min(500, options.steps // 2),
        batch_size=64,
        train_freq=1,
        target_update_interval=500,
        exploration_fraction=0.3,
        gamma=0.95,
        policy_kwargs={"net_arch": [256]},
        seed=0,
    )
    model.learn(options.steps)
    returns, _ = evaluate_policy(model, env, n_eval_episodes=100, return_episode_rewards=True, warn=False)
    success = float(np.mean(np.array(returns) > -options.bits))
    print(f"spelt {success:.0%} of 100 goals of {options.bits} bits after {options.steps:,} steps")
    return success


if __name__ == "__main__":
    main()
