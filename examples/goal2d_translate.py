"""SB3's TD3 on Goal2D with `translate`: what two arguments change.

python examples/goal2d_translate.py
python examples/goal2d_translate.py --no-augmentation  the same without, for comparison
"""

import argparse

import gymnasium
import numpy as np
from stable_baselines3 import TD3
from stable_baselines3.common.noise import NormalActionNoise

from augury.sb3 import AugmentationCallback, AugmentedReplayBuffer


def success_rate(model, episodes):
    """The share of episodes that reach the goal."""
    env = gymnasium.make("augury:augury/Goal2D-v0")
    reached = 0
    for episode in range(episodes):
        observation, info = env.reset(seed=episode)
        over = False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        reached += info["is_success"]
    return reached / episodes


def main(arguments=None):
    """Train and evaluate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--no-augmentation", action="store_true")
    options = parser.parse_args(arguments)

    augment = dict(augmentation="goal2d/translate", ratio=4, update_ratio=1.0)  # noqa: C408
    model = TD3(
        "MlpPolicy",
        gymnasium.make("augury:augury/Goal2D-v0"),
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={} if options.no_augmentation else augment,
        learning_starts=min(10_000, options.steps // 2),
        batch_size=128,
        train_freq=64,
        gradient_steps=32,
        action_noise=NormalActionNoise(np.zeros(2), 0.1 * np.ones(2)),
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        verbose=1,
    )
    # `augmentation/…` in the log: reward density and coverage of both buffers, β and α.
    model.learn(options.steps, log_interval=50, callback=AugmentationCallback(every=5_000))
    success = success_rate(model, episodes=80)
    print(f"success rate {success:.2f} after {options.steps:,} steps")
    return success


if __name__ == "__main__":
    main()
