"""One transition as one row of numbers, so that a sampled batch costs one gather instead of seven."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury.transition import Array, Transition


@dataclass(frozen=True)
class Layout:
    """Where each field of a transition stands in its row. Whole numbers are exact up to 2²⁴."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]

    @classmethod
    def of(cls, example: Transition) -> Layout:
        """The layout of transitions that look like `example`, one without batch axes."""
        leaves, structure = jax.tree.flatten(example)
        return cls(
            structure, tuple(leaf.shape for leaf in leaves), tuple(np.dtype(leaf.dtype) for leaf in leaves)
        )

    @property
    def width(self) -> int:
        return sum(prod(shape) for shape in self.shapes)

    def pack(self, transition: Transition) -> Array:
        """Rows of numbers, one for each transition of the batch."""
        flat = [
            jnp.reshape(leaf, (*leaf.shape[: leaf.ndim - len(shape)], -1)).astype(jnp.float32)
            for leaf, shape in zip(jax.tree.leaves(transition), self.shapes, strict=True)
        ]
        return jnp.concatenate(flat, -1)

    def unpack(self, rows: Array) -> Transition:
        """The transitions that the rows hold."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])
        columns = jnp.split(rows, ends[:-1], axis=-1)
        leaves = [
            jnp.reshape(column, (*rows.shape[:-1], *shape)).astype(dtype)
            for column, shape, dtype in zip(columns, self.shapes, self.dtypes, strict=True)
        ]
        transition: Transition = jax.tree.unflatten(self.structure, leaves)
        return transition
