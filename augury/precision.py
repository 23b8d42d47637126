"""JAX in double precision, for as long as something needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def double_precision() -> Iterator[None]:
    """In all threads, unlike `jax.enable_x64`: JAX may call NumPy functions in a thread of its own."""
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
