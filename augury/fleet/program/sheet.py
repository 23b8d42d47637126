"""Rows of numbers on their way from an engine to the devices."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpy.typing as npt

Rows = Any  # a NumPy array, or a dict of them; transitions and measurements are annotated for JAX's


class Sheet:
    """Numbers for the devices, and the engine's view of the same memory.

    What is to be sent is written in place, column by column: one array, and no copy of it. Once sent it is
    not written again, since a device may still be reading it.
    """

    def __init__(self, agents: int, surplus: int, rows: int, width: int) -> None:
        self.dealt: npt.NDArray[np.float32] = np.empty((agents + surplus, rows, width), np.float32)
        """(agents, rows of an agent, columns), with the surplus agents that fill up the devices."""
        self.rows: npt.NDArray[np.float32] = self.dealt[:agents].reshape(agents * rows, width)
        """(rows of the engine, columns)."""
        self._agents = agents

    def ready(self) -> npt.NDArray[np.float32]:
        """What is sent: surplus agents see what the last one sees."""
        self.dealt[self._agents :] = self.dealt[self._agents - 1]
        return self.dealt


def write(columns: npt.NDArray[np.float32], *parts: Rows, only: Rows = slice(None)) -> None:
    """Fill columns with arrays side by side, those of a dict in JAX's order; `only` some rows."""
    start = 0
    for part in jax.tree.leaves(parts):
        rows = part.reshape(len(columns), -1)
        end = start + rows.shape[1]
        columns[only, start:end] = rows[only]
        start = end
    assert start == columns.shape[1], f"{start} numbers for {columns.shape[1]} columns"
