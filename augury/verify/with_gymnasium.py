"""Gymnasium's environments, one row after the other.

An environment needs a method `restore(observation, extras)`, which brings it to a state with this
observation. The extras are the numbers in the info of the step that began there. A `restore` that uses them
may return the dict that is then observed, which is compared with the observation. MuJoCo environments need no
`restore` where all they observe is positions and velocities, nor do those of classic control.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import mujoco
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from augury.envs.mujoco.probe import is_mujoco, observation_table, set_state
from augury.errors import UserError
from augury.transition import Transition
from augury.verify.base import (
    PLAYING,
    Answer,
    Bounds,
    Flags,
    Played,
    Policy,
    Rows,
    by_policy,
    joined,
    numbers,
    rows,
    shared,
)
from augury.verify.behaviour import Actions, Mixture
from augury.verify.classic_control import Placed, is_classic
from augury.verify.episodes import with_later_goals
from augury.verify.limits import at_limit, touching
from augury.verify.observations import entries_table, numbered, numbered_entries, taken
from augury.verify.observing import Observing
from augury.verify.played import gathered


class GymSource:
    """Collects; nothing needs to be restored for that."""

    def __init__(self, env: Any) -> None:
        self.env = env = _Counted(env) if isinstance(env.observation_space, Discrete) else env
        self.observes_a_number = isinstance(env, _Counted)
        self.name = type(env.unwrapped).__name__
        self.action_shape: tuple[int, ...] = env.action_space.shape or ()
        space = env.observation_space
        self._parts: dict[str, Any] = space.spaces if isinstance(space, Dict) else {"": space}
        if not all(isinstance(part, Box) and len(part.shape) == 1 for part in self._parts.values()):
            raise UserError(
                f"{self.name} must observe a vector or a dict of vectors, not {space}: flatten it"
            )

    def _taken(self, observation: Any) -> Any:
        """A copy; whole numbers stay whole."""
        return np.array(observation) if isinstance(self.env, _Counted) else taken(observation)

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        self.env.action_space.seed(seed)
        observation, _ = self.env.reset(seed=seed)
        rounds = []
        for _ in range(samples):
            before = self._taken(observation)
            action = self.env.action_space.sample()
            if policy is not None:
                action = by_policy(policy, _one_row(observation), self.action_shape)[0]
            given = np.array(action)  # an environment may write over what it is given
            following, reward, terminated, truncated, info = self.env.step(action)
            outcome = (np.float64(reward), self._taken(following), terminated, truncated)
            step = (before, given, *outcome, _numbers(info))
            rounds.append(rows(*(_one_row(part) for part in step)))
            observation = self.env.reset()[0] if terminated or truncated else following
        if "achieved_goal" in self._parts:
            rounds = with_later_goals(rounds, seed)
        return joined(rounds)

    def play(self, samples: int, policy: Policy | None, seed: int) -> Played:
        """One episode after the other; long ones are left, so that there are several."""
        self.env.action_space.seed(seed)
        generator = np.random.default_rng(seed)
        mixture = Mixture(_actions(self.env.action_space), 1, generator)
        horizon = getattr(self.env.unwrapped.spec, "max_episode_steps", None) or np.inf
        leave = np.inf if "achieved_goal" in self._parts else max(samples // PLAYING, 1)
        observation, _ = self.env.reset(seed=seed)
        rounds, cut, steps = [], [], 0
        for _ in range(samples):
            shown = _one_row(observation)
            if policy is not None:
                action = by_policy(policy, shown, self.action_shape)[0]
            else:
                action = mixture(shown, np.array([steps == 0]))[0]
            before, given = self._taken(observation), np.array(action)
            following, reward, terminated, truncated, info = self.env.step(action)
            steps += 1
            truncated = truncated or (steps >= horizon and not terminated)
            outcome = (np.float64(reward), self._taken(following), terminated, truncated)
            step = (before, given, *outcome, _numbers(info))
            rounds.append(rows(*(_one_row(part) for part in step)))
            over = terminated or truncated or steps >= leave
            cut.append([over])
            observation, steps = (self.env.reset()[0], 0) if over else (following, steps)
        if "achieved_goal" in self._parts:
            rounds = with_later_goals(rounds, seed)
        return gathered(rounds, np.array(cut))


class GymSimulator(GymSource):
    """Answers by its `restore`."""

    def __init__(self, env: Any) -> None:
        if not hasattr(env, "restore"):
            tabular = hasattr(env.unwrapped, "P") and isinstance(env.observation_space, Discrete)
            if tabular:
                env = _Counted(env)
            elif not (is_mujoco(env) or is_classic(env)):
                raise UserError(
                    f"{type(env).__name__} cannot be verified: give it a method restore(observation, extras) "
                    "that brings it to a state with this observation"
                )
            else:
                env = Probed(env) if is_mujoco(env) else Placed(env)
        super().__init__(env)
        env = self.env
        sizes = {name: part.shape[0] for name, part in self._parts.items()}
        if isinstance(env.observation_space, Dict):
            self.table = entries_table(numbered_entries(sizes))
        else:
            self.table = getattr(env, "table", None) or numbered(sizes[""])
        shown = (env.env if isinstance(env, Probed | Placed) else env).observation_space
        self.observation_bounds = _bounds([shown[name] if name else shown for name in sorted(self._parts)])
        self.action_bounds = _bounds([env.action_space]) if isinstance(env.action_space, Box) else None
        self.choices = _actions(env.action_space).discrete
        self.model = env.model if isinstance(env, Probed) else None
        self.goals = "achieved_goal" in self._parts
        rounded = [*self._parts.values(), *([shown] if isinstance(env, Probed) else [])]
        self.single_precision = any(part.dtype == np.float32 for part in rounded)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        self.env.reset()
        steps: list[Answer | None] = []
        raised = None
        for row in range(len(action)):
            self._check(action[row])
            try:
                steps.append(self._one(*_row((observation, dict(extras), action), row)))
            except Exception as error:
                steps.append(None)
                raised = f"{type(error).__name__}: {error}".partition("\n")[0]
        plain = next((step for step in steps if step is not None), None)
        if plain is None:
            plain = Answer(_row(observation, 0), np.zeros(()), np.zeros((), bool), {})
        nothing: Answer = jax.tree.map(lambda leaf: np.full(np.shape(leaf), np.nan), plain)
        answered = [nothing if step is None else step for step in steps]
        names = shared([step.extras for step in answered])
        answered = [step._replace(extras={name: step.extras[name] for name in names}) for step in answered]
        together: Answer = jax.tree.map(lambda *leaves: np.array(leaves), *answered)
        return together._replace(raised=raised)

    def _one(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        """The same for one row."""
        shown = self.env.restore(observation, extras)
        seen = taken(shown) if isinstance(shown, dict) else None
        following, reward, terminated, _, info = self.env.step(action)
        outcome = (np.asarray(reward, np.float64), np.asarray(terminated, bool), _numbers(info))
        return Answer(self._taken(following), *outcome, seen)

    def is_possible(self, observation: Any) -> Any:
        """What bounds do not tell, the environment may."""
        judge = getattr(self.env.unwrapped, "is_possible", None)
        return True if judge is None else judge(observation)

    def sets_goal(self, observation: Any) -> Any:
        judge = getattr(self.env.unwrapped, "sets_goal", None)
        return True if judge is None else judge(observation)

    def _check(self, action: Any) -> None:
        """Refuse a discrete action that does not exist: environments answer it with an error, if at all."""
        space = self.env.action_space
        if isinstance(space, Discrete) and not space.contains(action):
            raise UserError(f"the augmentation gives action {action}, but the action space is {space}")

    def in_contact(self, transition: Transition) -> Flags | None:
        return self.env.in_contact(transition) if isinstance(self.env, Probed) else None

    def at_limit(self, transition: Transition) -> Flags | None:
        return at_limit(self.env.model, self.table, transition) if isinstance(self.env, Probed) else None


class _Counted:
    """An environment that observes whole numbers, as vectors of one number."""

    def __init__(self, env: Any) -> None:
        space = env.observation_space
        self.env, self.unwrapped, self.action_space = env, env.unwrapped, env.action_space
        self.observation_space = Box(space.start, space.start + space.n - 1, (1,), np.int64)

    def reset(self, **options: Any) -> tuple[Any, Any]:
        observation, info = self.env.reset(**options)
        return np.array([observation]), info

    def step(self, action: Any) -> tuple[Any, ...]:
        observation, *outcome = self.env.step(action)
        return np.array([observation]), *outcome

    def restore(self, observation: Any, extras: Mapping[str, Any]) -> None:
        """By the environment's own, else as toy text does: there the number is the state."""
        space = self.observation_space
        # A state that does not exist is reported as being outside of the space.
        state = int(np.clip(round(float(observation[0])), space.low[0], space.high[0]))
        if hasattr(self.env, "restore"):
            self.env.restore(state, extras)
        else:
            self.env.reset()
            self.env.unwrapped.s = state


