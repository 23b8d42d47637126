"""DQN on CartPole with a mirror: seen in a mirror, a cart pushed left is one pushed right.

python examples/cartpole_mirror.py    trains twice, with and without: about a minute
"""

import argparse

import gymnasium
from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy

from augury.sb3 import AugmentedReplayBuffer


def mirror(key, transition):
    """Positions, angles and velocities change sign, and push left (0) is exchanged with push right (1)."""
    return transition._replace(
        observation=-transition.observation,
        action=1 - transition.action,
        next_observation=-transition.next_observation,
    )


def main(arguments=None):
    """Train with and without the mirror, and evaluate both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    returns = {}
    for name, augmentation in (("mirror", mirror), ("no augmentation", None)):
        model = DQN(
            "MlpPolicy",
            gymnasium.make("CartPole-v1"),
            replay_buffer_class=AugmentedReplayBuffer,
            replay_buffer_kwargs={"augmentation": augmentation},
            learning_rate=2.3e-3,
            learning_starts=min(1_000, options.steps // 2),
            batch_size=64,
            train_freq=64,
            gradient_steps=32,
            target_update_interval=10,
            exploration_fraction=0.16,
            exploration_final_eps=0.04,
            policy_kwargs={"net_arch": [256, 256]},
            seed=options.seed,
        )
        model.learn(options.steps)
        returns[name], _ = evaluate_policy(
            model, gymnasium.make("CartPole-v1"), n_eval_episodes=20, warn=False
        )
        print(f"{name}: mean return {returns[name]:.0f} of 500 after {options.steps:,} steps", flush=True)
    return returns


if __name__ == "__main__":
    main()
