"""Frozen dataclasses whose fields are leaves of a pytree: numbers, in which agents of one fleet may differ.

Augmentations are such classes, and so are environments in JAX that vary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import jax

T = TypeVar("T")


def static(**options: Any) -> Any:
    """A field that is part of the function itself, not a number that may vary."""
    return field(metadata={"static": True}, **options)


def frozen_pytree(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose fields are leaves of a pytree, but for `static()` ones.

    As a node of its own it is told apart by its class. `jax.tree_util.register_dataclass` does not compare
    that, so that a compiled function may take a pendulum for a cart-pole of the same static fields.
    """
    made: Any = dataclass(frozen=True)(cls)
    given = [one for one in fields(made) if one.init]
    statics = [one.name for one in given if one.metadata.get("static")]
    leaves = [one.name for one in given if one.name not in statics]

    def held(value: Any) -> Any:
        return tuple(getattr(value, name) for name in statics)

    def flatten(value: Any) -> Any:
        return tuple(getattr(value, name) for name in leaves), held(value)

    def flatten_with_keys(value: Any) -> Any:
        return tuple((jax.tree_util.GetAttrKey(name), getattr(value, name)) for name in leaves), held(value)

    def unflatten(fixed: Any, values: Any) -> Any:
        return made(**dict(zip((*statics, *leaves), (*fixed, *values), strict=True)))

    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten, flatten)
    return made