class Probed(Observing):
    """A MuJoCo environment, with a `restore` that sets positions and velocities."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.model, self.table = env.model, observation_table(env)

    def restore(self, observation: Rows, extras: Mapping[str, Any]) -> None:
        """What is not observed gets the model's own value; the solver starts afresh."""
        del extras
        mujoco.mj_resetData(self.env.model, self.env.data)
        set_state(self.env, *self._state(observation))

    def in_contact(self, transition: Transition) -> Flags:
        starts, ends = (
            [self._state(observation)[0] for observation in observations]
            for observations in (transition.observation, transition.next_observation)
        )
        return touching(self.env.model, starts) | touching(self.env.model, ends)

    def _observation(self) -> Rows:
        """What the environment observes, before it clips velocities: so the state can be restored."""
        parts = {"qpos": self.env.data.qpos, "qvel": self.env.data.qvel}
        return np.array([parts[quantity.kind][quantity.address] for quantity in self.table])

    def _state(self, observation: Rows) -> tuple[Rows, Rows]:
        qpos, qvel = self.env.model.qpos0.copy(), np.zeros(self.env.model.nv)
        for value, quantity in zip(observation, self.table, strict=True):
            (qpos if quantity.kind == "qpos" else qvel)[quantity.address] = value
        return qpos, qvel


def _actions(space: Any) -> Actions:
    """Those of a space; where they are neither vectors between bounds nor whole numbers, only drawn."""

    def sample(rows: int) -> Any:
        return np.array([space.sample() for _ in range(rows)])

    if isinstance(space, Discrete) and space.start == 0:
        return Actions(sample, None, None, int(space.n))
    if isinstance(space, Box) and len(space.shape) == 1 and space.is_bounded():
        return Actions(sample, space.low, space.high)
    return Actions(sample, None, None)


def _bounds(spaces: list[Any]) -> Bounds:
    """Of their numbers side by side."""
    return Bounds(
        *(
            np.concatenate([end.ravel() for end in ends]).astype(float)
            for ends in zip(*((space.low, space.high) for space in spaces), strict=True)
        )
    )


def _one_row(values: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], values)


def _row(values: Any, row: int) -> Any:
    """A copy, since an environment may write over what it is given."""
    return jax.tree.map(lambda leaf: leaf[row].copy(), values)


def _numbers(info: Mapping[str, Any]) -> dict[str, Rows]:
    return {name: value.astype(np.float64) for name, value in numbers(info).items()}
