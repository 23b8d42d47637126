"""One transition as one row of numbers, so that a sampled batch costs one gather instead of seven.

An observation travels from the host to the device in the same way, whatever parts it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury.transition import Array


@dataclass(frozen=True)
class Layout:
    """Where each part of a transition, or of an observation, stands in its row.

    Whole numbers are exact up to 2²⁴.
    """

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]

    @classmethod
    def of(cls, example: Any) -> Layout:
        """The layout of what looks like `example`, one without batch axes."""
        leaves, structure = jax.tree.flatten(example)
        return cls(
            structure, tuple(leaf.shape for leaf in leaves), tuple(np.dtype(leaf.dtype) for leaf in leaves)
        )

    @property
    def width(self) -> int:
        return sum(prod(shape) for shape in self.shapes)

    def columns_of(self, pick: Callable[[Any], Any]) -> slice:
        """The columns of one part of the row, which `pick` takes out of the whole."""
        widths = [prod(shape) for shape in self.shapes]
        place = pick(jax.tree.unflatten(self.structure, range(len(widths))))
        return slice(sum(widths[:place]), sum(widths[: place + 1]))

    def pack(self, tree: Any) -> Array:
        """Rows of numbers, one for each member of the batch."""
        flat = [
            jnp.reshape(leaf, (*leaf.shape[: leaf.ndim - len(shape)], -1)).astype(jnp.float32)
            for leaf, shape in zip(jax.tree.leaves(tree), self.shapes, strict=True)
        ]
        return jnp.concatenate(flat, -1)

    def unpack(self, rows: Array) -> Any:
        """What the rows hold."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])
        columns = jnp.split(rows, ends[:-1], axis=-1)
        leaves = [
            jnp.reshape(column, (*rows.shape[:-1], *shape)).astype(dtype)
            for column, shape, dtype in zip(columns, self.shapes, self.dtypes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)
