"""Transitions as points in a space where distances mean something: whitened states, and states with actions.

    x = (Σ + ε² I)^(-1/2) (z - z̄)

z is what a policy sees, in half widths of the environment's bounds; so is a continuous action, and a discrete
one is a one for the action taken. Mean z̄ and covariance Σ are those of the observed transitions D. ε keeps a
number that D never changes, such as a fixed goal, from being infinitely far away once it is changed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from augury.advise.pilot import Pilot
from augury.transition import Transition, seen
from augury.verify.base import Bounds

Rows = npt.NDArray[np.float64]

LEAST_SPREAD = 1e-3
"""ε, in half widths."""


class Whitening(NamedTuple):
    """From numbers in half widths to points."""

    centre: Rows
    matrix: Rows

    @classmethod
    def of(cls, rows: Rows) -> Whitening:
        """The one after which these rows have unit covariance, but for what they never change."""
        centre = rows.mean(0)
        covariance = (rows - centre).T @ (rows - centre) / len(rows)
        spread, directions = np.linalg.eigh(covariance)
        scale = 1 / np.sqrt(np.maximum(spread, 0) + LEAST_SPREAD**2)
        return cls(centre, (directions * scale) @ directions.T)

    def __call__(self, rows: Rows) -> Rows:
        return (rows - self.centre) @ self.matrix


class Space(NamedTuple):
    """Where the transitions of a pilot lie."""

    bounds: Bounds
    action_bounds: Bounds
    choices: int | None
    """Of discrete actions."""
    states: Whitening
    state_actions: Whitening

    @classmethod
    def of(cls, pilot: Pilot) -> Space:
        """Whitened by what the pilot observed."""
        count = pilot.environment.action_count
        blank = Whitening(np.zeros(0), np.zeros((0, 0)))
        space = cls(pilot.observation_bounds, pilot.action_bounds, count, blank, blank)
        states = space._states(pilot.observed.transition.observation)
        both = np.hstack([states, space._actions(pilot.observed.transition.action)])
        return space._replace(states=Whitening.of(states), state_actions=Whitening.of(both))

    def where(self, transition: Transition) -> Rows:
        """The states that transitions begin in."""
        return self.states(self._states(transition.observation))

    def what(self, transition: Transition) -> Rows:
        """The same, and what is done there."""
        parts = [self._states(transition.observation), self._actions(transition.action)]
        return self.state_actions(np.hstack(parts))

    def _states(self, observation: Any) -> Rows:
        shown = seen(jax.tree.map(lambda part: np.asarray(part, np.float64), observation))
        return _in_half_widths(self.bounds, shown.reshape(len(shown), -1))

    def _actions(self, action: Any) -> Rows:
        if self.choices is not None:
            return np.eye(self.choices)[np.asarray(action).reshape(-1)]
        taken = np.asarray(action, np.float64)
        return _in_half_widths(self.action_bounds, taken.reshape(len(taken), -1))


def _in_half_widths(bounds: Bounds, values: Rows) -> Rows:
    low, high = (np.ravel(end) for end in bounds)
    return (values - (low + high) / 2) / np.maximum((high - low) / 2, 1e-12)
