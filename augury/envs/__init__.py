"""Where transitions come from."""

from augury.envs.base import Environment, HostEngine, HostEnvironment, JaxEnvironment
from augury.envs.goal2d import Goal2D
from augury.envs.mujoco.locomotion import ANT, HUMANOID, TASKS, Locomotion
from augury.envs.mujoco.vector import VectorEnvironment
from augury.envs.panda.reference.panda_gym import REFERENCES, PandaGym
from augury.envs.panda.tasks import PANDA_TASKS, PandaTask
from augury.errors import unknown_name

_PAPER = (ANT.variant("paper"), HUMANOID.variant("paper"))
_ALL: tuple[JaxEnvironment | HostEnvironment, ...] = (
    Goal2D(),
    Goal2D(goals="quadrant"),
    *TASKS.values(),
    *_PAPER,
    *PANDA_TASKS.values(),
    *REFERENCES,
)
ENVIRONMENTS = {environment.name: environment for environment in _ALL}
"""Environments by name."""


def make(name: str) -> JaxEnvironment | HostEnvironment:
    """The environment of that name."""
    if name not in ENVIRONMENTS:
        raise unknown_name("environment", name, ENVIRONMENTS)
    return ENVIRONMENTS[name]


__all__ = [
    "ENVIRONMENTS",
    "Environment",
    "Goal2D",
    "HostEngine",
    "HostEnvironment",
    "JaxEnvironment",
    "Locomotion",
    "PandaGym",
    "PandaTask",
    "VectorEnvironment",
    "make",
]
