"""Environments with Gymnasium's interface, good and bad, in a module that processes can import."""

import gymnasium
import numpy as np
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import NormalizeReward, TimeLimit

HORIZON = 7
VECTOR = Box(-2, 2, (2,), np.float32)


class Walk(gymnasium.Env):
    """A walk in the plane, pushed by actions and by chance: the episode is over far from its start."""

    observation_space = VECTOR
    action_space = Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.uniform(-0.1, 0.1, 2).astype(np.float32), 0
        return self.place, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.steps += 1
        noise = self.np_random.uniform(-0.05, 0.05, 2)
        self.place = (self.place + 0.3 * action + noise).astype(np.float32)
        far = bool(np.abs(self.place).max() > 1)
        return self.place, -float(np.linalg.norm(self.place)), far, False, {"x_velocity": float(action[0])}


class Goals(Walk):
    """The same, with dict observations."""

    observation_space = Dict({"place": VECTOR, "steps": Box(0, HORIZON, (1,), np.int64)})

    def reset(self, *, seed=None, options=None):
        return self._shown(super().reset(seed=seed)[0]), {}

    def step(self, action):
        observation, *rest = super().step(action)
        return self._shown(observation), *rest

    def _shown(self, place):
        return {"place": place, "steps": np.array([self.steps])}


class Unrepeatable(PendulumEnv):
    """Pendulum, but how an episode starts does not follow from the seed."""

    def reset(self, *, seed=None, options=None):
        return super().reset(options=options)


class Saved(Unrepeatable):
    """The same, but it gives and takes its state."""

    def get_state(self):
        return {"place": self.state}

    def set_state(self, state):
        self.state = state["place"]


class Reticent(Saved):
    """It promises its state, and does not give it."""

    def get_state(self):
        raise KeyError("secret")


class Raising(PendulumEnv):
    """Pendulum, until it raises an error in the third step."""

    def reset(self, **options):
        self.steps = 0
        return super().reset(**options)

    def step(self, action):
        self.steps += 1
        if self.steps == 3:
            raise ZeroDivisionError("the\nwheel came off")
        return super().step(action)


class Troubled(Walk):
    """A walk in which something goes wrong in the third step."""

    trouble = ""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if self.steps == 3:
            match self.trouble:
                case "observation is NaN":
                    observation = np.array([0, np.nan], np.float32)
                case "reward is NaN":
                    reward = np.nan
                case "shape changes":
                    observation = np.zeros(3, np.float32)
                case "dtype changes":
                    observation = np.array(["a", "b"])
                case "outside":
                    observation = np.array([0, 5], np.float32)
                case "ragged":
                    observation = [1.0, [2.0]]
                case "beyond 32 bits":
                    reward = 1e300
                case "reward is text":
                    reward = "1.5"
                case "reward is complex":
                    reward = 1j
                case "two ends":
                    terminated = np.array([False, True])
                case "raises":
                    raise ZeroDivisionError("the\nwheel came off")
                case "four values":
                    return observation, reward, terminated, info
        return observation, reward, terminated, truncated, info


class Buttons(Walk):
    """Its actions cannot be learnt."""

    action_space = MultiBinary(3)


class Pushes(Walk):
    """Discrete actions, which begin with 5."""

    action_space = Discrete(3, start=5)

    def step(self, action):
        assert self.action_space.contains(action)
        self.place = self.place + np.array([float(action) - 6, 0], np.float32)
        return self.place, 0.0, False, False, {}


class Rows(VectorEnv):
    """Two numbers that count steps and rows; all rows start again when asked, whatever the mask says."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
    single_observation_space = VECTOR
    single_action_space = Box(-1, 1, (2,), np.float32)

    def __init__(self, count):
        self.num_envs = count

    def reset(self, *, seed=None, options=None):
        self.places = np.random.default_rng(seed).uniform(-0.1, 0.1, (self.num_envs, 2)).astype(np.float32)
        self.steps = 0
        return self.places, {}

    def step(self, actions):
        self.steps += 1
        no = np.zeros(self.num_envs, bool)
        yes = np.arange(self.num_envs) < (self.steps % 5 == 0)
        return self.places + self.steps, np.ones(self.num_envs), no, yes, {}


def walk():
    return TimeLimit(Walk(), HORIZON)


def goals():
    return TimeLimit(Goals(), HORIZON)


def unrepeatable():
    return TimeLimit(Unrepeatable(), HORIZON)


def raising():
    return TimeLimit(Raising(), HORIZON)


def saved():
    return TimeLimit(Saved(), HORIZON)


def reticent():
    return TimeLimit(Reticent(), HORIZON)


def normalised():
    """What it earns depends on all earlier episodes."""
    return NormalizeReward(TimeLimit(PendulumEnv(), HORIZON))


def pendulum():
    return TimeLimit(PendulumEnv(), HORIZON)


class Strict(PendulumEnv):
    """Its actions have 64 bits, and bounds that 32 bits round up."""

    action_space = Box(-0.1, 0.1, (1,), np.float64)

    def __init__(self):
        super().__init__()
        self.action_space = Strict.action_space

    def step(self, action):
        assert self.action_space.contains(action), action
        return super().step(action)

    def close(self):
        raise RuntimeError("the door is stuck")


def strict():
    return TimeLimit(Strict(), HORIZON)


def endless():
    return Walk()


def buttons():
    return TimeLimit(Buttons(), HORIZON)


def pushes():
    return TimeLimit(Pushes(), HORIZON)


def synchronous(count):
    return SyncVectorEnv([walk] * count, autoreset_mode=AutoresetMode.SAME_STEP)


def masked(count):
    return SyncVectorEnv([walk] * count, autoreset_mode=AutoresetMode.DISABLED)


def troubled(trouble):
    """A factory of environments in which this goes wrong."""
    kind = type("Troubled", (Troubled,), {"trouble": trouble, "__module__": __name__})
    return lambda: TimeLimit(kind(), HORIZON)


def unrewarding():
    return troubled("reward is NaN")()
