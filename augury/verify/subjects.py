"""What is verified: an augmentation and an environment, each by name, by `module:name`, or as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
from gymnasium.envs.registration import EnvSpec

from augury import augmentations, envs
from augury.augmentations.base import Augmentation, as_pytree, describe
from augury.envs.adapters import is_adapted
from augury.envs.adapters.gymnasium.making import time_limit
from augury.envs.mujoco.probe import unwrapped
from augury.errors import UserError
from augury.references import is_reference


class Subject(NamedTuple):
    """An augmentation, where it is looked at, and what both are called."""

    name: str
    summary: str
    """What the augmentation does, where it says so."""
    home: str
    """The environment that the augmentation is for; empty where it may be for any."""
    augmentation: Augmentation
    environment: Any

    @classmethod
    def of(cls, augmentation: Any, environment: Any = None) -> Subject:
        """Find both; one of the catalogue's augmentations knows where it belongs."""
        name = describe(augmentation)
        if not isinstance(augmentation, str):
            if not callable(augmentation):
                raise UserError(f"{name} is no augmentation: it cannot be called")
            if environment is None:
                raise UserError(f"say which environment {name} is for")
            summary = (getattr(augmentation, "__doc__", None) or "").split("\n")[0]
            return cls(name, summary, "", as_pytree(augmentation), environment_of(environment))
        entry, _ = augmentations.parse(augmentation)
        where = environment_of(entry.home if environment is None else environment)
        # One of Gymnasium's has no name that would mean anything to the catalogue.
        known = None if isinstance(where, gymnasium.Env) else where
        made = augmentations.make(augmentation, known)
        return cls(name, entry.summary, entry.environment, made, where)


def environment_of(source: Any) -> Any:
    """An environment of ours or of Gymnasium's, without the wrappers that change nothing."""
    if isinstance(source, str) and is_reference(source) and not is_adapted(source):
        source = envs.load(source)
    if isinstance(source, gymnasium.Env):
        return _with_its_limit(source)
    found: Any = envs.make(source)
    return _with_its_limit(found.one()) if hasattr(found, "one") else found


def _with_its_limit(env: Any) -> Any:
    """The environment inside of wrappers; its time limit, which is one of them, is kept in its spec."""
    inner, limit = unwrapped(env), time_limit(env)
    if limit is not None and isinstance(inner, gymnasium.Env) and inner.unwrapped.spec is None:
        inner.unwrapped.spec = EnvSpec(type(inner.unwrapped).__name__, max_episode_steps=limit)
    return inner
