"""Gymnasium's view of the environments: `gymnasium.make("augury/Goal2D-v0")`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from augury.envs import goal2d, registry
from augury.envs.mujoco.drawing import View
from augury.envs.mujoco.locomotion import TASKS
from augury.envs.mujoco.rendering import Camera, Image
from augury.envs.mujoco.robots import Variant
from augury.envs.mujoco.task import MujocoTask
from augury.envs.mujoco.vector import Observation, Task, VectorEnvironment
from augury.envs.panda.scenery import camera
from augury.envs.panda.tasks import PANDA_TASKS, PandaTask
from augury.errors import UserError

PIXELS = 256
_BACKGROUND, _WALL, _GOAL, _AGENT = (250, 250, 250), (200, 200, 200), (44, 160, 44), (31, 119, 180)

Vector = npt.NDArray[np.float32]


class Goal2DEnv(gymnasium.Env[Vector, Vector]):
    """Goal2D with Gymnasium's interface, on the same functions as the compiled one."""

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 30,
    }

    def __init__(self, render_mode: str | None = None, goals: goal2d.Goals = "all") -> None:
        self.render_mode = _checked_mode(render_mode, self.metadata["render_modes"])
        self.goals = goals
        self.task = goal2d.Goal2D(goals)  # what the verifier asks, compiled
        self.observation_space = Box(-goal2d.OBSERVATION_HIGH, goal2d.OBSERVATION_HIGH)
        self.action_space = Box(goal2d.ACTION_LOW, goal2d.ACTION_HIGH)
        self._observation = np.zeros(4, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode; `options={"observation": …}` starts it at that observation."""
        super().reset(seed=seed)
        if options is not None and "observation" in options:
            self._observation = np.array(options["observation"], np.float32)
        else:
            low, high = goal2d.GOAL_LOW[self.goals], goal2d.START_LIMIT
            goal = self.np_random.uniform(low, high, 2)
            position = goal
            while goal2d.reached(position, goal):
                position = self.np_random.uniform(-high, high, 2)
            self._observation = np.concatenate([position, goal]).astype(np.float32)
        return self._observation.copy(), {"is_success": False}

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        action = np.asarray(action, np.float32)
        self._observation, reward, terminated = goal2d.step(self._observation, action)
        success = bool(terminated)
        return self._observation.copy(), float(reward), success, False, {"is_success": success}

    def render(self) -> Image | None:
        """A picture: the goal's disc, the agent, and the walls."""
        if self.render_mode is None:
            return None
        axis = np.linspace(-1.15, 1.15, PIXELS, dtype=np.float32)
        x, y = np.meshgrid(axis, axis[::-1])
        image = np.full((PIXELS, PIXELS, 3), _BACKGROUND, np.uint8)
        image[np.maximum(abs(x), abs(y)) > goal2d.POSITION_LIMIT] = _WALL
        for (centre_x, centre_y), radius, colour in (
            (self._observation[2:], goal2d.GOAL_RADIUS, _GOAL),
            (self._observation[:2], goal2d.GOAL_RADIUS / 2, _AGENT),
        ):
            image[(x - centre_x) ** 2 + (y - centre_y) ** 2 < radius**2] = colour
        return image


class EngineEnv(gymnasium.Env[Any, Any]):
    """One environment of the vector engine, with the interface that SB3 and other libraries expect."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self, task: Task, seconds: float, render_mode: str | None, horizon: float = math.inf
    ) -> None:
        self.metadata = {**self.metadata, "render_fps": round(1 / seconds)}
        self.render_mode = _checked_mode(render_mode, self.metadata["render_modes"])
        self.observation_space, self.action_space = task.observation_space, task.action_space
        # Mostly no horizon here: Gymnasium's TimeLimit truncates.
        self.engine = VectorEnvironment(task, 1, autoreset=False, horizon=horizon)
        self._camera: Camera | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        observation, _ = self.engine.reset(seed=[seed])
        return _first(observation), {}

    def step(self, action: Vector) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, infos = self.engine.step(np.asarray(action)[None])
        extras = {name: values[0].item() for name, values in infos.items() if not name.startswith("_")}
        return _first(observation), float(reward[0]), bool(terminated[0]), bool(truncated[0]), extras

    def close(self) -> None:
        self.engine.close()
        if self._camera is not None:
            self._camera.close()


class TaskEnv(EngineEnv):
    """A MuJoCo task: itself, its registered name, or a `module:name`."""

    def __init__(
        self, task: str | MujocoTask, render_mode: str | None = None, horizon: float | None = None
    ) -> None:
        self.task: Any = registry.make(task)
        if not isinstance(self.task, MujocoTask):
            raise UserError(f"{self.task.name} is no MuJoCo task: subclass augury.MujocoTask")
        horizon = self.task.horizon if horizon is None else horizon
        super().__init__(self.task, self.task.seconds, render_mode, horizon)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; `options={"observation": …}` starts it at that observation."""
        observation, infos = super().reset(seed=seed)
        if options is not None and "observation" in options:
            self.restore(options["observation"])
            observation = np.asarray(options["observation"], np.float64)
        return observation, infos

    def restore(self, observation: npt.ArrayLike, extras: Mapping[str, Any] | None = None) -> None:
        """Bring the robot to the state of this observation."""
        rows = {name: np.asarray(value)[None] for name, value in (extras or {}).items()}
        self.engine.restore(np.asarray(observation)[None], rows)

    def render(self) -> Image | None:
        """A picture by a camera that follows the robot: one of the model's own, or from `view`."""
        if self.render_mode is None:
            return None
        self._camera = self._camera or Camera(self.task.model)
        return self._camera.picture(self.engine.moment.qpos[0], view=self._view())

    def _view(self) -> Any:
        model, now = self.task.model, self.engine.moment
        if "track" in [model.camera(number).name for number in range(model.ncam)]:
            return "track"
        camera = (self.task.view or View.of(model)).camera
        if now.anatomy.has_base:
            camera.lookat[:2] = now.qpos[0, now.anatomy.base.qpos :][:2]
        return camera


class MujocoEnv(TaskEnv):
    """A robot that runs or swims."""

    def __init__(self, robot: str, render_mode: str | None = None, variant: Variant = "corrected") -> None:
        super().__init__(TASKS[robot].variant(variant), render_mode, math.inf)


class PandaEnv(EngineEnv):
    """A Panda at its table, with a goal; `compute_reward` and `compute_terminated` are what HER needs."""

    def __init__(self, task: str, render_mode: str | None = None) -> None:
        self.task: PandaTask = PANDA_TASKS[task]
        super().__init__(self.task, self.task.seconds, render_mode)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode."""
        observation, _ = super().reset(seed=seed)
        reached = self.compute_terminated(observation["achieved_goal"], observation["desired_goal"])
        return observation, {"is_success": bool(reached)}

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """0 at the goal and -1 elsewhere, of one or of each of many."""
        return self.task.goals.reward(achieved_goal, desired_goal)

    def compute_terminated(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """Whether the goal is reached, by one or by each of many."""
        return self.task.goals.succeeded(achieved_goal, desired_goal)

    def render(self) -> Image | None:
        """A picture by a camera beside the table; a transparent copy of the object shows the goal."""
        if self.render_mode is None:
            return None
        self._camera = self._camera or Camera(self.task.scene, 480, 360)
        now = self.engine.moment
        return self._camera.picture(now.qpos[0], view=camera(), target=self.task.target(now.goal[0]))


def _first(observation: Observation) -> Observation:
    if isinstance(observation, dict):
        return {name: rows[0] for name, rows in observation.items()}
    return observation[0]


def _checked_mode(mode: str | None, valid: list[str]) -> str | None:
    if mode not in (None, *valid):
        raise ValueError(f"render_mode must be 'rgb_array' or None, not {mode!r}")
    return mode
