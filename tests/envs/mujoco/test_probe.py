"""What a MuJoCo environment observes is found out by trying: of Gymnasium's, and of any other."""

from __future__ import annotations

import gymnasium
import jax
import mujoco
import numpy as np
import pytest
from gymnasium.spaces import Box

import augury
from augury.envs.mujoco.probe import observation_table
from augury.errors import UserError

RAFT = """
<mujoco model="raft">
  <option timestep="0.01"/>
  <worldbody>
    <body name="hull">
      <joint name="y" type="slide" axis="0 1 0" damping="1"/>
      <geom size="0.1" mass="1"/>
      <body name="left" pos="0 0.2 0">
        <joint name="left" axis="0 0 1" damping="1"/>
        <geom type="capsule" fromto="0 0 0 0 0.3 0" size="0.02"/>
      </body>
      <body name="right" pos="0 -0.2 0">
        <joint name="right" axis="0 0 1" damping="1"/>
        <geom type="capsule" fromto="0 0 0 0 -0.3 0" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="left" joint="left" ctrlrange="-1 1"/><motor name="right" joint="right" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""


class Raft(gymnasium.Env):
    """A plain environment: a model, its data, and nothing of Gymnasium's MuJoCo classes."""

    def __init__(self, dtype=np.float64):
        self.model = mujoco.MjModel.from_xml_string(RAFT)
        self.data = mujoco.MjData(self.model)
        self.observation_space = Box(-np.inf, np.inf, (5,), dtype)
        self.action_space = Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[1:] = self.np_random.uniform(-0.1, 0.1, 2)
        return self.seen(), {}

    def seen(self):
        # It starts with velocities, and does not see where it is.
        return np.concatenate([self.data.qvel, self.data.qpos[1:]]).astype(self.observation_space.dtype)

    def step(self, action):
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data)
        # The sum is one of 32 bits, and so it depends on the order of what is summed.
        cost = np.cumsum(np.float32([0.1, *np.square(np.float32(action)), 0.3]), dtype=np.float32)[-1]
        return self.seen(), -float(cost), False, False, {}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_plain_environment_with_a_model_is_probed_by_stepping(dtype):
    table = observation_table(Raft(dtype))
    assert [own.name for own in table] == [
        "y velocity", "left angular velocity", "right angular velocity", "left angle", "right angle"
    ]  # fmt: skip


def test_positions_and_velocities_of_32_bits_are_recognised_by_setting_them():
    class Asked(Raft):
        _get_obs = Raft.seen

    env = Asked(np.float32)
    env.data.qpos[:] = 0.25
    assert [own.kind for own in observation_table(env)] == ["qvel"] * 3 + ["qpos"] * 2
    assert env.data.qpos.tolist() == [0.25] * 3


def test_what_is_neither_is_named():
    class Scaled(Raft):
        def seen(self):
            return super().seen() * np.array([1, 1, 2, 1, 1])

    with pytest.raises(UserError, match="observation 2 of Scaled is neither a position nor a velocity"):
        observation_table(Scaled())


def test_a_plain_environment_is_reflected():
    mirror = augury.reflect(Raft(np.float32))
    observed = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    made = mirror.observation(jax.numpy.asarray(observed))
    assert made.tolist() == [-1, -3, -2, -5, -4]


def test_a_reward_that_is_a_sum_of_32_bits_is_said_to_be_rounded():
    report = augury.verify(augury.reflect(Raft()), Raft(), samples=200)
    assert [one.name for one in report.dimensions] == ["reward"]
    assert "the reward differs by" in report.cause
    assert "as sums in 32 bits do: a tolerance of 1e-06 allows for it" in report.cause
    assert augury.verify(augury.reflect(Raft()), Raft(), samples=200, tolerance=1e-6).valid


def test_a_reward_that_was_not_recomputed_is_still_said_to_be_stale():
    class Sided(Raft):
        def step(self, action):
            following, _, *rest = super().step(action)
            return following, float(action[0]), *rest

    report = augury.verify(augury.reflect(Sided()), Sided(), samples=200)
    assert report.cause == "the reward is that of the observed transition: recompute it"


def test_the_tolerance_that_32_bits_allow_is_said():
    mirror = augury.reflect(Raft(np.float32))
    report = augury.verify(mirror, Raft(np.float32), samples=200, tolerance=1e-8)
    assert report.cause.endswith("and errors are within them: a tolerance of 1e-06 allows for it")
    assert augury.verify(mirror, Raft(np.float32), samples=200).valid  # as it is by default


def test_a_state_is_restored_from_more_than_32_bits():
    class Fast(Raft):
        """The oars have turned a thousand times."""

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.data.qpos[1:] = self.np_random.uniform(5e3, 6e3, 2)
            return self.seen(), {}

    mirror = augury.reflect(Fast(np.float32))
    assert augury.verify(mirror, Fast(np.float32), samples=200).valid
