"""panda-gym's four tasks, the reference: sparse rewards, end-effector control, 50 steps.

    panda-gym-push, panda-gym-slide, panda-gym-pick-and-place, panda-gym-flip      and each with -quadrant

They are environments for the trainer (`PandaGym`) and for Gymnasium (`PandaGymEnv`). They move, observe and
reward as panda-gym does, to the last bit. `simulation` lists what is repaired. Besides:

- Flip's goal comes from the seed, as the others' do; panda-gym draws it from SciPy's own generator.
- An episode without a new seed follows from the last seed given and the number of the episode; panda-gym then
  takes a new seed from the system.
- Goals have 32 bits, as in observations, so that an observed goal can be set again exactly.

Their names can be listed without importing panda-gym or PyBullet. Making one imports both, and an error says
what to install where they are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import gymnasium
import numpy as np
import numpy.typing as npt

from augury.envs.panda.environment import PandaEnvironment
from augury.envs.panda.goals import GOAL_TASKS
from augury.envs.panda.reference.engine import Observation, PandaGymVector
from augury.envs.panda.reference.processes import ForkedSimulations, LocalSimulation
from augury.errors import UserError, unknown_name

Goals = Literal["all", "quadrant"]


@dataclass(frozen=True)
class PandaGym(PandaEnvironment):
    """One of the tasks, for the trainer."""

    extras: ClassVar[tuple[str, ...]] = ("is_success", "state", "history")
    """Whether the goal was reached; the state before the step; and what led to it (see `PandaGymVector`)."""

    @property
    def name(self) -> str:
        return f"panda-gym-{self.goals.name}"

    @property
    def draw(self) -> Any:
        """It has no pictures of its own, but its twin on MuJoCo has."""
        twin = self.name.replace("panda-gym-", "panda-")
        raise UserError(f"there are no pictures of {self.name}: choose {twin}")

    def vector(self, count: int, *, autoreset: bool = True, cores: int | None = None) -> PandaGymVector:
        """Many of them, each simulated in a process of its own; at most `cores` of them run at a time."""
        if count < 1:
            raise UserError(f"a vector environment needs at least 1 environment, not {count}")
        return PandaGymVector(self.goals, ForkedSimulations(self.goals, count, cores), autoreset=autoreset)


class PandaGymEnv(gymnasium.Env[Any, Any]):
    """One of the tasks in this process, with the interface that SB3 and other libraries expect.

    Every step's info holds what `restore` needs to return to where the step began.
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
        self.observation_space, self.action_space = self.task.observation_space, self.task.action_space
        self._simulation = LocalSimulation(self.goals, pictures=render_mode is not None)
        self.engine = PandaGymVector(self.goals, self._simulation, autoreset=False)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        observation, _ = self.engine.reset(seed=[seed])
        return _first(observation), {"is_success": False}

    def step(self, action: npt.ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, infos = self.engine.step(np.asarray(action)[None])
        info = {name: infos[name][0] for name in PandaGym.extras if name in infos}
        info["is_success"] = bool(terminated[0])
        return _first(observation), float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def restore(self, observation: Mapping[str, Any], extras: Mapping[str, Any]) -> Observation:
        """Go back to where a step with this info began, with this observation's goal, and observe."""
        restored = self.engine.restore(
            {name: np.asarray(values)[None] for name, values in observation.items()},
            {name: np.asarray(values)[None] for name, values in extras.items()},
        )
        return _first(restored)

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """0 at the goal and -1 elsewhere, of one or of each of many; HER calls it."""
        return self.goals.reward(achieved_goal, desired_goal)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """Whether the goal is reached, by one or by each of many."""
        return self.goals.succeeded(achieved_goal, desired_goal)

    def render(self) -> npt.NDArray[np.uint8] | None:
        """A picture by a camera beside the table, with the goal, drawn by PyBullet's software renderer."""
        return None if self.render_mode is None else self._simulation.picture()

    def close(self) -> None:
        self.engine.close()


def _first(observation: Observation) -> Observation:
    return {name: values[0] for name, values in observation.items()}


REFERENCES = tuple(PandaGym(goals) for task in GOAL_TASKS.values() for goals in (task, task.quadrant))
"""All of them, by the names above."""
