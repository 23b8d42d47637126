"""Where transitions come from."""

from augury.envs.base import JaxEnvironment
from augury.envs.goal2d import Goal2D
from augury.errors import unknown_name

ENVIRONMENTS: dict[str, JaxEnvironment] = {
    environment.name: environment for environment in (Goal2D(), Goal2D(goals="quadrant"))
}
"""Environments that run inside the compiled trainer, by name."""


def make(name: str) -> JaxEnvironment:
    """The environment of that name."""
    if name not in ENVIRONMENTS:
        raise unknown_name("environment", name, ENVIRONMENTS)
    return ENVIRONMENTS[name]


__all__ = ["ENVIRONMENTS", "Goal2D", "JaxEnvironment", "make"]
