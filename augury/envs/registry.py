"""Environments by name, by `module:name`, by the prefix of another library, or as they are.

A name may have knobs behind it: `family/point(wind=0.1)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from augury import references
from augury.envs import adapters, knobs
from augury.envs.base import AnyEnvironment
from augury.envs.checks import checked
from augury.errors import UserError
from augury.gymnasium_ids import register_task
from augury.references import describe, is_reference, reference_to, takes_argument
from augury.registry import Registry, origin_of


def _built_in() -> Mapping[str, AnyEnvironment]:
    from augury.envs.families import FAMILIES
    from augury.envs.goal2d import Goal2D
    from augury.envs.mujoco.locomotion import ANT, HUMANOID, TASKS
    from augury.envs.panda.reference.panda_gym import REFERENCES
    from augury.envs.panda.tasks import PANDA_TASKS
    from augury.envs.warp.manipulation import WARP_PANDA_TASKS

    papers = (ANT.variant("paper"), HUMANOID.variant("paper"))
    goal2d = (Goal2D(), Goal2D(goals="quadrant"))
    every: tuple[AnyEnvironment, ...] = (
        *goal2d,
        *TASKS.values(),
        *papers,
        *PANDA_TASKS.values(),
        *WARP_PANDA_TASKS.values(),
        *REFERENCES,
        *(family() for family in FAMILIES.values()),
    )
    return {environment.name: environment for environment in every}


def _provided(name: str, found: Any) -> AnyEnvironment:
    """What an entry point gave: an environment of just that name."""
    environment: AnyEnvironment = checked(_made(found, name))
    if environment.name != name:
        raise UserError(f"the environment calls itself '{environment.name}'")
    return environment


ENVIRONMENTS: Registry[AnyEnvironment] = Registry("environment", "augury.environments", _built_in, _provided)
"""All that have a name."""


def register(environment: Any) -> Any:
    """Make an environment known by its name; returns it. A class is instantiated.

    A MuJoCo task gets an id of Gymnasium's too: "my-walk" becomes augury/MyWalk-v0.

    Packages do without: an entry point of the group `augury.environments`, by the environment's name, is
    found by every command.
    """
    made = checked(_made(environment, "register"))
    ENVIRONMENTS.register(made.name, made, origin_of(made))
    if hasattr(made, "physics"):
        register_task(made)
    return environment


def make(source: Any) -> AnyEnvironment:
    """The environment that a name, a `module:name`, a `prefix:name` or an object stands for.

    The first two may have knobs: `family/point(wind=0.1, reward='dense')`.
    """
    if isinstance(source, type) and hasattr(source, "runs_in"):
        source = _made(source, "environment")
    if not isinstance(source, str):
        return checked(_adapted(source) if _is_factory(source) else source)
    if adapters.is_adapted(source):
        adapted: AnyEnvironment = checked(adapters.make(source))
        return adapted
    return _named(source) if "(" in source else _found(source)


def load(text: str) -> Any:
    """What a `module:name` stands for, which may be an environment of another kind, as Gymnasium's."""
    return _made(references.load(text, "environment"), text)


def reference(source: Any) -> str:
    """The text by which `make` finds an environment again, in this process or another."""
    if isinstance(source, str):
        if "(" not in source or adapters.is_adapted(source):
            return source
        name, _ = knobs.split(source)
        return knobs.written(make(source), _found(name), name) or source
    if not hasattr(source, "name"):  # a function that makes environments
        return describe(source)
    if source.name in ENVIRONMENTS:
        registered = ENVIRONMENTS[source.name]
        if registered == source:
            return str(source.name)
        if text := knobs.written(source, registered, source.name):
            return text
    if adapters.is_adapted(source.name) and adapters.make(source.name) == source:
        return str(source.name)
    return reference_to(source) or _reference_to_class(source) or describe(source)


def _found(name: str) -> AnyEnvironment:
    """An environment by its name or `module:name`, without knobs."""
    return _loaded(name) if is_reference(name) else ENVIRONMENTS[name]


@lru_cache(maxsize=4096)
def _named(text: str) -> AnyEnvironment:
    """The environment that a name with knobs stands for: studies name the same ones again and again."""
    name, given = knobs.split(text)
    environment: AnyEnvironment = checked(knobs.turned(_found(name), name, given or ""))
    return environment


@lru_cache(maxsize=64)
def _loaded(text: str) -> AnyEnvironment:
    """Loaded once, so that it is the same environment wherever it is named."""
    found = references.load(text, "environment")
    if _is_factory(found):
        made = None if takes_argument(found) else _made(found, text)
        found = made if hasattr(made, "runs_in") else _adapted(found, text)
    environment: AnyEnvironment = checked(_made(found, text))
    return environment


def _is_factory(source: Any) -> bool:
    """Whether it makes environments, as a function does, or a class of Gymnasium's."""
    return callable(source) and not hasattr(source, "runs_in")


def _adapted(factory: Any, name: str | None = None) -> Any:
    """The environment that a factory of Gymnasium's environments makes."""
    from augury.envs.adapters.gymnasium import from_gymnasium

    return from_gymnasium(factory, name=name)


def _made(found: Any, what: str) -> Any:
    """An environment as it is; a class or a function without arguments is called."""
    if not (isinstance(found, type) or _is_factory(found)):
        return found
    try:
        return found()
    except Exception as error:
        raise UserError(f"{what}: {found.__name__}() failed: {type(error).__name__}: {error}") from error


def _reference_to_class(environment: Any) -> str | None:
    """That of its class, where it makes an equal environment without arguments, or one with other knobs."""
    kind = type(environment)
    name = reference_to(kind)
    try:
        default = kind()
        same = bool(default == environment)
    except Exception:  # it takes arguments, say
        return None
    return name if name is None or same else knobs.written(environment, default, name)
