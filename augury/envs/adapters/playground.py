"""Tasks of MuJoCo Playground inside the compiled trainer: `playground:CartpoleBalance`.

The state is Playground's own, stepped by MJX in JAX. None of its wrappers is used: the trainer resets, and
truncates at the task's `episode_length`. So `done` is about the task alone, and is termination. Some tasks
show the critic more than the policy: here both see what the policy sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from augury.envs.adapters.jax_packages import StateEnvironment, imported, known, loaded, vector
from augury.envs.base import State
from augury.transition import Array

_OF_THE_POLICY = "state"
"""What the policy sees, among several observations."""
_IN_JAX = {"impl": "jax"}
"""MJX's physics in JAX: its other one, in Warp, cannot be batched twice, over agents and environments."""

_ABOUT_MENAGERIE = (
    ". Robots come from MuJoCo Menagerie, which Playground clones with git when it first needs them"
)


@dataclass(frozen=True)
class PlaygroundEnvironment(StateEnvironment):
    """A task of MuJoCo Playground with its default configuration."""

    task: str

    @property
    def name(self) -> str:
        return f"playground:{self.task}"

    @property
    def horizon(self) -> int:
        return int(_registry().get_default_config(self.task).episode_length)

    def observe(self, state: State) -> Array:
        seen = state.obs
        return vector(seen[_OF_THE_POLICY] if isinstance(seen, Mapping) else seen)

    @property
    def made(self) -> Any:
        return _made(self.task)


def make(task: str) -> PlaygroundEnvironment:
    """The task of this name, `CartpoleBalance` say."""
    return PlaygroundEnvironment(known(task, _registry().ALL_ENVS, "MuJoCo Playground"))


def _registry() -> Any:
    return imported("mujoco_playground", "MuJoCo Playground", "playground").registry


@lru_cache(maxsize=64)
def _made(task: str) -> Any:
    registry = _registry()
    return loaded(
        f"playground:{task}", lambda: registry.load(task, config_overrides=_IN_JAX), _ABOUT_MENAGERIE
    )
