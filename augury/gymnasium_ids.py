"""The names under which Gymnasium knows the environments: `gymnasium.make("augury/Goal2D-v0")`.

Plain names, so that importing `augury` loads none of the environments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium

ROBOTS = ("swimmer", "walker2d", "ant", "humanoid")
PANDA_TASKS = tuple(
    f"panda-{task}{variant}"
    for task in ("push", "slide", "pick-and-place", "flip")
    for variant in ("", "-quadrant", "-coarse")
)
_HOME = "augury.envs.gym"


def register() -> None:
    """Tell Gymnasium; importing `augury` does it."""
    for name, entry_point, steps, kwargs in _ids():
        if (id_ := f"augury/{name}-v0") not in gymnasium.registry:
            gymnasium.register(
                id=id_, entry_point=f"{_HOME}:{entry_point}", max_episode_steps=steps, kwargs=kwargs
            )


def _ids() -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    """Name, class, horizon and arguments of each."""
    yield "Goal2D", "Goal2DEnv", 100, {"goals": "all"}
    yield "Goal2DQuadrant", "Goal2DEnv", 100, {"goals": "quadrant"}
    for robot in ROBOTS:
        yield robot.capitalize(), "MujocoEnv", 1_000, {"robot": robot}
    for task in PANDA_TASKS:
        yield task.title().replace("-", ""), "PandaEnv", 50, {"task": task}
