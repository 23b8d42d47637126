"""Frozen dataclasses whose fields are leaves of a pytree: numbers, in which agents of one fleet may differ.

Augmentations are such classes, and so are environments in JAX that vary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax

T = TypeVar("T")


def static(**options: Any) -> Any:
    """A field that is part of the function itself, not a number that may vary."""
    return field(metadata={"static": True}, **options)


def frozen_pytree(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose fields are leaves of a pytree, but for `static()` ones."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True)(cls))
