"""The vector engine: a Gymnasium vector environment for MuJoCo tasks, simulated in C++ threads.

    control ← task.control(…, action)            what the actuators are given
    rows ← physics.advance(rows, control)        the simulator
    reward, terminated ← task.outcome(…)         the task, as arrays
    rows that ended ← a new start                in the same step; the true final observation is kept

The rows, the last actions, and the goals of tasks that have some, are the whole state. Random numbers come
from each row's own seed and number of episodes, so that a row's history does not depend on the other rows, on
the threads, or on when it was saved and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.physics import Physics, Rows, available_cores, columns
from augury.envs.vector_inputs import checked_actions, checked_mask, refuse_other_state, seed_list
from augury.errors import UserError

Flags = npt.NDArray[np.bool_]
State = dict[str, npt.NDArray[Any]]
Observation = Any  # rows of numbers, or a dict of them


class Start(NamedTuple):
    """The start of an episode, or of many, one a row."""

    qpos: Rows
    qvel: Rows
    goal: Rows
    """The goal of this episode; empty where the task has none."""
    action: Rows | None = None
    """The action before it; zeros where none is given, as in an episode's first step."""


class Moment(NamedTuple):
    """What a task can read of the simulation: one row for each environment."""

    qpos: Rows
    qvel: Rows
    readings: Rows
    goal: Rows
    action: Rows
    """The action that led here; zeros at the start of an episode."""
    anatomy: Anatomy
    """Of the model: which of its numbers are what."""

    @classmethod
    def of(cls, physics: Physics, rows: Rows, goals: Rows, actions: Rows) -> Moment:
        at_qpos, at_qvel = columns(physics.model)
        readings = rows[:, physics.first_reading :]
        return cls(rows[:, at_qpos], rows[:, at_qvel], readings, goals, actions, physics.anatomy)


class Outcome(NamedTuple):
    """The result of a step."""

    reward: Rows
    terminated: Flags
    extras: dict[str, npt.NDArray[Any]]
    """Named quantities beyond the observation, which become part of the step's info."""


class Task(Protocol):
    """What the engine simulates, as pure functions of arrays."""

    @property
    def horizon(self) -> int: ...

    @property
    def observation_space(self) -> Box | Dict: ...

    @property
    def action_space(self) -> Box: ...

    def physics(self, threads: int | None) -> Physics: ...

    def start(self, generator: np.random.Generator) -> Start:
        """The start of an episode."""

    def observe(self, moment: Moment) -> Observation: ...

    def control(self, moment: Moment, action: Rows) -> Rows:
        """The actuators' inputs, constant for the whole step."""

    def outcome(self, before: Moment, action: Rows, after: Moment) -> Outcome: ...

    def restored(self, observation: Observation, extras: Mapping[str, Rows]) -> Start:
        """Starts that are observed like this."""


