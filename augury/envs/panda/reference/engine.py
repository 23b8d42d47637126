"""Many panda-gym environments as one: a Gymnasium vector environment that can be saved and restored.

PyBullet's state cannot be read out completely, since its memory of contacts stays inside. But the state
follows, to the last bit, from the start of the episode and the actions since. So those are saved, and
restoring repeats them. An environment that has already made some of these steps makes only the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from augury.envs.mujoco.physics import Rows
from augury.envs.mujoco.vector import Flags, State
from augury.envs.panda.environment import PandaEnvironment
from augury.envs.panda.goals import START_DRAWS, GoalTask
from augury.envs.panda.reference.processes import Chosen, Simulations
from augury.envs.panda.reference.simulation import STATE_SIZE, start_state
from augury.envs.panda.settings import HORIZON
from augury.envs.vector_inputs import checked_actions, checked_mask, refuse_other_state, seed_list
from augury.errors import UserError

Observation = dict[str, npt.NDArray[np.float32]]


class PandaGymVector(VectorEnv):
    """Many copies of a task.

    With `autoreset` an environment that ended starts again in the same step (Gymnasium's SAME_STEP mode), and
    `infos["final_obs"]` holds its true final observation. Without `autoreset` it stands still until it is
    reset: it keeps its last observation and earns no reward.

    A step's infos hold `is_success`; `state`, the one before the step (see `simulation.STATE_SIZE`); and
    `history`: the state at the start of the episode, the number of steps since, and their actions.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, goals: GoalTask, simulations: Simulations, *, autoreset: bool = True) -> None:
        count = len(simulations.rows)
        self.goals = goals
        self.num_envs = count
        self.autoreset = autoreset
        mode = AutoresetMode.SAME_STEP if autoreset else AutoresetMode.DISABLED
        self.metadata = {**self.metadata, "autoreset_mode": mode}
        environment = PandaEnvironment(goals)
        self.single_observation_space = environment.observation_space
        self.single_action_space = environment.action_space
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self._simulations = simulations
        self._seeds = np.random.SeedSequence().generate_state(count, np.uint64)
        self._episodes = np.zeros(count, np.int64)
        self._steps = np.zeros(count, np.int64)
        self._terminated = np.zeros(count, bool)
        self._truncated = np.zeros(count, bool)
        self._starts = np.zeros((count, STATE_SIZE))
        self._goals = np.zeros((count, goals.goal_size), np.float32)
        self._actions = np.zeros((count, HORIZON, *self.single_action_space.shape), np.float32)
        self._start(np.arange(count))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start new episodes; with `options={"reset_mask": …}` only in the environments of the mask.

        The first episode after a seed is the one that panda-gym's `reset` begins with that seed.
        """
        mask = checked_mask(options, self.num_envs)
        for row, own in enumerate(seed_list(seed, self.num_envs)):
            if mask[row] and own is not None:
                self._seeds[row], self._episodes[row] = own, 0
        self._restart(np.flatnonzero(mask))
        return self._observation(), {}

    def step(self, actions: Any) -> tuple[Observation, Rows, Flags, Flags, dict[str, Any]]:
        """Advance every environment by one step, except those that stand still."""
        actions = checked_actions(np.asarray(actions, np.float32), self.action_space)
        moves = ~(self._terminated | self._truncated)
        moving = np.flatnonzero(moves)
        rows = self._simulations.rows
        reward = np.zeros(self.num_envs)
        infos: dict[str, Any] = {}
        if moving.size:
            infos = {"state": rows["state"].copy(), "history": self._history()}
            self._move(moving, actions)
            reward[moving] = rows["reward"][moving]
            self._terminated[moving] = rows["success"][moving]
            self._truncated = ~self._terminated & (self._steps >= HORIZON)
            infos["is_success"] = self._terminated.copy()
            for name in tuple(infos):
                infos[name][~moves], infos[f"_{name}"] = 0, moves

        observation = self._observation()
        terminated, truncated = self._terminated.copy(), self._truncated.copy()
        over = terminated | truncated
        if self.autoreset and over.any():
            final = {name: values for name, values in infos.items() if not name.startswith("_")}
            infos |= {"final_obs": observation, "_final_obs": over}
            infos |= {"final_info": final, "_final_info": over}
            self._restart(np.flatnonzero(over))
            observation = self._observation()
        return observation, reward, terminated, truncated, infos

    def restore(self, observation: Mapping[str, Any], extras: Mapping[str, npt.ArrayLike]) -> Observation:
        """Bring every environment to where a step with these infos began, with the goal of this observation.

        Returns what is then observed.

        With `history` this is exact. With `state` alone a new episode begins there, and PyBullet knows of no
        earlier contacts: a step that touches nothing is repeated to the last bit, but one with contacts is
        not. Of steps with uniform actions, 92% then end with the hand exactly where it was, and 99% with hand
        and object within 0.2 mm. The worst of 2,000 were off by 9 mm, and angular velocities by far more.
        """
        count, steps = self.num_envs, np.zeros(self.num_envs, np.int64)
        actions = np.zeros_like(self._actions)
        if "history" in extras:
            history = np.asarray(extras["history"], np.float64).reshape(count, -1)
            starts, steps = history[:, :STATE_SIZE], history[:, STATE_SIZE].astype(np.int64)
            actions = history[:, STATE_SIZE + 1 :].reshape(actions.shape).astype(np.float32)
        elif "state" in extras:
            starts = np.asarray(extras["state"], np.float64).reshape(count, STATE_SIZE)
        else:
            raise UserError("panda-gym can be restored with a step's 'history', or nearly with its 'state'")
        self._goals = np.array(observation["desired_goal"], np.float32).reshape(self._goals.shape)
        self._terminated[:] = self._truncated[:] = False
        self._play(starts, steps, actions)
        return self._observation()

    def ask(
        self, observation: Mapping[str, Any], extras: Mapping[str, Any], action: Any
    ) -> tuple[Observation, Observation, Rows, Flags, dict[str, Any]]:
        """What is observed where steps with these infos began, and what comes of these actions there.

        Returns observation, next observation, reward, termination and infos, for any number of rows. To play
        their episodes again would take some 25 steps a row. But an environment that already went that way
        goes on from where it is: so rows are asked in the order in which their episodes came to them.
        """
        # What follows depends on these alone. They begin with where the episode began and how many steps were
        # made since, by which they are sorted; and no question is asked twice.
        questions = np.column_stack([extras["history"], action, observation["desired_goal"]])
        _, first, asked = np.unique(questions, axis=0, return_index=True, return_inverse=True)
        turns = _turns(len(first), self.num_envs)
        answers: list[Any] = []
        for chosen in first[turns]:
            goals = {"desired_goal": observation["desired_goal"][chosen]}
            seen = self.restore(goals, {"history": extras["history"][chosen]})
            following, reward, reached, _, _ = self.step(action[chosen])
            answers.append((seen, following, reward, reached, {"is_success": reached}))
        answered = np.empty(len(first), np.intp)
        answered[turns.ravel()] = np.arange(turns.size)
        where = answered[asked.ravel()]
        answer: Any = jax.tree.map(lambda *leaves: np.concatenate(leaves)[where], *answers)
        return answer

    def state(self) -> State:
        """Everything that `load_state` needs to continue, also in the middle of an episode."""
        return {name: getattr(self, f"_{name}").copy() for name in _STATE}

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from what `state` returned."""
        refuse_other_state(state, self.state())
        own = {name: state[name].astype(getattr(self, f"_{name}").dtype) for name in _STATE}
        starts, steps, actions = (own.pop(name) for name in ("starts", "steps", "actions"))
        for name, values in own.items():
            setattr(self, f"_{name}", values)
        self._play(starts, steps, actions)

    def close_extras(self, **options: Any) -> None:
        self._simulations.close()

    def _restart(self, chosen: Chosen) -> None:
        if chosen.size:
            self._start(chosen)
            self._episodes[chosen] += 1
            self._terminated[chosen] = self._truncated[chosen] = False

    def _start(self, chosen: Chosen) -> None:
        """Begin the chosen environments' current episodes. Random numbers are drawn in panda-gym's order."""
        for row in chosen:
            generator = np.random.default_rng([self._seeds[row], self._episodes[row]])
            self._goals[row] = self.goals.goal(generator.random(self.goals.draws))
            self._starts[row] = start_state(self.goals.start(generator.random(START_DRAWS)))
        self._begin(chosen)

    def _begin(self, chosen: Chosen) -> None:
        """Bring the chosen environments to their starts."""
        rows = self._simulations.rows
        rows["begin"][chosen] = True
        rows["start"][chosen] = self._starts[chosen]
        self._actions[chosen] = 0
        self._steps[chosen] = 0
        self._run(chosen)

    def _move(self, chosen: Chosen, actions: npt.NDArray[np.float32]) -> None:
        """One step of the chosen environments."""
        self._actions[chosen, self._steps[chosen]] = actions[chosen]
        self._steps[chosen] += 1
        self._simulations.rows["begin"][chosen] = False
        self._simulations.rows["action"][chosen] = actions[chosen]
        self._run(chosen)

    def _run(self, chosen: Chosen) -> None:
        self._simulations.rows["desired_goal"][chosen] = self._goals[chosen]
        self._simulations.run(chosen)

    def _play(self, starts: Rows, steps: npt.NDArray[np.int64], actions: npt.NDArray[np.float32]) -> None:
        """Bring every environment to where its first `steps` actions lead from its start."""
        made = np.arange(HORIZON) < self._steps[:, None]
        same = ((self._actions == actions).all(-1) | ~made).all(-1)
        on_the_way = (self._starts == starts).all(-1) & (self._steps <= steps) & same
        others = np.flatnonzero(~on_the_way)
        if others.size:
            self._starts[others] = starts[others]
            self._begin(others)
        while (behind := np.flatnonzero(self._steps < steps)).size:
            self._move(behind, actions[np.arange(self.num_envs), np.minimum(self._steps, HORIZON - 1)])

    def _observation(self) -> Observation:
        rows = self._simulations.rows
        observed = {name: rows[name].copy() for name in ("observation", "achieved_goal")}
        return {**observed, "desired_goal": self._goals.copy()}

    def _history(self) -> Rows:
        return np.column_stack([self._starts, self._steps, self._actions.reshape(self.num_envs, -1)])


def _turns(count: int, lanes: int) -> npt.NDArray[np.intp]:
    """Numbers below `count`, a row for each turn: each lane has a stretch of neighbours, in their order.

    A lane that is through before the others repeats its last.
    """
    ends = np.arange(1, lanes + 1) * count // lanes
    starts = np.insert(ends[:-1], 0, 0)
    longest = (ends - starts).max()
    return np.minimum(starts + np.arange(longest)[:, None], np.maximum(ends, 1) - 1)


_STATE = ("starts", "goals", "actions", "seeds", "episodes", "steps", "terminated", "truncated")
