"""Tasks of Brax inside the compiled trainer: `brax:hopper`, or `brax:hopper/spring` with another backend.

The state is Brax's own. None of Brax's wrappers is used: the trainer resets, and truncates at the horizon. So
`done` is about the task alone, and is termination. Actions lie in [-1, 1], as those of Brax's agents do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from augury.envs.adapters.jax_packages import StateEnvironment, imported, known, loaded
from augury.errors import UserError, nearest

DEFAULT_BACKEND = "generalized"
BACKENDS = (DEFAULT_BACKEND, "mjx", "positional", "spring")


@dataclass(frozen=True)
class BraxEnvironment(StateEnvironment):
    """A task of Brax with one of its physics backends."""

    task: str
    backend: str = DEFAULT_BACKEND
    horizon: int = 1000
    """Brax's tasks have no length of their own; its agents are trained in episodes of 1,000 steps."""

    @property
    def name(self) -> str:
        return f"brax:{self.task}" + ("" if self.backend == DEFAULT_BACKEND else f"/{self.backend}")

    @property
    def made(self) -> Any:
        return _made(self.task, self.backend)


def make(text: str) -> BraxEnvironment:
    """The task of this name, `hopper` or `hopper/spring` say."""
    task, _, backend = text.partition("/")
    backend = backend or DEFAULT_BACKEND
    if backend not in BACKENDS:
        raise UserError(f"Brax has no backend '{backend}'{nearest(backend, BACKENDS)}")
    # Brax publishes no list of its tasks.
    tasks = imported("brax.envs", "Brax", "brax")._envs
    return BraxEnvironment(known(task, tasks, "Brax"), backend)


@lru_cache(maxsize=64)
def _made(task: str, backend: str) -> Any:
    envs = imported("brax.envs", "Brax", "brax")
    return loaded(f"brax:{task}", lambda: envs.get_environment(task, backend=backend))