class VectorEnvironment(VectorEnv):
    """Many copies of a task.

    With `autoreset` an environment that ended starts again in the same step (Gymnasium's SAME_STEP mode), and
    `infos["final_obs"]` holds its true final observation; the other infos are those of the step that ended
    it. Without `autoreset` it stands still until it is reset: it keeps its last observation and earns no
    reward.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        count: int = 1,
        *,
        autoreset: bool = True,
        threads: int | None = None,
        horizon: float | None = None,
    ) -> None:
        if count < 1:
            raise UserError(f"a vector environment needs at least 1 environment, not {count}")
        self.task = task
        self.num_envs = count
        self.autoreset = autoreset
        self.horizon = task.horizon if horizon is None else horizon
        mode = AutoresetMode.SAME_STEP if autoreset else AutoresetMode.DISABLED
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        self.single_observation_space, self.single_action_space = task.observation_space, task.action_space
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._physics = task.physics(min(available_cores(), count) if threads is None else threads)
        self._seeds = np.random.SeedSequence().generate_state(count, np.uint64)
        self._episodes = np.zeros(count, np.int64)
        self._steps = np.zeros(count, np.int64)
        self._terminated = np.zeros(count, bool)
        self._truncated = np.zeros(count, bool)
        self._actions = np.zeros((count, *task.action_space.shape))
        self._rows, self._goals = self._start(np.arange(count))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start new episodes; with `options={"reset_mask": …}` only in the environments of the mask."""
        mask = checked_mask(options, self.num_envs)
        for row, own in enumerate(seed_list(seed, self.num_envs)):
            if mask[row] and own is not None:
                self._seeds[row], self._episodes[row] = own, 0
        self._restart(np.flatnonzero(mask))
        return self.task.observe(self._now()), {}

    def step(self, actions: Any) -> tuple[Observation, Rows, Flags, Flags, dict[str, Any]]:
        """Advance every environment by one step, except those that stand still."""
        actions = checked_actions(np.asarray(actions, np.float64), self.action_space)
        moves = ~(self._terminated | self._truncated)
        moving: Any = slice(None) if moves.all() else np.flatnonzero(moves)
        reward = np.zeros(self.num_envs)
        infos: dict[str, Any] = {}
        if moves.any():
            before, goals, action = self._rows[moving], self._goals[moving], actions[moving]
            start = Moment.of(self._physics, before, goals, self._actions[moving])
            after = self._physics.advance(before, self.task.control(start, action))
            # MuJoCo stops when numbers grow too large. Such an episode ends in the state before the step.
            stuck = after[:, 0] - before[:, 0] < 0.999 * self._physics.seconds
            if stuck.any():
                after[stuck] = before[stuck]
            outcome = self.task.outcome(start, action, Moment.of(self._physics, after, goals, action))
            self._rows[moving], self._actions[moving] = after, action
            self._steps[moving] += 1
            reward[moving] = outcome.reward
            self._terminated[moving] = outcome.terminated | stuck
            self._truncated = ~self._terminated & (self._steps >= self.horizon)
            for name, values in outcome.extras.items():
                infos[name], infos[f"_{name}"] = np.zeros(self.num_envs, values.dtype), moves
                infos[name][moving] = values

        observation = self.task.observe(self._now())
        terminated, truncated = self._terminated.copy(), self._truncated.copy()
        over = terminated | truncated
        if self.autoreset and over.any():
            final = {name: values for name, values in infos.items() if not name.startswith("_")}
            infos |= {"final_obs": _each(np.copy, observation), "_final_obs": over}
            infos |= {"final_info": final, "_final_info": over}
            ended = np.flatnonzero(over)
            self._restart(ended)
            starts = self.task.observe(self._at(ended))
            _each(lambda rows, new: rows.__setitem__(ended, new), observation, starts)
        return observation, reward, terminated, truncated, infos

    def restore(self, observation: Any, extras: Mapping[str, npt.ArrayLike] | None = None) -> None:
        """Bring every environment to a state that is observed like this, as if an episode began there."""
        observation = _each(lambda values: np.asarray(values, np.float64), observation)
        expected, given = _each(np.shape, self.observation_space.sample()), _each(np.shape, observation)
        if given != expected:
            raise UserError(f"observations must have shape {expected}, not {given}")
        named = {name: np.asarray(values, np.float64) for name, values in (extras or {}).items()}
        self.put(*self.task.restored(observation, named))

    def put(self, qpos: Rows, qvel: Rows, goal: Rows | None = None, action: Rows | None = None) -> None:
        """Set every environment's positions and velocities, as if an episode began there."""
        self._rows = self._physics.start(qpos, qvel)
        self._goals = self._goals if goal is None else np.array(goal)
        self._actions = np.zeros_like(self._actions) if action is None else np.array(action)
        self._steps[:], self._terminated[:], self._truncated[:] = 0, False, False

    @property
    def moment(self) -> Moment:
        """The present positions, velocities, readings, goals and last actions of all environments."""
        return Moment.of(self._physics, self._rows.copy(), self._goals.copy(), self._actions.copy())

    def state(self) -> State:
        """Everything that `load_state` needs to continue, also in the middle of an episode."""
        return {name: getattr(self, f"_{name}").copy() for name in _STATE}

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned."""
        own = self.state()
        refuse_other_state(state, own)
        for name, values in own.items():
            setattr(self, f"_{name}", state[name].astype(values.dtype))

    def close_extras(self, **options: Any) -> None:
        self._physics.close()

    def _now(self) -> Moment:
        return self._at(slice(None))

    def _at(self, chosen: Any) -> Moment:
        return Moment.of(self._physics, self._rows[chosen], self._goals[chosen], self._actions[chosen])

    def _start(self, chosen: npt.NDArray[np.intp]) -> tuple[Rows, Rows]:
        """Rows and goals at the start of the chosen environments' current episodes."""
        starts = [
            self.task.start(np.random.default_rng([self._seeds[row], self._episodes[row]])) for row in chosen
        ]
        qpos, qvel, goals = (np.stack(parts) for parts in zip(*(one[:3] for one in starts), strict=True))
        return self._physics.start(qpos, qvel), goals

    def _restart(self, chosen: npt.NDArray[np.intp]) -> None:
        if chosen.size:
            self._rows[chosen], self._goals[chosen] = self._start(chosen)
            self._episodes[chosen] += 1
            self._steps[chosen] = 0
            self._actions[chosen] = 0
            self._terminated[chosen] = self._truncated[chosen] = False


def _each(function: Callable[..., Any], observation: Observation, *others: Observation) -> Any:
    """Apply a function to an observation's rows, or to those of each entry if it is a dict."""
    if isinstance(observation, dict):
        return {name: function(rows, *(o[name] for o in others)) for name, rows in observation.items()}
    return function(observation, *others)


_STATE = ("rows", "goals", "actions", "seeds", "episodes", "steps", "terminated", "truncated")
