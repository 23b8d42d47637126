"""Simulators that can be asked what comes after an observation and an action.

An environment joins by one method, `restore(observation, extras)`, which puts it where it looks like that.
The extras are the numbers in the info of the step that began there.
MuJoCo environments get it for free: ours, and Gymnasium's where all they observe is positions and velocities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import gymnasium
import jax
import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from augury import envs
from augury.envs import JaxEnvironment, Locomotion
from augury.envs.probe import is_mujoco, observation_table, unwrapped
from augury.envs.table import Quantity
from augury.envs.vector import Moment
from augury.errors import UserError
from augury.transition import Transition

Rows = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Policy = Callable[[Rows], npt.ArrayLike]
"""Actions for a batch of observations."""

COLLECTING = 100
"""Environments in which transitions are collected side by side."""


class Answer(NamedTuple):
    """What the simulator says comes next."""

    next_observation: Rows
    reward: Rows
    terminated: Flags
    extras: dict[str, Rows]


class Simulator(Protocol):
    """What the verifier asks of an environment."""

    name: str
    table: tuple[Quantity, ...]
    """What each observed number is."""
    single_precision: bool
    """Whether it computes with 32 bits."""

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        """Transitions under random actions, or a policy's; rows of double precision."""

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        """Restore every row, step, and look."""

    def in_contact(self, transition: Transition) -> Flags | None:
        """Which transitions begin or end touching something; None where that means nothing."""


def simulator_of(environment: Any) -> Simulator:
    """The simulator of an environment: one by name, one of ours, or a Gymnasium environment."""
    if isinstance(environment, str):
        environment = envs.make(environment)
    if isinstance(environment, gymnasium.Env):
        environment = unwrapped(environment)
    if isinstance(environment, Locomotion):
        return TaskSimulator(environment)
    if hasattr(environment, "restore"):
        is_gym = isinstance(environment, gymnasium.Env)
        return GymSimulator(environment) if is_gym else JaxSimulator(environment)
    if is_mujoco(environment):
        return GymSimulator(Probed(environment))
    raise UserError(
        f"{type(environment).__name__} cannot be verified: give it a method restore(observation, extras) "
        "that puts it where it looks like that"
    )


