"""The vector engine: a Gymnasium vector environment for MuJoCo tasks, simulated in C++ threads.

    control ← task.control(…, action)            what the actuators are told
    rows ← physics.advance(rows, control)        the simulator
    reward, terminated ← task.outcome(…)         the task, as arrays
    rows that ended ← a new start                in the same step; the true final observation is kept

The rows, and the goals of tasks that have some, are the whole state. What is random comes from each row's own
seed and number of episodes, so a row's history does not depend on the rows beside it, on the threads, or on
when it was saved and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from augury.envs.mujoco.physics import Physics, Rows, available_cores, columns
from augury.errors import UserError

Flags = npt.NDArray[np.bool_]
State = dict[str, npt.NDArray[Any]]
Observation = Any  # rows of numbers, or a dict of such


class Start(NamedTuple):
    """Where an episode begins; or episodes, one a row."""

    qpos: Rows
    qvel: Rows
    goal: Rows
    """What the task wants of this episode; empty where it always wants the same."""


class Moment(NamedTuple):
    """What a task sees of the simulation: one row for each environment."""

    qpos: Rows
    qvel: Rows
    readings: Rows
    goal: Rows

    @classmethod
    def of(cls, physics: Physics, rows: Rows, goals: Rows) -> Moment:
        at_qpos, at_qvel = columns(physics.model)
        return cls(rows[:, at_qpos], rows[:, at_qvel], rows[:, physics.first_reading :], goals)


class Outcome(NamedTuple):
    """What came of a step."""

    reward: Rows
    terminated: Flags
    extras: dict[str, npt.NDArray[Any]]
    """Named quantities beyond the observation; they are part of the step's info."""


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
        """What the actuators are told for the whole step."""

    def outcome(self, before: Moment, action: Rows, after: Moment) -> Outcome: ...

    def restored(self, observation: Observation, extras: Mapping[str, Rows]) -> Start:
        """Starts that look like these observations."""


class VectorEnvironment(VectorEnv):
    """Many copies of a task.

    With `autoreset` an environment that ended starts again in the same step (Gymnasium's SAME_STEP mode), and
    `infos["final_obs"]` holds its true final observation; the other infos are still those of the step that
    ended it. Without, it stands still, at its last observation and without reward, until it is reset.
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
        self._rows, self._goals = self._start(np.arange(count))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start every episode anew; with `options={"reset_mask": …}` only some."""
        mask = (options or {}).get("reset_mask")
        mask = np.ones(self.num_envs, bool) if mask is None else np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise UserError(f"reset_mask must be {self.num_envs} booleans, not {mask.dtype} of {mask.shape}")
        for row, own in enumerate(_seed_list(seed, self.num_envs)):
            if mask[row] and own is not None:
                self._seeds[row], self._episodes[row] = own, 0
        self._restart(np.flatnonzero(mask))
        return self.task.observe(self._now()), {}

    def step(self, actions: Any) -> tuple[Observation, Rows, Flags, Flags, dict[str, Any]]:
        """Advance every environment by one step, but for those that stand still."""
        actions = np.asarray(actions, np.float64)
        if actions.shape != self.action_space.shape:
            raise UserError(f"actions must have shape {self.action_space.shape}, not {actions.shape}")
        if not np.isfinite(actions).all():
            raise UserError("actions must be finite numbers")
        moves = ~(self._terminated | self._truncated)
        moving: Any = slice(None) if moves.all() else np.flatnonzero(moves)
        reward = np.zeros(self.num_envs)
        infos: dict[str, Any] = {}
        if moves.any():
            before, goals = self._rows[moving], self._goals[moving]
            start = Moment.of(self._physics, before, goals)
            after = self._physics.advance(before, self.task.control(start, actions[moving]))
            # MuJoCo stops where numbers grow too large: such an episode ends where it was.
            stuck = after[:, 0] - before[:, 0] < 0.999 * self._physics.seconds
            after[stuck] = before[stuck]
            outcome = self.task.outcome(start, actions[moving], Moment.of(self._physics, after, goals))
            self._rows[moving] = after
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
            starts = self.task.observe(Moment.of(self._physics, self._rows[ended], self._goals[ended]))
            _each(lambda seen, new: seen.__setitem__(ended, new), observation, starts)
        return observation, reward, terminated, truncated, infos

    def restore(self, observation: Any, extras: Mapping[str, npt.ArrayLike] | None = None) -> None:
        """Put every environment where it looks like this, as if an episode began there."""
        observation = _each(lambda values: np.asarray(values, np.float64), observation)
        expected, given = _each(np.shape, self.observation_space.sample()), _each(np.shape, observation)
        if given != expected:
            raise UserError(f"observations must have shape {expected}, not {given}")
        named = {name: np.asarray(values, np.float64) for name, values in (extras or {}).items()}
        self.put(*self.task.restored(observation, named))

    def put(self, qpos: Rows, qvel: Rows, goal: Rows | None = None) -> None:
        """Put every environment at these positions and velocities, as if an episode began there."""
        self._rows = self._physics.start(qpos, qvel)
        self._goals = self._goals if goal is None else goal
        self._steps[:], self._terminated[:], self._truncated[:] = 0, False, False

    @property
    def moment(self) -> Moment:
        """Where every environment is."""
        return Moment.of(self._physics, self._rows.copy(), self._goals.copy())

    def state(self) -> State:
        """Everything, for `load_state` to go on from in the middle of an episode."""
        return {name: getattr(self, f"_{name}").copy() for name in _STATE}

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        for name in _STATE:
            own = getattr(self, f"_{name}")
            if name not in state or state[name].shape != own.shape:
                raise UserError(f"this is not a state of {self.num_envs} such environments: see its '{name}'")
            setattr(self, f"_{name}", state[name].astype(own.dtype))

    def close_extras(self, **options: Any) -> None:
        self._physics.close()

    def _now(self) -> Moment:
        return Moment.of(self._physics, self._rows, self._goals)

    def _start(self, chosen: npt.NDArray[np.intp]) -> tuple[Rows, Rows]:
        """Rows and goals at the start of the chosen environments' current episodes."""
        starts = [
            self.task.start(np.random.default_rng([self._seeds[row], self._episodes[row]])) for row in chosen
        ]
        qpos, qvel, goals = (np.stack(parts) for parts in zip(*starts, strict=True))
        return self._physics.start(qpos, qvel), goals

    def _restart(self, chosen: npt.NDArray[np.intp]) -> None:
        if chosen.size:
            self._rows[chosen], self._goals[chosen] = self._start(chosen)
            self._episodes[chosen] += 1
            self._steps[chosen] = 0
            self._terminated[chosen] = self._truncated[chosen] = False


def _each(function: Callable[..., Any], observation: Observation, *others: Observation) -> Any:
    """A function of an observation's rows; of each entry's where it is a dict."""
    if isinstance(observation, dict):
        return {name: function(rows, *(o[name] for o in others)) for name, rows in observation.items()}
    return function(observation, *others)


def _seed_list(seed: Any, count: int) -> Sequence[int | None]:
    """A seed for every environment: one more than the last's, where a single one is given."""
    if seed is None:
        return [None] * count
    seeds = range(int(seed), int(seed) + count) if isinstance(seed, int | np.integer) else list(seed)
    if len(seeds) != count:
        raise UserError(f"{len(seeds)} seeds for {count} environments")
    for own in seeds:
        if own is not None and not 0 <= own < 2**64:
            raise UserError(f"a seed must be at least 0 and below 2^64, not {own}")
    return seeds


_STATE = ("rows", "goals", "seeds", "episodes", "steps", "terminated", "truncated")
