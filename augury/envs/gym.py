"""Gymnasium's view of the environments: `gymnasium.make("augury/Goal2D-v0")`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from augury.envs import goal2d

PIXELS = 256
_BACKGROUND, _WALL, _GOAL, _AGENT = (250, 250, 250), (200, 200, 200), (44, 160, 44), (31, 119, 180)

Vector = npt.NDArray[np.float32]
Image = npt.NDArray[np.uint8]


def register() -> None:
    """Make the environments known to Gymnasium; importing `augury` does it."""
    for variant, goals in (("Goal2D", "all"), ("Goal2DQuadrant", "quadrant")):
        gymnasium.register(
            id=f"augury/{variant}-v0",
            entry_point="augury.envs.gym:Goal2DEnv",
            max_episode_steps=goal2d.HORIZON,
            kwargs={"goals": goals},
        )


class Goal2DEnv(gymnasium.Env[Vector, Vector]):
    """Goal2D as Gymnasium wants it, on the same functions as the compiled one."""

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 30,
    }

    def __init__(self, render_mode: str | None = None, goals: goal2d.Goals = "all") -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be 'rgb_array' or None, not {render_mode!r}")
        self.render_mode = render_mode
        self.goals = goals
        self.observation_space = Box(-goal2d.OBSERVATION_HIGH, goal2d.OBSERVATION_HIGH)
        self.action_space = Box(goal2d.ACTION_LOW, goal2d.ACTION_HIGH)
        self._observation = np.zeros(4, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode; `options={"observation": …}` starts it there."""
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
