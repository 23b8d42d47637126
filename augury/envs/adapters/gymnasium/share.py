"""Some copies of an environment, side by side in one process: each is a row.

To Gymnasium's AsyncVectorEnv a share is one environment, whose observation has rows, as its reward has. So
a process steps many copies for one message, and no more processes run than there are cores.

Every episode has a seed of its own, which follows from its row's seed and its number. So an episode can be
played again up to any step, by its seed and its actions. That is how a run goes on where it was killed.

What an environment does wrong is told in the infos, as a `Failure`: Gymnasium would print its traceback.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector.utils import batch_space

from augury.envs.adapters.gymnasium import spaces, states

Numbers = npt.NDArray[Any]
FAILURE, RETURNS, ENDS, EXTRAS, REMARK = "failure", "returns", "ends", "extras", "remark"
"""Names of what the infos of a share hold."""


class Plan(NamedTuple):
    """How the episodes of all rows begin."""

    seeds: Numbers
    """Of rows."""
    episodes: Numbers
    """Numbers of the rows' episodes."""
    steps: Numbers
    """How many steps of the episodes are repeated."""
    actions: Numbers
    """Which actions are repeated, (rows, steps, …)."""
    states: dict[str, Numbers]
    """Where the steps lead, of environments that can be put there: then nothing is repeated. Else empty."""

    def rows(self, chosen: Any) -> Plan:
        """The same for some rows."""
        return Plan(
            self.seeds[chosen],
            self.episodes[chosen],
            self.steps[chosen],
            self.actions[chosen],
            {name: values[chosen] for name, values in self.states.items()},
        )


class Failure(NamedTuple):
    """What an environment did wrong."""

    line: str
    trace: str
    """The traceback where it raised an error; else empty."""


class _FailedError(Exception):
    """An environment did something wrong."""

    def __init__(self, line: str, trace: str = "") -> None:
        super().__init__(line)
        self.failure = Failure(line, trace)


class Copies(NamedTuple):
    """What every share must know."""

    called: str
    """The environment's name."""
    make: Callable[[], Any]
    """Gives a copy."""
    observation_space: Any
    action_space: Any
    extras: tuple[str, ...] = ()
    """Names of numbers in the infos."""
    autoreset: bool = True
    """Start again in the step that ends an episode; else a row then stands still."""


