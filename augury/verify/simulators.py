"""Simulators that can be asked what comes after an observation and an action.

An environment joins by one method, `restore(observation, extras)`, which puts it where it looks like that.
The extras are the numbers in the info of the step that began there. One that goes by them may return the dict
that is then observed, for the observation to be compared with.
MuJoCo environments get it for free: ours, and Gymnasium's where all they observe is positions and velocities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import gymnasium
import jax
import mujoco
import numpy as np
from gymnasium.spaces import Box, Dict

from augury import envs
from augury.envs.base import StepsInJax
from augury.envs.mujoco.locomotion import Locomotion
from augury.envs.mujoco.probe import is_mujoco, observation_table, unwrapped
from augury.envs.panda.reference.panda_gym import PandaGym
from augury.envs.panda.tasks import PandaTask
from augury.errors import UserError
from augury.transition import Observation, Transition
from augury.verify.base import (
    COLLECTING,
    Answer,
    Flags,
    Policy,
    Rows,
    Simulator,
    joined,
    one_step,
    played,
    rows,
)
from augury.verify.episodes import with_later_goals
from augury.verify.observations import entries_table, numbered, numbered_entries, taken
from augury.verify.panda import PandaGymSimulator, PandaSimulator

__all__ = ["GymSimulator", "JaxSimulator", "Probed", "TaskSimulator", "simulator_of"]


def simulator_of(environment: Any) -> Simulator:
    """The simulator of an environment: one by name, one of ours, or a Gymnasium environment."""
    if isinstance(environment, str):
        environment = envs.make(environment)
    if isinstance(environment, gymnasium.Env):
        environment = unwrapped(environment)
    if isinstance(environment, Locomotion):
        return TaskSimulator(environment)
    if isinstance(environment, PandaTask):
        return PandaSimulator(environment)
    if isinstance(environment, PandaGym):
        return PandaGymSimulator(environment)
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

        def act(observation: Observation) -> Rows:
            action = generator.uniform(self.task.action_low, self.task.action_high, engine.action_space.shape)
            return action if policy is None else np.asarray(policy(observation), np.float64)

        rounds = played(engine, -(-samples // engine.num_envs), act, seed, extras=self.task.extras)
        engine.close()
        return joined(rounds, samples)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        start = self.task.restored(observation, extras)
        _, ends, outcome = one_step(self.task, self._physics, start, action)
        return Answer(self.task.observe(ends), outcome.reward, outcome.terminated, outcome.extras)

    def in_contact(self, transition: Transition) -> Flags:
        begins, ends = (
            _touching(self.task.model, self.task.restored(np.asarray(observation), {}).qpos)
            for observation in (transition.observation, transition.next_observation)
        )
        return begins | ends


class JaxSimulator:
    """An environment written in JAX, in double precision."""

    def __init__(self, environment: StepsInJax) -> None:
        self.environment: Any = environment
        self.name = environment.name
        self.table = numbered(len(environment.observation_low))
        self.single_precision = False

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        count = min(COLLECTING, samples)
        low, high = self.environment.action_low, self.environment.action_high
        generator = np.random.default_rng(seed)
        keys = jax.random.split(jax.random.key(seed), (-(-samples // count) + 1, count))
        reset, observe = jax.vmap(self.environment.reset), jax.vmap(self.environment.observe)
        states, rounds = reset(keys[0]), []
        for key in keys[1:]:
            observation = np.asarray(observe(states), np.float64)
            action = generator.uniform(low, high, (count, len(low)))
            if policy is not None:
                action = np.asarray(policy(observation), np.float64)
            answer = self.ask(observation, {}, action)
            never = np.zeros(count, bool)
            following, reward, terminated, *_ = answer
            rounds.append(rows(observation, action, reward, following, terminated, never, {}))
            restored = self._restore(answer.next_observation, {})
            states = jax.tree.map(partial(_where, answer.terminated), reset(key), restored)
        return joined(rounds, samples)

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
        space = env.observation_space
        parts: dict[str, Any] = space.spaces if isinstance(space, Dict) else {"": space}
        if not all(isinstance(part, Box) and len(part.shape) == 1 for part in parts.values()):
            raise UserError(
                f"{self.name} must observe a vector or a dict of vectors, not {space}: flatten it"
            )
        sizes = {name: part.shape[0] for name, part in parts.items()}
        if isinstance(space, Dict):
            self.table = entries_table(numbered_entries(sizes))
        else:
            self.table = getattr(env, "table", None) or numbered(sizes[""])
        self.single_precision = any(part.dtype == np.float32 for part in parts.values())
        self._has_goals = "achieved_goal" in parts

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        self.env.action_space.seed(seed)
        observation, _ = self.env.reset(seed=seed)
        rounds = []
        for _ in range(samples):
            before = taken(observation)
            action = self.env.action_space.sample()
            if policy is not None:
                action = np.asarray(policy(_one_row(observation)))[0]
            following, reward, terminated, truncated, info = self.env.step(action)
            outcome = (np.float64(reward), taken(following), terminated, truncated)
            step = (before, np.array(action), *outcome, _numbers(info))
            rounds.append(rows(*(_one_row(part) for part in step)))
            observation = self.env.reset()[0] if terminated or truncated else following
        if self._has_goals:
            rounds = with_later_goals(rounds, np.random.default_rng(seed))
        return joined(rounds)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        self.env.reset()
        answers, seen, infos = [], [], []
        for row in range(len(action)):
            shown = self.env.restore(_row(observation, row), _row(dict(extras), row))
            if isinstance(shown, dict):
                seen.append(taken(shown))
            following, reward, terminated, _, info = self.env.step(action[row])
            answers.append((taken(following), np.float64(reward), np.bool_(terminated)))
            infos.append(_numbers(info))
        shared = set.intersection(*(set(info) for info in infos))
        found = {name: np.array([info[name] for info in infos]) for name in shared}
        following, reward, terminated = _stacked(answers)
        return Answer(following, reward, terminated, found, _stacked(seen) if seen else None)

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


def _one_row(values: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], values)


def _row(values: Any, row: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[row], values)


def _stacked(rows: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.array(leaves), *rows)


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
