"""An environment of your own, and an augmentation of six lines in plain NumPy.

    python examples/own_environment.py    half a minute

A puck on ice is pushed to the origin. Ice looks the same from every side, so a transition may be turned by
any angle about the origin: position, velocity and push turn together, and the reward stays.
"""

import argparse

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from stable_baselines3 import SAC
from stable_baselines3.common.evaluation import evaluate_policy

from augury.sb3 import AugmentedReplayBuffer


class Puck(gymnasium.Env):
    """Push a puck to the origin. Observation: position, velocity. Action: how hard, in which direction."""

    def __init__(self):
        self.observation_space = Box(-np.inf, np.inf, (4,))
        limits = np.array([1, np.pi], np.float32)
        self.action_space = Box(-limits, limits)
        self.state = np.zeros(4, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.append(self.np_random.uniform(-1, 1, 2), [0, 0]).astype(np.float32)
        return self.state.copy(), {}

    def step(self, action):
        strength, angle = action
        velocity = 0.9 * self.state[2:] + 0.1 * strength * np.array([np.cos(angle), np.sin(angle)])
        self.state = np.concatenate([self.state[:2] + velocity, velocity]).astype(np.float32)
        return self.state.copy(), -float(np.linalg.norm(self.state[:2])), False, False, {}


def turned(generator, transition):
    """Turn everything by one random angle."""
    by = generator.uniform(-np.pi, np.pi)
    turn = np.kron(np.eye(2), [[np.cos(by), -np.sin(by)], [np.sin(by), np.cos(by)]])
    strength, angle = transition.action
    angle = (angle + by + np.pi) % (2 * np.pi) - np.pi
    observation, following = turn @ transition.observation, turn @ transition.next_observation
    return transition._replace(observation=observation, action=[strength, angle], next_observation=following)


def main(arguments=None):
    """Train and evaluate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--no-augmentation", action="store_true")
    options = parser.parse_args(arguments)

    env = gymnasium.wrappers.TimeLimit(Puck(), 50)
    model = SAC(
        "MlpPolicy",
        env,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": None if options.no_augmentation else turned},
        learning_starts=min(500, options.steps // 2),
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
    )
    model.learn(options.steps)
    score, _ = evaluate_policy(model, env, n_eval_episodes=50, warn=False)
    print(f"mean return {float(score):.1f} after {options.steps:,} steps")
    return float(score)


if __name__ == "__main__":
    main()
