"""The drop-in buffer under real algorithms of SB3, SB3-contrib and SBX: what their batches hold."""

import gymnasium
import numpy as np
import pytest
import sb3_contrib
import sbx
import stable_baselines3 as sb3
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from augury import Transition
from augury.augmentations import compose, from_numpy, make
from augury.errors import UserError
from augury.sb3 import AugmentedReplayBuffer


def small():
    """Settings of a quick run; new dicts every time, because SB3 writes into them."""
    return {"policy_kwargs": {"net_arch": [8]}, "seed": 0, "buffer_size": 200, "device": "cpu"}


class Numbered(gymnasium.Env):
    """Every step has a number, which observations carry; every fourth episode is cut instead of ending.

    Observation: number / 1000, place, side. Side is 1 here and -1 in the mirrored world, where place and the
    action (about its middle, 0.5) change sign: an augmented row can be told from an observed one.
    """

    def __init__(self, discrete=False, length=10):
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,))
        self.action_space = spaces.Discrete(2) if discrete else spaces.Box(-2.0, 3.0, (1,))
        self.discrete, self.length = discrete, length
        self.number = self.episode = 0
        self.steps = {}

    def observation(self):
        return np.array([self.number / 1000, self.place, 1], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.left = float(self.np_random.uniform(0.1, 1)), self.length
        return self.observation(), {}

    def step(self, action):
        start = self.observation()
        action = np.asarray(action, np.float32).reshape(-1)[0]
        self.place += 0.1 * float(2 * action - 1 if self.discrete else action - 0.5)
        self.number += 1
        self.left -= 1
        reward = -abs(self.place)
        ended = self.left == 0
        self.episode += ended
        cut = bool(ended and self.episode % 4 == 0)
        terminated = bool(ended and not cut)
        self.steps[self.number - 1] = (start, action, reward, self.observation(), terminated, cut)
        return self.observation(), reward, terminated, cut, {}


def mirror(key, transition):
    """Place and side change sign; the action is reflected about its middle."""
    flip = np.array([1, -1, -1], np.float32)
    return transition._replace(
        observation=flip * transition.observation,
        action=1 - transition.action,
        next_observation=flip * transition.next_observation,
    )


class Recording(AugmentedReplayBuffer):
    """Keeps every batch it hands out."""

    def sample(self, batch_size, env=None):
        drawn = super().sample(batch_size, env)
        self.batches = [*getattr(self, "batches", []), drawn]
        return drawn


def rows_of(batch):
    return [np.asarray(part) for part in batch[:5]]


def check_rows(env, batch):
    """Trace each row to the step it came from; return which rows are augmented."""
    observations, actions, following, dones, rewards = rows_of(batch)
    side = observations[:, 2]
    assert (following[:, 2] == side).all()
    for row, sign in enumerate(side):
        start, action, reward, end, terminated, _ = env.steps[round(float(observations[row, 0]) * 1000)]
        flip = np.array([1, sign, sign], np.float32)
        np.testing.assert_array_equal(observations[row], flip * start)
        np.testing.assert_array_equal(following[row], flip * end)
        taken = action if sign > 0 else 1 - action
        stored = taken if env.discrete else (taken - 0.5) / 2.5
        np.testing.assert_allclose(actions[row], [stored], atol=1e-6)
        np.testing.assert_allclose(rewards[row], [reward], rtol=1e-6)
        assert dones[row] == terminated  # a cut episode goes on bootstrapping
    return side < 0


ALGORITHMS = [
    pytest.param(kind, id=f"{kind.__module__.split('.')[0]}-{kind.__name__}")
    for kind in (
        sb3.DDPG,
        sb3.TD3,
        sb3.SAC,
        sb3.DQN,
        sb3_contrib.TQC,
        sb3_contrib.QRDQN,
        sbx.TD3,
        sbx.SAC,
        sbx.TQC,
        sbx.CrossQ,
        sbx.DQN,
    )
]


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_every_row_of_every_algorithms_batches_is_traced_to_its_step(kind):
    env = Numbered(discrete=kind in (sb3.DQN, sb3_contrib.QRDQN, sbx.DQN))
    model = kind(
        "MlpPolicy",
        env,
        batch_size=16,
        learning_starts=40,
        train_freq=8,
        gradient_steps=8,
        gamma=0.9,
        replay_buffer_class=Recording,
        replay_buffer_kwargs={"augmentation": mirror, "ratio": 1.5, "update_ratio": 0.3},
        **small(),
    )
    model.learn(400)
    assert model._n_updates >= 300
    shares = []
    for drawn in model.replay_buffer.batches:
        augmented = check_rows(env, drawn)
        batches = 8 if kind.__module__.startswith("sbx") else 1
        for part in augmented.reshape(batches, -1):  # as SBX cuts it
            assert (~part).sum() == 16
            shares.append(part.sum())
    assert set(shares) == {4, 5}  # 0.3 × 16 = 4.8
    draws = len(model.replay_buffer.batches)
    assert np.mean(shares) == pytest.approx(4.8, abs=4 * 0.4 / np.sqrt(draws))


def filled(steps=60, environments=1, buffer_size=1000, dictionary=False, env=None, **kwargs):
    """A buffer with steps of Numbered environments, and those environments."""
    envs = [env or Numbered() for _ in range(environments)]
    vector = DummyVecEnv([lambda env=env: env for env in envs])
    vector.seed(0)
    buffer = AugmentedReplayBuffer(
        buffer_size,
        vector.observation_space,
        vector.action_space,
        device="cpu",
        n_envs=environments,
        **kwargs,
    )
    add_steps(buffer, vector, steps)
    return buffer, envs


def add_steps(buffer, vector, steps):
    obs = vector.reset()
    for _ in range(steps):
        action = np.stack([vector.action_space.sample() for _ in range(vector.num_envs)])
        following, reward, done, infos = vector.step(action)
        true = following.copy()
        for index in np.flatnonzero(done):
            true[index] = infos[index]["terminal_observation"]
        buffer.add(obs, true, (action - 0.5) / 2.5, reward, done, infos)
        obs = following
