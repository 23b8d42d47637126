"""panda-gym's four tasks, the reference: sparse rewards, end-effector control, 50 steps.

    panda-gym-push, panda-gym-slide, panda-gym-pick-and-place, panda-gym-flip      and each with -quadrant

Here they are environments for the trainer (`PandaGym`) and for Gymnasium (`PandaGymEnv`). They move, observe
and reward as panda-gym does, to the last bit; what is repaired is told in `panda_gym_simulation`, and:

- Flip's goal comes from the seed, as the others' do; panda-gym draws it from SciPy's own generator.
- An episode without a new seed follows from the last one given and the number of the episode; panda-gym then
  takes a new seed from the system.
- Goals are numbers of 32 bits, as they are shown: so a goal that is put in again is the same goal.

Knowing their names imports neither panda-gym nor PyBullet; making one does, and says what to install.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
import numpy.typing as npt

from augury.envs.base import Measure, RunsIn
from augury.envs.panda import settings as panda_settings
from augury.envs.panda.goals import GOAL_TASKS, GoalTask
from augury.envs.panda.reference.engine import PandaGymVector, Shown, spaces
from augury.envs.panda.reference.processes import Apart, Here
from augury.envs.panda.settings import Bounds
from augury.errors import UserError, unknown_name
from augury.transition import Array, Transition

Goals = Literal["all", "quadrant"]
Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PandaGym:
    """One of the tasks, for the trainer."""

    goals: GoalTask

    runs_in: ClassVar[RunsIn] = "host"
    measure: ClassVar[Measure] = "success"
    horizon: ClassVar[int] = panda_settings.HORIZON
    extras: ClassVar[tuple[str, ...]] = ("is_success", "state", "history")
    """Whether the goal was reached; where the step began; and all that led there (see the engine)."""

    @property
    def name(self) -> str:
        return f"panda-gym-{self.goals.name}"

    @property
    def all_goals(self) -> GoalTask:
        """What relabelling draws goals from: all of the task's, also where it sets a part of them itself."""
        return GOAL_TASKS[panda_settings.task_name(self.goals)]

    @property
    def training(self) -> Mapping[str, Any]:
        return panda_settings.TRAINING[panda_settings.task_name(self.goals)]

    @property
    def observation_low(self) -> Bounds:
        """Where coverage looks: no observation is limited to it."""
        return panda_settings.bounds(self.goals)[0]

    @property
    def observation_high(self) -> Bounds:
        return panda_settings.bounds(self.goals)[1]

    @property
    def action_low(self) -> Vector:
        return -self.action_high

    @property
    def action_high(self) -> Vector:
        return np.ones(panda_settings.action_size(self.goals), np.float32)

    def vector(self, count: int, *, autoreset: bool = True, cores: int | None = None) -> PandaGymVector:
        """Many of them, each simulated in a process of its own, by as many cores at once."""
        if count < 1:
            raise UserError(f"a vector environment needs at least 1 environment, not {count}")
        return PandaGymVector(self.goals, Apart(self.goals, count, cores), autoreset=autoreset)

    def succeeded(self, transition: Transition) -> Array:
        reached = transition.next_observation
        return self.goals.succeeded(reached["achieved_goal"], reached["desired_goal"])


class PandaGymEnv(gymnasium.Env[Any, Any]):
    """One of the tasks in this process, as SB3 and other libraries want it.

    Every step's info holds what `restore` takes to come back to where it began.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 25}  # noqa: RUF012

    def __init__(self, task: str = "push", goals: Goals = "all", render_mode: str | None = None) -> None:
        if task not in GOAL_TASKS:
            raise unknown_name("task", task, GOAL_TASKS)
        if goals not in ("all", "quadrant"):
            raise unknown_name("goals", goals, ("all", "quadrant"))
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be 'rgb_array' or None, not {render_mode!r}")
        self.render_mode = render_mode
        self.goals = GOAL_TASKS[task] if goals == "all" else GOAL_TASKS[task].quadrant
        self.task = PandaGym(self.goals)
        self.observation_space, self.action_space = spaces(self.goals)
        self._simulation = Here(self.goals, pictures=render_mode is not None)
        self.engine = PandaGymVector(self.goals, self._simulation, autoreset=False)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Shown, dict[str, Any]]:
        super().reset(seed=seed)
        shown, _ = self.engine.reset(seed=[seed])
        return _single(shown), {"is_success": False}

    def step(self, action: npt.ArrayLike) -> tuple[Shown, float, bool, bool, dict[str, Any]]:
        shown, reward, terminated, truncated, infos = self.engine.step(np.asarray(action)[None])
        info = {name: infos[name][0] for name in PandaGym.extras if name in infos}
        info["is_success"] = bool(terminated[0])
        return _single(shown), float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def restore(self, observation: Mapping[str, Any], extras: Mapping[str, Any]) -> Shown:
        """Go back to where a step with this info began, or with another goal; returns what is then seen."""
        shown = self.engine.restore(
            {name: np.asarray(values)[None] for name, values in observation.items()},
            {name: np.asarray(values)[None] for name, values in extras.items()},
        )
        return _single(shown)

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """0 at the goal and -1 elsewhere, of one or of many; as hindsight asks for it."""
        return self.goals.reward(achieved_goal, desired_goal)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """Whether the goal is reached, by one or by each of many."""
        return self.goals.succeeded(achieved_goal, desired_goal)

    def render(self) -> npt.NDArray[np.uint8] | None:
        """What a camera beside the table sees, and the goal; PyBullet's software draws it."""
        return None if self.render_mode is None else self._simulation.picture()

    def close(self) -> None:
        self.engine.close()


def _single(shown: Shown) -> Shown:
    return {name: values[0] for name, values in shown.items()}


REFERENCES = tuple(PandaGym(goals) for task in GOAL_TASKS.values() for goals in (task, task.quadrant))
"""All of them, by the names above."""
