"""A vector environment of any kind as the trainer steps it.

The trainer wants rows that end to start again in the same step, with their final observation kept. A vector
environment in the mode SAME_STEP does so by itself. In the other modes rows that ended are reset by
Gymnasium's option "reset_mask", which its own vector environments know.

If the vector environment has a pair `state()` and `load_state(state)`, whose state is a dict of arrays, a run
that was killed goes on exactly. Without, its episodes begin anew, and `load_state` tells the trainer.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from augury.envs.adapters.gymnasium import spaces
from augury.envs.adapters.gymnasium.share import Numbers, each_part, episode_seed, reason
from augury.envs.vector_inputs import refuse_other_state
from augury.errors import RaisedElsewhere, UserError

_VECTOR = "vector."


class VectorEngine:
    """A `HostEngine` around a vector environment."""

    def __init__(self, called: str, vector: Any, *, horizon: int, autoreset: bool = True) -> None:
        self.num_envs = count = vector.num_envs
        self._called, self._vector, self._horizon, self._autoreset = called, vector, horizon, autoreset
        self._same_step = vector.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP
        self._space = vector.single_observation_space
        self._parts = spaces.parts_of(batch_space(self._space, count))
        self._seeds, self._steps = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        self._restarts = np.zeros(1, np.int64)
        # Which engine this is, and how often it was called: by these it knows its present state again.
        self._moment = np.array([np.random.SeedSequence().entropy % 2**62, 0])  # type: ignore[operator]
        self._still = np.zeros(count, bool)
        self._ended = np.zeros((2, count), bool)
        self._observation: Any = None

    def reset(self, *, seed: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        """Start new episodes."""
        self._seeds, self._restarts[:] = np.array(seed, np.uint64), 0
        return self._begun(), {}

    def step(self, actions: Any) -> tuple[Any, Numbers, Numbers, Numbers, dict[str, Any]]:
        """Step every row; what those give that stand still is ignored."""
        self._moment[1] += 1
        self._steps += 1
        given = self._asked("step", lambda: self._vector.step(self._own(actions)))
        observation, (reward, *ended), infos = self._taken(given[0]), given[1:4], given[4]
        if np.shape(reward) != (self.num_envs,):
            raise self._failed(f"reward has shape {np.shape(reward)}, not {(self.num_envs,)}")
        self._check_numbers("reward", np.asarray(reward))
        over = np.logical_or(*np.asarray(ended, bool))
        if (~over & ~self._still & (self._steps >= self._horizon)).any():
            raise self._failed(f"an episode goes on after its time limit, {self._horizon} steps")
        ends = each_part(np.copy, observation)
        if over.any():
            observation = self._restarted(observation, ends, over, infos)
        reward, ended = np.where(self._still, 0, reward), np.where(self._still, self._ended, ended)
        if not self._autoreset:
            shown = _chosen(self._still, self._observation, ends)
            self._still, self._ended, self._observation = self._still | over, ended, shown
            return shown, reward, *ended, {}
        self._steps[over], self._observation = 0, observation
        return observation, reward, *ended, {"final_obs": ends, "_final_obs": over} if over.any() else {}

    def state(self) -> dict[str, Numbers]:
        """Where all rows are, as far as the vector environment tells."""
        own = {"seeds": self._seeds, "steps": self._steps, "restarts": self._restarts, "moment": self._moment}
        told = self._vector.state() if self._can_return else {}
        return {
            **{name: values.copy() for name, values in own.items()},
            **{f"{_VECTOR}{name}": values for name, values in told.items()},
        }

    def load_state(self, state: Mapping[str, Numbers]) -> Any:
        """Go on where `state` was; returns what is observed only if episodes had to begin anew."""
        refuse_other_state(state, {"seeds": self._seeds, "steps": self._steps, "moment": self._moment})
        if np.array_equal(state["moment"], self._moment):
            return None
        self._seeds, self._steps, self._restarts = (state[name] for name in ("seeds", "steps", "restarts"))
        if self._can_return:
            told = {
                name.removeprefix(_VECTOR): own for name, own in state.items() if name.startswith(_VECTOR)
            }
            self._vector.load_state(told)
            return None
        self._restarts = self._restarts + 1
        return self._begun()

    def close(self) -> None:
        self._vector.close()

    @property
    def _can_return(self) -> bool:
        return hasattr(self._vector, "state") and hasattr(self._vector, "load_state")

    def _begun(self) -> Any:
        """What is observed at the start of all episodes."""
        self._moment[1] += 1
        self._steps, self._still[:], self._ended[:] = np.zeros_like(self._steps), False, False
        seeds = [episode_seed(seed, self._restarts[0]) for seed in self._seeds]
        try:
            observation = self._vector.reset(seed=seeds)[0]
        except (TypeError, ValueError, gymnasium.error.Error):  # it takes one seed for all rows
            observation = self._asked("reset", lambda: self._vector.reset(seed=seeds[0]))[0]
        self._observation = self._taken(observation)
        return self._observation

    def _restarted(self, observation: Any, ends: Any, over: Numbers, infos: Mapping[str, Any]) -> Any:
        """What is observed after the rows that ended began anew; their ends are written to `ends`."""
        if self._same_step:
            for row in np.flatnonzero(over).tolist():
                _write(ends, row, _row(infos["final_obs"], row))
            return observation
        options = {"reset_mask": over.copy()}
        begun = self._taken(self._asked("reset", lambda: self._vector.reset(options=options))[0])
        if not all(
            np.array_equal(one[~over], other[~over])
            for one, other in zip(_arrays(begun), _arrays(observation), strict=True)
        ):
            raise UserError(
                f"{self._called} cannot reset only the rows that ended: make it with autoreset_mode "
                'SAME_STEP, or let its reset obey options["reset_mask"]'
            )
        return begun

    def _own(self, actions: Numbers) -> Numbers:
        space = self._vector.single_action_space
        if isinstance(space, Discrete):
            return actions.astype(np.int64) + space.start
        return spaces.as_action(space, actions)

    def _taken(self, observation: Any) -> Any:
        """A copy of an observation of all rows, if it is one."""
        complaint = spaces.lacking(self._space, observation)
        for name, part in {} if complaint else self._parts.items():
            complaint = complaint or spaces.misfit(name, part, observation[name] if name else observation)
        if complaint:
            raise self._failed(complaint)
        for name in self._parts:
            self._check_numbers(spaces.field(name), np.asarray(observation[name] if name else observation))
        return each_part(np.array, observation)

    def _check_numbers(self, name: str, values: Numbers) -> None:
        if found := spaces.not_finite(name, values):
            row, complaint = found
            raise self._failed(f"{complaint} (row {row})")

    def _asked(self, what: str, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except Exception as error:
            trace = RaisedElsewhere(traceback.format_exc())
            raise self._failed(f"{what} raised {reason(error)}") from trace

    def _failed(self, complaint: str) -> UserError:
        return UserError(f"{self._called}, in step {self._moment[1]}: {complaint}")


def _arrays(observation: Any) -> list[Numbers]:
    return list(observation.values()) if isinstance(observation, dict) else [observation]


def _row(observation: Any, row: int) -> Any:
    """One row: of arrays, or of objects as Gymnasium gives final observations."""
    return each_part(lambda part: part[row], observation)


def _write(observation: Any, row: int, values: Any) -> None:
    if isinstance(observation, dict):
        for name, part in observation.items():
            part[row] = values[name]
    else:
        observation[row] = values


def _chosen(mask: Numbers, one: Any, other: Any) -> Any:
    """Rows of one observation where the mask says so, else of the other."""
    if isinstance(one, dict):
        return {name: _chosen(mask, one[name], other[name]) for name in one}
    return np.where(mask[:, None], one, other)
