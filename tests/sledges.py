"""Environments and augmentations of a user, in a module outside the package: what `sledges` installs."""

import sys

import pytest

SOURCE = '''
"""Sledges on ice, in JAX."""

from dataclasses import dataclass
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from augury.envs import HostEnvironment, JaxEnvironment
from augury.envs.mujoco.task import MujocoTask
from augury.envs.mujoco.vector import Outcome


@dataclass(frozen=True)
class Plain(JaxEnvironment):
    """Position and velocity on a line; it can do nothing beyond stepping."""

    name: str = "plain"
    horizon: int = 20
    observation_low = np.array([-2, -1], np.float32)
    observation_high = np.array([2, 1], np.float32)
    action_low = np.array([-1], np.float32)
    action_high = np.array([1], np.float32)

    def reset(self, key):
        return jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0)

    def observe(self, state):
        return state

    def step(self, key, state, action):
        velocity = 0.9 * state[1] + 0.1 * action[0]
        position = state[0] + 0.1 * velocity
        return jnp.stack([position, velocity]), -(position**2), jnp.abs(position) > 1.5


@dataclass(frozen=True)
class Sledge(Plain):
    """It can be put anywhere, and drawn."""

    name: str = "sledge"

    def restore(self, observation, extras):
        return observation

    def draw(self, axes, transitions):
        axes.plot(*transitions.observation.T, "o", color="#ff00ff")
        axes.plot(*transitions.next_observation.T, ".", color="#00ff00")
        axes.set(xlim=(-2, 2), ylim=(-2, 2))


@dataclass(frozen=True)
class Windy(Sledge):
    """The wind is drawn from the key of a step."""

    name: str = "windy"

    def step(self, key, state, action):
        state, reward, terminated = super().step(key, state, action)
        return state + 0.01 * jax.random.normal(key), reward, terminated


@dataclass(frozen=True)
class Forgetful(Sledge):
    """`restore` forgets the velocity."""

    name: str = "forgetful"

    def restore(self, observation, extras):
        return observation.at[1].set(0)


NAMES = ("observation", "achieved_goal", "desired_goal")


class State(NamedTuple):
    position: jax.Array
    goal: jax.Array
    steps: jax.Array


@dataclass(frozen=True)
class Reaching(JaxEnvironment):
    """A goal in the plane; its state counts steps, and its observation is a dict."""

    name: str = "reaching"
    horizon: int = 10
    measure = "success"
    observation_low = {name: np.full(2, -2, np.float32) for name in NAMES}
    observation_high = {name: np.full(2, 2, np.float32) for name in NAMES}
    action_low = np.full(2, -1, np.float32)
    action_high = np.full(2, 1, np.float32)

    def reset(self, key):
        places = jax.random.uniform(key, (2, 2), minval=-1.0, maxval=1.0)
        return State(places[0], places[1], jnp.int32(0))

    def observe(self, state):
        position = state.position
        return {"observation": position, "achieved_goal": position, "desired_goal": state.goal}

    def step(self, key, state, action):
        position = state.position + 0.3 * action
        near = reached(position, state.goal, {})
        return State(position, state.goal, state.steps + 1), jnp.where(near, 0.0, -1.0), near

    def restore(self, observation, extras):
        return State(observation["observation"], observation["desired_goal"], jnp.int32(0))

    def succeeded(self, transition):
        return transition.terminated


def reached(achieved, desired, info):
    return jnp.linalg.norm(achieved - desired) < 0.3


class Engine:
    """Many sledges in NumPy."""

    def __init__(self, count, autoreset):
        self.num_envs, self.autoreset = count, autoreset

    def reset(self, *, seed):
        self.rows = np.stack([np.random.default_rng(one).uniform(-1, 1, 2) for one in seed])
        self.steps = np.zeros(self.num_envs, int)
        return self.rows.copy(), {}

    def step(self, actions):
        position, velocity = self.rows.T
        velocity = 0.9 * velocity + 0.1 * actions[:, 0]
        self.rows = np.stack([position + 0.1 * velocity, velocity], 1)
        self.steps += 1
        over = self.steps >= 20
        no, final = np.zeros(self.num_envs, bool), self.rows.copy()
        if self.autoreset:
            self.rows[over], self.steps[over] = 0.5, 0
        infos = {"velocity": velocity, "_velocity": ~no, "final_obs": final, "note": "not a number"}
        return self.rows.copy(), -final[:, 0] ** 2, no, over, infos

    def state(self):
        return {"rows": self.rows, "steps": self.steps}

    def load_state(self, state):
        self.rows, self.steps = state["rows"], state["steps"]

    def close(self):
        pass


class RestorableEngine(Engine):
    def restore(self, observation, extras):
        self.rows, self.steps = np.array(observation), np.zeros(self.num_envs, int)


@dataclass(frozen=True)
class OnHost(HostEnvironment):
    """The same in NumPy, many at a time."""

    name: str = "on-host"
    horizon: int = 20
    engine: type = RestorableEngine
    observation_low = Plain.observation_low
    observation_high = Plain.observation_high
    action_low = Plain.action_low
    action_high = Plain.action_high

    def vector(self, count, *, autoreset=True):
        return self.engine(count, autoreset)


@dataclass(frozen=True)
class Aiming(OnHost):
    """Measured by its successes, of which nobody knows in JAX."""

    name: str = "aiming"
    measure = "success"


@dataclass(frozen=True)
class Cart(MujocoTask):
    """A cart on a rail, on MuJoCo."""

    name: str = "cart"
    horizon: int = 50
    start_noise: float = 0.3
    mirror_normal: str = "x"

    def spec(self):
        return mujoco.MjSpec.from_string("""<mujoco><worldbody><light pos="0 0 3"/>
            <body name="cart"><joint name="rail" type="slide" axis="1 0 0" damping=".1"/>
            <geom type="box" size=".2 .1 .1"/></body></worldbody>
            <actuator><motor name="push" joint="rail" ctrlrange="-1 1"/></actuator></mujoco>""")

    def outcome(self, before, action, after):
        return Outcome(-after.qpos[:, 0] ** 2, np.abs(after.qpos[:, 0]) > 9, {})


class Swing(gymnasium.Env):
    """One of Gymnasium's, which joins by `restore`."""

    observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rows = self.np_random.uniform(-1, 1, 2)
        return self.rows.copy(), {}

    def step(self, action):
        position, velocity = self.rows
        velocity = 0.9 * velocity + 0.1 * action[0]
        self.rows = np.array([position + 0.1 * velocity, velocity])
        return self.rows.copy(), -position**2, False, False, {}

    def restore(self, observation, extras):
        self.rows = np.array(observation)


plain, sledge, windy, forgetful, reaching, cart = Plain(), Sledge(), Windy(), Forgetful(), Reaching(), Cart()
aiming = Aiming()
on_host, on_host_for_good = OnHost(), OnHost("on-host-for-good", engine=Engine)


def mirror(key, transition):
    """Exchange left and right."""
    return transition._replace(
        observation=-transition.observation,
        action=-transition.action,
        next_observation=-transition.next_observation,
    )


def half_a_mirror(key, transition):
    """Forget the action."""
    return mirror(key, transition)._replace(action=transition.action)


def new_goal(key, transition):
    """A goal in the unit square of which a part is within reach."""
    goal = jax.random.uniform(key, (2,))
    observation = {**transition.observation, "desired_goal": goal}
    following = {**transition.next_observation, "desired_goal": goal}
    near = reached(following["achieved_goal"], goal, {})
    return transition._replace(observation=observation, next_observation=following, terminated=near)
'''


@pytest.fixture
def sledges(tmp_path, monkeypatch):
    """The module, in the folder in which commands run."""
    (tmp_path / "sledges.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sledges", raising=False)
    import sledges as module

    yield module
    sys.modules.pop("sledges", None)