class Share(gymnasium.Env[Any, Any]):
    """Rows `0 … used - 1` of `count`; the others only fill up, so that all shares have the same size."""

    plan: Plan

    def __init__(self, copies: Copies, count: int, used: int) -> None:
        if multiprocessing.parent_process() is not None:
            # An interrupt from the keyboard reaches every process. The trainer decides when to stop.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._copies, self._used = copies, used
        self.observation_space = batch_space(copies.observation_space, count)
        self.action_space = _any_number(copies.action_space, count)
        self._parts = spaces.parts_of(copies.observation_space)
        self._seen = {name: np.zeros((count, *part.shape), part.dtype) for name, part in self._parts.items()}
        self._reward, self._returns = np.zeros(count), np.zeros(count)
        self._terminated, self._truncated = np.zeros(count, bool), np.zeros(count, bool)
        self._extras = np.zeros((count, len(copies.extras)), np.float32)
        self._steps = np.zeros(count, np.int64)
        self._envs: list[Any] = []
        self._remarked = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the episodes of the plan, and repeat their steps."""
        del seed, options
        try:
            self._seeds, self._episodes = self.plan.seeds.copy(), self.plan.episodes.copy()
            for row in range(self._used):
                if row == len(self._envs):
                    self._envs.append(self._asked(row, "making it", self._copies.make))
                self._begin(row)
                if self.plan.states:
                    self._put(row)
                    continue
                for action in self.plan.actions[row, : self.plan.steps[row]]:
                    self._move(row, action)
            self._check_numbers()
        except _FailedError as error:
            return self._observation(), {FAILURE: error.failure}
        return self._observation(), {RETURNS: self._returns.copy()}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every row, but those that stand still; of ended ones `ends` has the final observation."""
        infos: dict[str, Any] = {}
        self._reward[:] = 0
        try:
            for row in range(self._used):
                if not (self._terminated[row] or self._truncated[row]):
                    self._move(row, actions[row])
            self._check_numbers()
            terminated, truncated = self._terminated.copy(), self._truncated.copy()
            if not self._remarked and (remark := self._outside()):
                self._remarked, infos[REMARK] = True, remark
            over = np.flatnonzero(terminated | truncated)
            if self._copies.autoreset and over.size:
                infos[ENDS] = each_part(np.copy, self._observation())
                for row in over.tolist():
                    self._episodes[row] += 1
                    self._begin(row)
                self._check_numbers()
        except _FailedError as error:
            nothing = np.zeros_like(self._terminated)
            return self._observation(), self._reward, nothing, nothing, {FAILURE: error.failure}
        if self._copies.extras:
            infos[EXTRAS] = self._extras.copy()
        return self._observation(), self._reward.copy(), terminated, truncated, infos

    def states(self) -> dict[str, Any]:
        """The states of all rows, where environments give them; else empty."""
        if not (self._envs and all(states.has_state(env) for env in self._envs)):
            return {}
        try:
            return self._asked(self._used - 1, "get_state", self._stacked_states)
        except _FailedError as error:
            return {FAILURE: error.failure}

    def close(self) -> None:
        while self._envs:
            with suppress(Exception):  # nothing is lost that way
                self._envs.pop().close()

    def _stacked_states(self) -> dict[str, Numbers]:
        every = [states.state_of(env) for env in self._envs]
        every += every[-1:] * (len(self._steps) - self._used)
        return {name: np.stack([own[name] for own in every]) for name in every[0]}

    def _begin(self, row: int) -> None:
        """Start a row's episode."""
        self._steps[row], self._returns[row] = 0, 0
        self._terminated[row] = self._truncated[row] = False
        seed = episode_seed(self._seeds[row], self._episodes[row])
        started = self._asked(row, "reset", lambda: self._envs[row].reset(seed=seed))
        if not (isinstance(started, tuple) and len(started) == 2):
            raise self._failed(row, "reset gave no pair of observation and info")
        self._take(row, started[0])

    def _put(self, row: int) -> None:
        """Bring a row to the state of the plan."""
        own = {name: values[row] for name, values in self.plan.states.items()}
        self._steps[row] = self.plan.steps[row]
        self._asked(row, "set_state", lambda: states.put(self._envs[row], own, int(self._steps[row])))

    def _move(self, row: int, action: Any) -> None:
        """Step a row."""
        space = self._copies.action_space
        if isinstance(space, Discrete):
            own = space.start + np.int64(action)
        else:
            own = spaces.as_action(space, action).reshape(space.shape)
        self._steps[row] += 1
        outcome = self._asked(row, "step", lambda: self._envs[row].step(own))
        if not (isinstance(outcome, tuple) and len(outcome) == 5):
            raise self._failed(row, "step gave no observation, reward, terminated, truncated and info")
        observation, reward, terminated, truncated, info = outcome
        self._take(row, observation)
        self._reward[row] = self._number(row, "reward", reward)
        self._returns[row] += self._reward[row]
        self._terminated[row] = self._number(row, "terminated", terminated)
        self._truncated[row] = self._number(row, "truncated", truncated)
        for place, name in enumerate(self._copies.extras):
            self._extras[row, place] = self._number(row, f"info['{name}']", info.get(name, np.nan))

    def _number(self, row: int, name: str, value: Any) -> Any:
        """A single number, if it is one."""
        if isinstance(value, float | bool | np.floating | np.bool_):  # as nearly always
            return value
        if np.ndim(value) != 0:
            raise self._failed(row, f"{name} has shape {np.shape(value)}, and is not one number")
        if np.asarray(value).dtype.kind not in "biuf":
            raise self._failed(row, f"{name} is {value!r:.40}, which is no number")
        return value

    def _take(self, row: int, observation: Any) -> None:
        """Copy an observation of the right shape: environments may write the next into the same memory."""
        if complaint := spaces.lacking(self._copies.observation_space, observation):
            raise self._failed(row, complaint)
        for name, part in self._parts.items():
            value = observation[name] if name else observation
            if complaint := spaces.misfit(name, part, value):
                raise self._failed(row, complaint)
            self._seen[name][row] = value

    def _check_numbers(self) -> None:
        """All rows at once, which costs little."""
        fields = {spaces.field(name): values for name, values in self._seen.items()} | {
            "reward": self._reward
        }
        for name, values in fields.items():
            if found := spaces.not_finite(name, values):
                raise self._failed(*found)

    def _outside(self) -> str | None:
        """A line about a number outside of its space, where there is one."""
        for name, part in self._parts.items():
            if complaint := spaces.outside(name, part, self._seen[name][: self._used]):
                return f"{self._copies.called}: {complaint}"
        return None

    def _observation(self) -> Any:
        return self._seen if isinstance(self._copies.observation_space, Dict) else self._seen[""]

    def _asked(self, row: int, what: str, function: Callable[[], Any]) -> Any:
        """What a user's function gives; its error becomes a line."""
        try:
            return function()
        except Exception as error:
            raise self._failed(row, f"{what} raised {reason(error)}", traceback.format_exc()) from error

    def _failed(self, row: int, complaint: str, trace: str = "") -> _FailedError:
        seed = episode_seed(self._seeds[row], self._episodes[row])
        where = f"in step {self._steps[row]} of the episode with seed {seed}"
        return _FailedError(f"{self._copies.called}, {where}: {complaint}", trace)


def reason(error: Exception) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def episode_seed(seed: Any, episode: Any) -> int:
    """The seed of an episode, below 2^31, which every environment takes."""
    return int(np.random.SeedSequence((int(seed), int(episode))).generate_state(1)[0] >> 1)


def each_part(function: Callable[[Any], Any], observation: Any) -> Any:
    """Apply a function to an observation, or to each entry of a dict."""
    if isinstance(observation, dict):
        return {name: function(part) for name, part in observation.items()}
    return function(observation)


def _any_number(space: Any, count: int) -> Box:
    """A space for all rows' actions; what they are is checked elsewhere."""
    shape, dtype = ((), np.int32) if isinstance(space, Discrete) else (space.shape, np.float32)
    kind: Any = dtype
    return Box(-(2**31) + 1, 2**31 - 1, (count, int(np.prod(shape))) if shape else (count,), kind)
