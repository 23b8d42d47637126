"""The names under which Gymnasium knows the environments: `gymnasium.make("augury/Goal2D-v0")`.

Plain names, so that importing `augury` loads none of the environments. A MuJoCo task of a user's own is
`gymnasium.make("augury/MujocoTask-v0", task="module:name")`, and has an id of its own once it is registered.
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
    for known in _ids():
        _tell(*known)


def register_task(task: Any) -> None:
    """Tell Gymnasium of a MuJoCo task: "my-walk" becomes augury/MyWalk-v0."""
    _tell(task.name.title().replace("-", ""), "TaskEnv", task.horizon, {"task": task})


def _tell(name: str, entry_point: str, steps: int | None, kwargs: dict[str, Any]) -> None:
    if (id_ := f"augury/{name}-v0") not in gymnasium.registry:
        gymnasium.register(
            id=id_, entry_point=f"{_HOME}:{entry_point}", max_episode_steps=steps, kwargs=kwargs
        )


def _ids() -> Iterator[tuple[str, str, int | None, dict[str, Any]]]:
    """Name, class, horizon and arguments of each."""
    yield "MujocoTask", "TaskEnv", None, {}  # which task says its horizon
    yield "Goal2D", "Goal2DEnv", 100, {"goals": "all"}
    yield "Goal2DQuadrant", "Goal2DEnv", 100, {"goals": "quadrant"}
    for robot in ROBOTS:
        yield robot.capitalize(), "MujocoEnv", 1_000, {"robot": robot}
    for task in PANDA_TASKS:
        yield task.title().replace("-", ""), "PandaEnv", 50, {"task": task}
