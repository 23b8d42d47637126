"""Velocities that a robot is told to keep during an episode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Range = tuple[float, float]


class Commands(NamedTuple):
    """Ranges in the base's own frame, from which an episode's command is drawn uniformly."""

    forward: Range = (0.0, 0.0)
    """Metres per second along the base's x axis."""
    sideways: Range = (0.0, 0.0)
    """Along its y axis."""
    turning: Range = (0.0, 0.0)
    """Radians per second about its z axis."""

    def draw(self, generator: np.random.Generator) -> npt.NDArray[np.float64]:
        """The command of an episode, as the term `command` shows it."""
        return generator.uniform(*np.transpose(self))
