"""Whether an object is an environment that can be trained on: one clear line about what it lacks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from augury.envs.actions import blank_action
from augury.envs.base import Environment, numbers_of
from augury.envs.knobs import check_limits
from augury.errors import UserError

_BASES = {"program": "JaxEnvironment", "device": "JaxEnvironment", "host": "HostEnvironment"}
_ALWAYS = ("name", "horizon", "observation_low", "observation_high")
_CONTINUOUS = ("action_low", "action_high")
_DEFAULTED = ("action_count", "measure", "training", "extras", "succeeded")
_IN_JAX = ("reset", "observe", "step")
_OWN = {"program": _IN_JAX, "device": _IN_JAX, "host": ("vector",)}
_ENGINE = ("reset", "step", "state", "load_state", "close", "num_envs")


_ALIKE: set[Any] = set()
"""Structures of environments with numbers that were checked: others with the same differ in numbers alone."""


def checked(environment: Any) -> Any:
    """The environment, if it is one."""
    try:
        if getattr(environment, "runs_in", None) is None or numbers_of(environment) is None:
            return _checked(environment)
        hash(environment)
        check_limits(environment)
        if (structure := jax.tree.structure(environment)) not in _ALIKE:
            _checked(environment)
            _ALIKE.add(structure)
        return environment
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        raise UserError(
            f"{_called(environment)} cannot be compared: make it a frozen dataclass of plain values"
        ) from error


@lru_cache(maxsize=64)
def _checked(environment: Any) -> Any:
    called = _called(environment)
    place = getattr(environment, "runs_in", None)
    if place is None and hasattr(environment, "action_space"):
        raise UserError(f"{called} is one environment, but fleets need many: give the function that makes it")
    if place not in _BASES:
        raise UserError(
            f"{called} is no environment that can be trained on: subclass augury.JaxEnvironment, "
            "or augury.HostEnvironment where a simulator on the host steps it"
        )
    discrete = getattr(environment, "action_count", None) is not None
    own = (*_ALWAYS, *(() if discrete else _CONTINUOUS), *_OWN[place])
    if missing := [name for name in own if not _has(environment, called, name)]:
        raise UserError(f"{called} lacks {', '.join(missing)}: see augury.{_BASES[place]}")
    horizon = environment.horizon
    if not isinstance(horizon, int | np.integer) or horizon < 1:
        raise UserError(f"{called}: horizon must be a whole number from 1 on, not {horizon!r}")
    if missing := [name for name in _DEFAULTED if not hasattr(environment, name)]:
        raise UserError(
            f"{called} lacks {', '.join(missing)}: subclass augury.{_BASES[place]}, which has defaults"
        )
    _check_bounds(environment, called, ("observation",) if discrete else ("observation", "action"))
    _check_actions(environment, called)
    if place == "program":
        _check_functions(environment, called)
    return environment


def _has(environment: Any, called: str, name: str) -> bool:
    """Whether there is such an attribute; one that fails when it is asked for is reported."""
    try:
        getattr(environment, name)
    except AttributeError as error:
        if hasattr(type(environment), name):
            raise UserError(f"{called}: {name} raised AttributeError: {error}") from error
        return False
    return True


def checked_engine(engine: Any, environment: Environment) -> Any:
    """The engine that an environment's `vector` gave, if it can be trained with."""
    if missing := [name for name in _ENGINE if not hasattr(engine, name)]:
        lacking = ", ".join(missing)
        raise UserError(f"the engine of {environment.name} lacks {lacking}: see augury.envs.HostEngine")
    return engine


def _check_bounds(environment: Any, called: str, names: tuple[str, ...]) -> None:
    for name in names:
        low, high = (getattr(environment, f"{name}_{end}") for end in ("low", "high"))
        for part in (*_parts(low), *_parts(high)):
            if not hasattr(part, "dtype"):
                raise UserError(f"{called}: {name}_low and {name}_high must be arrays, not {part!r}")
        if not all(np.size(part) for part in _parts(low)) or not _parts(low):
            raise UserError(f"{called} has no {name}s: {name}_low is empty")
        if jax.tree.map(np.shape, low) != jax.tree.map(np.shape, high):
            raise UserError(f"{called}: {name}_low and {name}_high must have the same shape")
        if not all(np.isfinite(part).all() for part in jax.tree.leaves((low, high))):
            raise UserError(
                f"{called}: {name}_low and {name}_high must be finite; coverage is measured between them"
            )
        if not all((a < b).all() for a, b in zip(_parts(low), _parts(high), strict=True)):
            raise UserError(f"{called}: {name}_low must lie below {name}_high in every number")


def _check_actions(environment: Any, called: str) -> None:
    count = environment.action_count
    if count is not None:
        if not isinstance(count, int | np.integer) or not 1 <= count < 2**24:
            raise UserError(f"{called}: action_count must be a whole number from 1 to 2^24, not {count!r}")
    elif np.ndim(environment.action_low) != 1:
        raise UserError(f"{called}: actions must be vectors, not of shape {np.shape(environment.action_low)}")


def _check_functions(environment: Any, called: str) -> None:
    """Reset, observe and step, traced without computing anything."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    expected = jax.tree.map(np.shape, environment.observation_low)
    number = np.float32 if environment.action_count is None else np.int32
    action = jax.ShapeDtypeStruct(blank_action(environment).shape, number)
    state = _traced(called, "reset", environment.reset, key)
    observation = _traced(called, "observe", environment.observe, state)
    if (given := jax.tree.map(lambda part: part.shape, observation)) != expected:
        raise UserError(f"{called}: observe gives shape {given}, observation_low has {expected}")
    outcome = _traced(called, "step", environment.step, key, state, action)
    if not (isinstance(outcome, tuple) and len(outcome) == 3):
        raise UserError(f"{called}: step must return (state, reward, terminated)")
    following, reward, terminated = outcome
    if jax.tree.map(_kind, following) != jax.tree.map(_kind, state):
        raise UserError(
            f"{called}: step must return a state with the shapes and dtypes of the one that reset gives"
        )
    for name, value, kind in (("reward", reward, np.floating), ("terminated", terminated, np.bool_)):
        if getattr(value, "shape", None) != () or not np.issubdtype(value.dtype, kind):
            wanted = "one bool" if kind is np.bool_ else "one floating-point number"
            raise UserError(f"{called}: step must return {name} as {wanted}, not {_words(value)}")


def _parts(bounds: Any) -> list[Any]:
    return list(bounds.values()) if isinstance(bounds, dict) else [bounds]


def _traced(called: str, name: str, function: Any, *arguments: Any) -> Any:
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        what = f"{type(error).__name__}: {reason}"
        raise UserError(f"{called}: {name} cannot be traced by JAX: {what}") from error


def _kind(leaf: Any) -> tuple[Any, Any]:
    return leaf.shape, leaf.dtype


def _words(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if hasattr(value, "dtype") else type(value).__name__


def _called(environment: Any) -> str:
    """The name that it should have, or its class."""
    name = getattr(environment, "name", None)
    return name if isinstance(name, str) else type(environment).__name__