class TaskSimulator:
    """A task of the vector engine, all rows at once."""

    def __init__(self, task: Locomotion) -> None:
        self.task = task.restorable
        self.name = task.name
        self.table = self.task.table
        self.single_precision = False
        self._physics = self.task.physics()

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        engine = self.task.vector(min(COLLECTING, samples))
        generator = np.random.default_rng(seed)
        observation, _ = engine.reset(seed=seed)
        taken = []
        for _ in range(-(-samples // engine.num_envs)):
            action = generator.uniform(self.task.action_low, self.task.action_high, engine.action_space.shape)
            if policy is not None:
                action = np.asarray(policy(observation), np.float64)
            following, reward, terminated, truncated, infos = engine.step(action)
            end = infos.get("final_obs", following)
            extras = {name: infos[name] for name in self.task.extras}
            taken.append(_rows(observation, action, reward, end, terminated, truncated, extras))
            observation = following
        engine.close()
        return _joined(taken, samples)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        before = self._physics.start(*self.task.restored(observation, extras))
        after = self._physics.advance(before, action)
        start, end = Moment.of(self._physics, before), Moment.of(self._physics, after)
        outcome = self.task.outcome(start, action, end)
        return Answer(self.task.observe(end), outcome.reward, outcome.terminated, outcome.extras)

    def in_contact(self, transition: Transition) -> Flags:
        begins, ends = (
            _touching(self.task.model, self.task.restored(np.asarray(observation), {})[0])
            for observation in (transition.observation, transition.next_observation)
        )
        return begins | ends


class JaxSimulator:
    """An environment written in JAX, in double precision."""

    def __init__(self, environment: JaxEnvironment) -> None:
        self.environment: Any = environment
        self.name = environment.name
        self.table = _numbered(len(environment.observation_low))
        self.single_precision = False

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        count = min(COLLECTING, samples)
        low, high = self.environment.action_low, self.environment.action_high
        generator = np.random.default_rng(seed)
        keys = jax.random.split(jax.random.key(seed), (-(-samples // count) + 1, count))
        reset, observe = jax.vmap(self.environment.reset), jax.vmap(self.environment.observe)
        states, taken = reset(keys[0]), []
        for key in keys[1:]:
            observation = np.asarray(observe(states), np.float64)
            action = generator.uniform(low, high, (count, len(low)))
            if policy is not None:
                action = np.asarray(policy(observation), np.float64)
            answer = self.ask(observation, {}, action)
            never = np.zeros(count, bool)
            following, reward, terminated, _ = answer
            taken.append(_rows(observation, action, reward, following, terminated, never, {}))
            restored = self._restore(answer.next_observation, {})
            states = jax.tree.map(partial(_where, answer.terminated), reset(key), restored)
        return _joined(taken, samples)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        with jax.enable_x64(True):
            states = self._restore(observation, extras)
            keys = jax.random.split(jax.random.key(0), len(observation))
            states, reward, terminated = jax.vmap(self.environment.step)(keys, states, action)
            following = jax.vmap(self.environment.observe)(states)
        return Answer(np.asarray(following), np.asarray(reward), np.asarray(terminated), {})

    def in_contact(self, transition: Transition) -> None:
        return None

    def _restore(self, observation: Rows, extras: Mapping[str, Rows]) -> Any:
        with jax.enable_x64(True):
            return jax.vmap(self.environment.restore)(jax.numpy.asarray(observation), dict(extras))


class GymSimulator:
    """Any Gymnasium environment with `restore`, one row after the other."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.name = type(getattr(env, "env", env)).__name__
        if not isinstance(env.observation_space, Box) or len(env.observation_space.shape) != 1:
            raise UserError(f"{self.name} must observe a vector, not {env.observation_space}: flatten it")
        self.table = getattr(env, "table", None) or _numbered(env.observation_space.shape[0])
        self.single_precision = env.observation_space.dtype == np.float32

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        self.env.action_space.seed(seed)
        observation, _ = self.env.reset(seed=seed)
        taken = []
        for _ in range(samples):
            action = self.env.action_space.sample()
            if policy is not None:
                action = np.asarray(policy(np.asarray(observation)[None]))[0]
            before = np.array(observation, np.float64)  # a copy: the environment may write over its own
            following, reward, terminated, truncated, info = self.env.step(action)
            after = np.array(following, np.float64)
            extras = {name: value[None] for name, value in _numbers(info).items()}
            step = (before, action, np.float64(reward), after, terminated, truncated)
            taken.append(_rows(*(np.array([part]) for part in step), extras))
            observation = self.env.reset()[0] if terminated or truncated else following
        return _joined(taken, samples)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        answers = []
        self.env.reset()
        for row in range(len(observation)):
            self.env.restore(observation[row], {name: values[row] for name, values in extras.items()})
            following, reward, terminated, _, info = self.env.step(action[row])
            answers.append((np.array(following, np.float64), reward, terminated, _numbers(info)))
        following, reward, terminated, infos = zip(*answers, strict=True)
        shared = set.intersection(*(set(info) for info in infos))
        found = {name: np.array([info[name] for info in infos]) for name in shared}
        return Answer(np.array(following), np.array(reward, np.float64), np.array(terminated), found)

    def in_contact(self, transition: Transition) -> Flags | None:
        return self.env.in_contact(transition) if isinstance(self.env, Probed) else None


class Probed:
    """One of Gymnasium's MuJoCo environments, with a `restore` that sets positions and velocities."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.table = observation_table(env)
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.reset, self.step = env.reset, env.step

    def restore(self, observation: Rows, extras: Mapping[str, Any]) -> None:
        """What is not observed is where the model puts it; the solver starts afresh."""
        del extras
        mujoco.mj_resetData(self.env.model, self.env.data)
        self.env.set_state(*self._state(observation))

    def in_contact(self, transition: Transition) -> Flags:
        starts, ends = (
            [self._state(observation)[0] for observation in observations]
            for observations in (transition.observation, transition.next_observation)
        )
        return _touching(self.env.model, starts) | _touching(self.env.model, ends)

    def _state(self, observation: Rows) -> tuple[Rows, Rows]:
        qpos, qvel = self.env.model.qpos0.copy(), np.zeros(self.env.model.nv)
        for value, quantity in zip(observation, self.table, strict=True):
            (qpos if quantity.kind == "qpos" else qvel)[quantity.address] = value
        return qpos, qvel


def _numbered(count: int) -> tuple[Quantity, ...]:
    return tuple(Quantity("reading", place, "", f"observation {place}", "") for place in range(count))


def _numbers(info: Mapping[str, Any]) -> dict[str, Rows]:
    """The numbers and arrays of numbers of an info, which are what a transition can carry along."""
    found = {name: np.asarray(value) for name, value in info.items()}
    return {name: value.astype(np.float64) for name, value in found.items() if value.dtype.kind in "biuf"}


def _touching(model: mujoco.MjModel, poses: Iterable[Rows]) -> Flags:
    """In which poses something touches."""
    data = mujoco.MjData(model)

    def touches(qpos: Rows) -> bool:
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        return bool(data.ncon)

    return np.array([touches(qpos) for qpos in poses])


def _where(flags: Flags, yes: Any, no: Any) -> Any:
    """Rows of one or the other."""
    return np.where(flags.reshape(-1, *(1,) * (np.ndim(yes) - 1)), yes, no)


def _rows(*fields: Any) -> Transition:
    """A transition of NumPy arrays."""
    return Transition(*fields)


def _joined(parts: list[Transition], samples: int) -> Transition:
    """One transition with `samples` rows."""
    joined: Transition = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:samples], *parts)
    return joined
