"""Environments that a simulator on the host steps, many copies at a time.

There are two ways to restore a state. A task of the vector engine has `restored`, which returns the start of
a simulation, and all rows are answered at once. Any other environment has an engine with `restore`, which
brings its copies to states that look like the observations, or with `ask`, which does all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from augury.envs.base import HostEngine, StepsOnHost
from augury.envs.checks import checked_engine
from augury.envs.mujoco.vector import Moment
from augury.errors import UserError
from augury.transition import Observation, Transition
from augury.verify.base import (
    Answer,
    Flags,
    Judged,
    Played,
    Policy,
    Rows,
    abreast,
    actions_of,
    has_goals,
    joined,
    numbers,
    playing,
    rows,
    shared,
)
from augury.verify.behaviour import Act, Actions, Mixture
from augury.verify.episodes import with_later_goals
from augury.verify.limits import at_limit, touching
from augury.verify.observations import in_single_precision, table_of, taken
from augury.verify.played import gathered

LANES = 16
"""Copies that are asked side by side, at most: each may be a process."""
SIMULATED = ("physics", "observe", "control", "outcome")
"""What tells a task of the vector engine."""
_FINAL = ("final_obs", "final_info")


class HostSource(Judged):
    """Collects; nothing needs to be restored for that."""

    def __init__(self, environment: StepsOnHost) -> None:
        self.environment: Any = environment
        self.name = environment.name
        self.single_precision = False  # until something was observed

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        generator = np.random.default_rng(seed)
        copies = abreast(self.environment, samples)

        def act(observation: Observation, begins: Flags) -> Rows:
            return actions_of(self.environment, policy, observation, generator)

        seeds = list(range(seed, seed + copies))
        if has_goals(self.environment):
            seeds = _far_apart(generator, copies)
        return joined(self._rounds(samples, act, seeds, seed), samples)

    def play(self, samples: int, policy: Policy | None, seed: int) -> Played:
        generator = np.random.default_rng(seed)
        copies = playing(self.environment, samples)
        mixture = Mixture(Actions.of(self.environment, generator), copies, generator)

        def act(observation: Observation, begins: Flags) -> Rows:
            if policy is None:
                return mixture(observation, begins)
            return actions_of(self.environment, policy, observation, generator)

        return gathered(self._rounds(samples, act, _far_apart(generator, copies), seed))

    def _rounds(self, samples: int, choose: Act, seeds: list[int], seed: int) -> list[Transition]:
        engine = self._engine(len(seeds))

        def act(observation: Observation, begins: Flags) -> Rows:
            action = choose(observation, begins)
            self.single_precision = in_single_precision(observation)
            if self.environment.action_count is not None or not self.single_precision:
                return action
            # As simulators of 32 bits take them: so what is stored is what was done.
            return action.astype(np.float32).astype(np.float64)

        rounds = _played(engine, -(-samples // engine.num_envs), act, seeds, self._begins(engine))
        engine.close()
        if has_goals(self.environment):
            rounds = with_later_goals(rounds, seed)
        return rounds

    def _engine(self, count: int, *, autoreset: bool = True) -> Any:
        return checked_engine(self.environment.vector(count, autoreset=autoreset), self.environment)

    def _begins(self, engine: Any) -> Callable[[], dict[str, Rows]]:
        """What a task of the vector engine needs beyond the observation, to restore the state."""
        if not hasattr(self.environment, "state"):
            return dict
        return lambda: {"state": self.environment.state(engine.moment)}


class TaskSimulator(HostSource):
    """A task of the vector engine, all rows at once."""

    def __init__(self, environment: StepsOnHost) -> None:
        super().__init__(environment)
        if not hasattr(environment, "restored"):
            raise UserError(
                f"{self.name} cannot be verified: give it a method restored(observation, extras) that "
                "returns the Start which looks like that"
            )
        self.table = table_of(environment)
        self._physics = self.environment.physics(None)
        self._has_state = hasattr(environment, "state")

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        task, physics = self.environment, self._physics
        start = task.restored(observation, extras)
        before = physics.start(start.qpos, start.qvel)
        last = np.zeros_like(action) if start.action is None else start.action
        begins = Moment.of(physics, before, start.goal, last)
        after = physics.advance(before, task.control(begins, action))
        ends = Moment.of(physics, after, start.goal, action)
        outcome = task.outcome(begins, action, ends)
        # A state that is restored from the observation alone looks like it.
        seen = task.observe(begins) if self._has_state else None
        return Answer(task.observe(ends), outcome.reward, outcome.terminated, outcome.extras, seen)

    def in_contact(self, transition: Transition) -> Flags | None:
        """Known where the observation alone says what pose it is."""
        if self._has_state:
            return None
        begins, ends = (
            touching(self._physics.model, self.environment.restored(observation, {}).qpos)
            for observation in (transition.observation, transition.next_observation)
        )
        return begins | ends

    def at_limit(self, transition: Transition) -> Flags | None:
        return None if self._has_state else at_limit(self._physics.model, self.table, transition)


class EngineSimulator(HostSource):
    """Any other engine, as many rows at once as it has copies."""

    def __init__(self, environment: StepsOnHost) -> None:
        super().__init__(environment)
        self.table = table_of(environment)
        self._asked: Any = None

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        if self._asked is None:
            lanes = min(LANES, -(-len(action) // self.environment.horizon))
            self._asked = self._engine(lanes, autoreset=False)
        if hasattr(self._asked, "ask"):
            seen, following, reward, terminated, named = self._asked.ask(observation, extras, action)
            return Answer(following, reward, terminated, named, seen)
        return _restored_and_stepped(self._asked, observation, extras, action)

    def in_contact(self, transition: Transition) -> None:
        """Nobody knows what touches what."""
        return

    def at_limit(self, transition: Transition) -> None:
        """Nor how far joints reach."""
        return

    def _engine(self, count: int, *, autoreset: bool = True) -> Any:
        engine = super()._engine(count, autoreset=autoreset)
        if not (hasattr(engine, "restore") or hasattr(engine, "ask")):
            raise UserError(
                f"{self.name} cannot be verified: give the engine that its vector(count) returns a method "
                "restore(observation, extras) that brings every copy to a state with this observation"
            )
        return engine


def _far_apart(generator: np.random.Generator, copies: int) -> list[int]:
    """Seeds, such that another seed gives other ones."""
    seeds: list[int] = generator.integers(2**63, size=copies).tolist()
    return seeds


def _played(
    engine: HostEngine,
    rounds: int,
    act: Act,
    seeds: list[int],
    begins: Callable[[], dict[str, Rows]],
) -> list[Transition]:
    """A transition of every environment in each round, with the numbers of a step's infos as extras.

    `begins` is asked for more of them before every step.
    """
    observation, _ = engine.reset(seed=seeds)
    played, over = [], np.ones(engine.num_envs, bool)
    for _ in range(rounds):
        before, action, named = taken(observation), act(observation, over), begins()
        observation, reward, terminated, truncated, infos = engine.step(action)
        end = taken(infos.get("final_obs", observation))
        over = np.asarray(terminated) | np.asarray(truncated)
        outcome = (np.array(reward, np.float64), end, np.array(terminated), np.array(truncated))
        played.append(rows(before, action, *outcome, named | _of_rows(infos)))
    names = shared([one.extras for one in played])
    return [one._replace(extras={name: one.extras[name] for name in names}) for one in played]


def _restored_and_stepped(engine: Any, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
    """Some rows after the others; the last is repeated where they do not come out even."""
    answers = []
    for first in range(0, len(action), engine.num_envs):
        chosen = np.minimum(np.arange(first, first + engine.num_envs), len(action) - 1)
        given, named = jax.tree.map(lambda leaf: leaf[chosen], (observation, dict(extras)))  # noqa: B023
        seen = engine.restore(given, named)
        following, reward, terminated, _, infos = engine.step(action[chosen])
        end = taken(infos.get("final_obs", following))
        outcome = (np.array(reward, np.float64), np.array(terminated), _of_rows(infos))
        answers.append(Answer(end, *outcome, None if seen is None else taken(seen)))
    names = shared([one.extras for one in answers])
    answers = [one._replace(extras={name: one.extras[name] for name in names}) for one in answers]
    answer: Answer = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(action)], *answers)
    return answer


def _of_rows(infos: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a vector environment's infos."""
    return numbers(
        {name: each for name, each in infos.items() if not name.startswith("_") and name not in _FINAL}
    )
