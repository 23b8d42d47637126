"""f(D): augmented transitions of a pilot, as a buffer with this m would hold them.

A fixed number of rows, whatever m: with many copies of each transition, fewer transitions are copied. So an
augmentation is compiled once, and whoever asks about another m does not pay for that again.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from augury.advise.pilot import Pilot
from augury.augmentations.base import Augmentation, FromNumpy, conforming, describe, needs_of
from augury.augmentations.goals import LATER_GOALS
from augury.errors import UserError
from augury.replay import copies
from augury.transition import Key, Transition
from augury.verify.augmenting import augment

ROWS = 2_048
"""Augmented transitions, before those are dropped that a fractional m does not grant."""
MOST_COPIES = 8
"""Of one transition; of an m beyond that, signals look at so many."""

Indices = npt.NDArray[np.intp]


class Copies(NamedTuple):
    """Augmented transitions, and which observed ones they are of."""

    transition: Transition
    origin: Indices
    """Row of the pilot's observed transitions."""
    place: Indices
    """The same, counted in the order in which these were given."""


def copied(pilot: Pilot, augmentation: Augmentation, order: Indices, ratio: float, seed: int) -> Copies:
    """Copies of the pilot's transitions, of as many as there is room for, in this order."""
    if not ratio > 0:
        raise UserError(f"ratio must be above 0, not {ratio:g}")
    needs = needs_of(augmentation)
    later = [goal for goal in LATER_GOALS if goal in needs]
    observed = pilot.observed.transition
    if missing := [name for name in needs if name not in observed.extras and name not in later]:
        raise UserError(f"{pilot.environment.name} does not provide the extras {', '.join(missing)}")
    if later:
        order = _finished(pilot, order)
    each = min(ratio, MOST_COPIES)
    repeats = math.ceil(each)
    count = min(len(order), ROWS // repeats)
    number = np.arange(ROWS) % (count * repeats)  # always so many rows: one shape is compiled
    place, copy = number // repeats, (number % repeats).astype(np.uint32)
    origin = order[place]
    root = jax.random.key(seed)
    rows = jax.tree.map(lambda leaf: leaf[origin], observed)
    shown = {name: rows.extras[name] for name in needs if name not in later}
    shown |= {goal: _later_goal(pilot, goal, root, origin, copy) for goal in later}
    made = _augmented(augmentation, root, rows._replace(extras=shown), origin, copy, seed)
    granted = np.random.default_rng(seed).random(len(order)) < each - (repeats - 1)
    kept = np.flatnonzero((np.arange(ROWS) < count * repeats) & ((copy < repeats - 1) | granted[place]))
    made = jax.tree.map(lambda leaf: leaf[kept], made)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(made._replace(extras={}))):
        raise UserError(f"{describe(augmentation)} gives numbers that are not finite")
    _check_choices(pilot, augmentation, made.action)
    return Copies(made, origin[kept], place[kept])


def _check_choices(pilot: Pilot, augmentation: Augmentation, action: npt.NDArray[Any]) -> None:
    count = pilot.environment.action_count
    if count is not None and not ((action >= 0) & (action < count)).all():
        raise UserError(
            f"{describe(augmentation)} gives actions from {action.min()} to {action.max()}: "
            f"{pilot.environment.name} has {count}, from 0 to {count - 1}"
        )


def _augmented(
    augmentation: Augmentation, root: Key, rows: Transition, origin: Indices, copy: Any, seed: int
) -> Transition:
    """Copies of these rows, compiled where that is possible; whatever fails says so in one line."""
    if not isinstance(augmentation, FromNumpy):
        try:
            made = _compiled(augmentation, root, origin.astype(np.uint32), copy, rows)
            return jax.tree.map(np.asarray, made)
        except Exception:  # NumPy's functions cannot be traced, and other faults are said there
            pass
    return augment(augmentation, rows, seed)


@jax.jit
def _compiled(augmentation: Augmentation, root: Key, origin: Any, copy: Any, rows: Transition) -> Transition:
    alike: Any = conforming(describe(augmentation), augmentation)
    keys = copies.keys(root, origin, copy)
    return jax.vmap(partial(copies.copy_of, alike, shown={}))(keys, rows)


def _finished(pilot: Pilot, order: Indices) -> Indices:
    """Those of finished episodes: hindsight reads no others."""
    kept = order[pilot.finished[order]]
    if not len(kept):
        raise UserError("no episode of the pilot ended, so nothing is known in hindsight: give it more steps")
    if not isinstance(pilot.observed.transition.observation, dict):
        raise UserError(
            f"hindsight needs observations with achieved goals, unlike {pilot.environment.name}'s"
        )
    return kept


def _later_goal(pilot: Pilot, goal: str, root: Key, origin: Indices, copy: Any) -> Any:
    remaining = pilot.observed.remaining[origin].astype(np.int32)
    ahead = np.asarray(copies.steps_ahead(goal, root, origin.astype(np.uint32), copy, remaining))
    return pilot.observed.transition.next_observation["achieved_goal"][origin + ahead]
