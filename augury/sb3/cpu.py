"""Compiled calls on the CPU, over any number of rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

MOST_ROWS = 1_024
"""Rows in one compiled call."""


def on_cpu() -> Any:
    """Compute here: a batch is too small for a trip to an accelerator, which the learner may be using."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # JAX was told to use nothing else
        return nullcontext()


def in_parts(function: Callable[..., Any], *rows: Any) -> Callable[[], Any]:
    """Start to compute a compiled function of trees of rows; what is returned waits for the result.

    The function gets parts of few different sizes, so that few programs are compiled: powers of two, up to a
    limit. The last part is filled up with rows that are already there.
    """
    count = len(jax.tree.leaves(rows)[0])
    size = min(1 << (count - 1).bit_length(), MOST_ROWS)
    room = size * math.ceil(count / size)
    if room != count:
        rows = jax.tree.map(lambda leaf: np.resize(leaf, (room, *leaf.shape[1:])), rows)
    cuts = (slice(start, start + size) for start in range(0, room, size))
    with on_cpu():
        parts = [function(*jax.tree.map(operator.itemgetter(cut), rows)) for cut in cuts]
    return lambda: jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)
