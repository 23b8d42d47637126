"""Copies of an environment as the trainer steps them: with seeds, ends of episodes, and a state.

The state is the seed of every row, the number of its episode and the actions since that began; of a row that
has just begun one, those of the episode before. To go on there, environments that give and take their state
are put there; of others the episodes are played again. An environment that then observes or earns anything
else does not follow from seeds and actions alone, but from earlier episodes, for example: all its rows begin
new episodes, and `load_state` tells the trainer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from augury.envs.adapters.gymnasium.share import Numbers, Plan
from augury.envs.adapters.gymnasium.workers import AllRows
from augury.envs.vector_inputs import refuse_other_state

_STATE = "state."


class SeededEngine:
    """A `HostEngine` of rows, each of which is an environment."""

    def __init__(
        self, rows: AllRows, actions: Numbers, *, extras: Sequence[str] = (), autoreset: bool = True
    ):
        """`actions` has room for those of an episode of every row: (rows, horizon, …)."""
        self.num_envs = count = len(actions)
        self._rows, self._extras, self._autoreset = rows, tuple(extras), autoreset
        self._seeds = np.zeros(count, np.uint64)
        self._episodes, self._steps = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._returns = np.zeros(count)
        self._last_steps, self._last_returns = np.zeros(count, np.int64), np.zeros(count)
        """Of the episodes before those that have just begun; their actions are not written over yet."""
        self._actions = actions
        self._observation: Any = None

    def reset(self, *, seed: Sequence[int]) -> tuple[Any, dict[str, Any]]:
        """Start new episodes."""
        self._seeds = np.array(seed, np.uint64)
        self._episodes[:] = 0
        return self._begun_anew(), {}

    def step(self, actions: Any) -> tuple[Any, Numbers, Numbers, Numbers, dict[str, Any]]:
        """Step every environment, but those that stand still."""
        stepped = self._rows.step(actions)
        if stepped.remark:
            print(f"warning: {stepped.remark}", file=sys.stderr)
        over = stepped.terminated | stepped.truncated
        infos: dict[str, Any] = dict(zip(self._extras, stepped.extras.T, strict=True))
        if stepped.ends is not None:
            infos |= {"final_obs": stepped.ends, "_final_obs": over}
        if self._autoreset:
            self._actions[np.arange(self.num_envs), self._steps] = actions
            steps, returns = self._steps + 1, self._returns + stepped.reward
            self._last_steps, self._last_returns = np.where(over, steps, 0), np.where(over, returns, 0)
            self._steps, self._returns = np.where(over, 0, steps), np.where(over, 0, returns)
            self._episodes = self._episodes + over
        self._observation = stepped.observation
        return stepped.observation, stepped.reward, stepped.terminated, stepped.truncated, infos

    def state(self) -> dict[str, Numbers]:
        """Where all episodes are, how they came there, and what is observed."""
        return {
            "seeds": self._seeds.copy(),
            "episodes": self._episodes.copy(),
            "steps": self._steps.copy(),
            "returns": self._returns.copy(),
            "last_steps": self._last_steps.copy(),
            "last_returns": self._last_returns.copy(),
            "actions": self._actions[:, : max(self._steps.max(), self._last_steps.max())].copy(),
            **_named(self._observation),
            **({f"{_STATE}{name}": values for name, values in self._rows.states().items()}),
        }

    def load_state(self, state: Mapping[str, Numbers]) -> Any:
        """Go on where `state` was; returns what is observed only if episodes had to begin anew."""
        if self._observation is not None and _same(state, self.state()):
            return None
        refuse_other_state(state, {"seeds": self._seeds, "episodes": self._episodes, "steps": self._steps})
        self._seeds, self._episodes, self._steps = (state[name] for name in ("seeds", "episodes", "steps"))
        self._actions[:, : state["actions"].shape[1]] = state["actions"]
        states = {name.removeprefix(_STATE): own for name, own in state.items() if name.startswith(_STATE)}
        none = np.zeros_like(self._steps)  # a state of an earlier version does not tell
        self._last_steps, self._last_returns = (
            state.get(name, none) for name in ("last_steps", "last_returns")
        )
        follows = bool(states) or self._follows_from_seeds()
        plan = Plan(self._seeds, self._episodes, self._steps, self._actions, states)
        self._observation, self._returns = self._rows.begin(plan)
        if states:
            self._observation, self._returns = _unnamed(state), state["returns"]
        if follows and _same(state, self.state()):
            return None
        self._episodes = self._episodes + 1
        return self._begun_anew()

    def close(self) -> None:
        self._rows.close()

    def _follows_from_seeds(self) -> bool:
        """Whether episodes that have just ended earn the same again: a new one tells nothing yet."""
        ended = self._last_steps > 0
        if not ended.any():
            return True
        before = Plan(self._seeds, self._episodes - ended, self._last_steps, self._actions, {})
        _, returns = self._rows.begin(before)
        return np.array_equal(returns[ended], self._last_returns[ended])

    def _begun_anew(self) -> Any:
        """What is observed at the start of every row's episode."""
        self._steps, self._returns = np.zeros_like(self._steps), np.zeros_like(self._returns)
        self._last_steps, self._last_returns = np.zeros_like(self._steps), np.zeros_like(self._returns)
        plan = Plan(self._seeds, self._episodes, self._steps, self._actions[:, :0], {})
        self._observation, _ = self._rows.begin(plan)
        return self._observation


def _named(observation: Any) -> dict[str, Numbers]:
    """An observation's parts by name; none before the first episode."""
    if isinstance(observation, dict):
        return {f"observation.{name}": values.copy() for name, values in observation.items()}
    return {} if observation is None else {"observation": observation.copy()}


def _unnamed(state: Mapping[str, Numbers]) -> Any:
    """The observation of a state."""
    if "observation" in state:
        return state["observation"].copy()
    prefix = "observation."
    return {name.removeprefix(prefix): own.copy() for name, own in state.items() if name.startswith(prefix)}


def _same(one: Mapping[str, Numbers], other: Mapping[str, Numbers]) -> bool:
    """Whether two states are equal to the last bit."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
