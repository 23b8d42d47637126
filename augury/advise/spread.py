"""Where data lies: observed, augmented and evaluated states in the plane of their largest variance."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from augury.advise.pilot import Pilot
from augury.advise.signals.copies import copied
from augury.advise.signals.points import Space

Plane = npt.NDArray[np.float64]
"""(states, 2)"""

SHOWN = 800
"""Observed and augmented states."""
EVALUATED = 250
"""Evaluated ones, over all of the episodes."""


class Spread(NamedTuple):
    """Three kinds of states in one plane."""

    augmented: Plane
    observed: Plane
    evaluated: Plane


def spread(pilot: Pilot, augmentation: Any, seed: int = 0) -> Spread:
    """The plane is that of all three kinds together, so that it does not hide what an augmentation adds."""
    space = Space.of(pilot)
    order = np.random.default_rng(seed).permutation(len(pilot.observed.episode))[:SHOWN]
    made = copied(pilot, augmentation, order, 1, seed)
    kinds = (
        space.where(_rows(made.transition, slice(SHOWN))),
        space.where(_rows(pilot.observed.transition, order)),
        space.where(_rows(pilot.evaluated.transition, _spaced(len(pilot.evaluated.episode)))),
    )
    every = np.concatenate(kinds)
    middle = every.mean(axis=0)
    _, _, axes = np.linalg.svd(every - middle, full_matrices=False)
    plane = axes[:2] if len(axes) > 1 else np.vstack([axes, np.zeros_like(axes)])
    return Spread(*((states - middle) @ plane.T for states in kinds))


def _spaced(count: int) -> npt.NDArray[np.intp]:
    return np.linspace(0, count - 1, min(count, EVALUATED)).astype(np.intp)


def _rows(transition: Any, chosen: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[chosen], transition)
