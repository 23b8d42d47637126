"""Observations of 64 bits stay what they are, and everything else stays in 32 bits."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from augury.augmentations import compose, from_numpy
from augury.sb3 import AugmentedReplayBuffer


class Clock(gymnasium.Env):
    """Shows the time of the day in seconds since 1970, which 32 bits round to minutes, and a place."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = np.array([1.7e9, self.np_random.uniform(0.1, 1)])
        return self.seen.copy(), {}

    def step(self, action):
        self.seen += [0.25, 0.01]
        return self.seen.copy(), 0.0, False, False, {}


def mirror(key, transition):
    flip = np.array([1.0, -1.0])
    return transition._replace(
        observation=flip * transition.observation, next_observation=flip * transition.next_observation
    )


@pytest.mark.parametrize("function", [mirror, compose(from_numpy(mirror))], ids=["jax", "called back"])
def test_what_32_bits_would_round_reaches_the_learner_under_vecnormalize(function):
    vector = VecNormalize(DummyVecEnv([Clock]), clip_obs=1e9)
    spaces_of = vector.observation_space, vector.action_space
    buffer = AugmentedReplayBuffer(50, *spaces_of, "cpu", augmentation=function)
    vector.seed(0)
    vector.reset()
    for _ in range(40):
        obs, nothing = vector.get_original_obs(), np.zeros((1, 1))
        _, reward, done, infos = vector.step(nothing)
        buffer.add(obs, vector.get_original_obs(), nothing, reward, done, infos)
    drawn = buffer.sample(300, vector)
    assert len(np.unique(np.asarray(drawn.observations)[300:, 0])) == 40
    copies = buffer.augmented_transitions(99)
    np.testing.assert_array_equal(copies.observation[:, 0], 1.7e9 + 0.25 * np.arange(40))
    assert not jax.config.read("jax_enable_x64")


@pytest.mark.parametrize(("dtype", "width"), [(np.float32, 4), (np.float64, 8)])
def test_an_augmentation_computes_with_as_many_bits_as_the_observation_has(dtype, width):
    def showing_width(key, transition):
        return transition._replace(reward=np.float32(transition.observation.dtype.itemsize))

    observation_space = spaces.Box(-1, 1, (2,), dtype)
    arguments = (4, observation_space, spaces.Box(-1, 1, (2,)), "cpu")
    buffer = AugmentedReplayBuffer(*arguments, augmentation=showing_width)
    obs = np.zeros((1, 2), dtype)
    buffer.add(obs, obs, np.zeros((1, 2)), np.ones(1), np.zeros(1), [{}])
    copies = buffer.augmented_transitions(1)
    assert (copies.reward, copies.observation.dtype) == (width, dtype)
