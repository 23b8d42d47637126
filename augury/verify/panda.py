"""The Panda tasks as simulators. What they observe does not say where the arm's joints are: extras do.

So they are put where the extras say, with the desired goal of the observation, and what is then seen is
compared with the rest of the observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from augury.envs.mujoco.terms import Quantity
from augury.envs.panda import settings as panda_settings
from augury.envs.panda.reference.engine import PandaGymVector
from augury.envs.panda.reference.panda_gym import PandaGym
from augury.envs.panda.tasks import PandaTask
from augury.transition import Observation, Transition
from augury.verify.base import COLLECTING, Answer, Policy, Rows, joined, one_step, played
from augury.verify.episodes import with_later_goals
from augury.verify.observations import entries_table, numbered_entries

LANES = 16
"""Environments of panda-gym that are asked side by side, at most: each has some steps to catch up with."""


class PandaSimulator:
    """A task on MuJoCo, all rows at once."""

    def __init__(self, task: PandaTask) -> None:
        self.task = task
        self.name = task.name
        self.table = _table(task)
        self.single_precision = True
        self._physics = task.physics()

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        engine = self.task.vector(_abreast(self.task, samples))

        def begins() -> dict[str, Rows]:
            return {"state": self.task.state(engine.moment)}

        return _collected(self.task, engine, samples, policy, seed, extras=("is_success",), begins=begins)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        start = self.task.restored(observation, extras)
        begins, ends, outcome = one_step(self.task, self._physics, start, action)
        following, seen = self.task.observe(ends), self.task.observe(begins)
        return Answer(following, outcome.reward, outcome.terminated, outcome.extras, seen)

    def in_contact(self, transition: Transition) -> None:
        """The thing lies on the table almost always."""
        return


class PandaGymSimulator:
    """A task of panda-gym's. A row is restored by playing its episode up to there again, to the last bit.

    That would take some 25 steps a row. But an environment that already went that way goes on from where it
    is: so rows are asked in the order in which their episodes came to them.
    """

    def __init__(self, task: PandaGym) -> None:
        self.task = task
        self.name = task.name
        self.table = _table(task)
        self.single_precision = True
        self._engine: PandaGymVector | None = None

    def collect(self, samples: int, policy: Policy | None, seed: int) -> Transition:
        engine = self.task.vector(_abreast(self.task, samples))
        return _collected(self.task, engine, samples, policy, seed, extras=self.task.extras)

    def ask(self, observation: Any, extras: Mapping[str, Any], action: Any) -> Answer:
        # What follows depends on these alone. They begin with where the episode began and how many steps were
        # made since, by which they are sorted; and no question is asked twice.
        questions = np.column_stack([extras["history"], action, observation["desired_goal"]])
        _, first, asked = np.unique(questions, axis=0, return_index=True, return_inverse=True)
        if self._engine is None:
            self._engine = self.task.vector(min(LANES, -(-len(first) // self.task.horizon)), autoreset=False)
        turns = _turns(len(first), self._engine.num_envs)
        answers = []
        for chosen in first[turns]:
            goals = {"desired_goal": observation["desired_goal"][chosen]}
            seen = self._engine.restore(goals, {"history": extras["history"][chosen]})
            following, reward, reached, _, _ = self._engine.step(action[chosen])
            answers.append(Answer(following, reward, reached, {"is_success": reached}, seen))
        answered = np.empty(len(first), np.intp)
        answered[turns.ravel()] = np.arange(turns.size)
        where = answered[asked.ravel()]
        answer: Answer = jax.tree.map(lambda *leaves: np.concatenate(leaves)[where], *answers)
        return answer

    def in_contact(self, transition: Transition) -> None:
        """As on MuJoCo."""
        return


def _collected(
    task: PandaTask | PandaGym, engine: Any, samples: int, policy: Policy | None, seed: int, **extras: Any
) -> Transition:
    """Episodes from their start on, with what hindsight needs to know of them."""
    generator = np.random.default_rng(seed)
    shape = (engine.num_envs, len(task.action_low))

    def act(observation: Observation) -> Rows:
        # Of 32 bits, as what simulators take: so what is stored is what was done.
        action: Any = generator.uniform(task.action_low, task.action_high, shape)
        if policy is not None:
            action = np.asarray(policy(observation))
        return action.astype(np.float32).astype(np.float64)

    # Far apart, so that other seeds give other episodes: engines give them to neighbours.
    seeds = generator.integers(2**63, size=engine.num_envs).tolist()
    rounds = played(engine, -(-samples // engine.num_envs), act, seeds, **extras)
    engine.close()
    return joined(with_later_goals(rounds, generator), samples)


def _abreast(task: PandaTask | PandaGym, samples: int) -> int:
    """Environments in which so many transitions are whole episodes."""
    return min(COLLECTING, -(-samples // task.horizon))


def _table(task: PandaTask | PandaGym) -> tuple[Quantity, ...]:
    entries = numbered_entries({name: len(low) for name, low in task.observation_low.items()})
    named = [(f"observation: {number.name}", number.unit) for number in panda_settings.table(task.goals)]
    return entries_table({**entries, "observation": named})


def _turns(count: int, lanes: int) -> npt.NDArray[np.intp]:
    """Numbers below `count`, a row for each turn: each lane has a stretch of neighbours, in their order.

    A lane that is through before the others repeats its last.
    """
    ends = np.arange(1, lanes + 1) * count // lanes
    starts = np.insert(ends[:-1], 0, 0)
    longest = (ends - starts).max()
    return np.minimum(starts + np.arange(longest)[:, None], np.maximum(ends, 1) - 1)
