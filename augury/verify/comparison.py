"""Claimed and simulated, number by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from augury.transition import Transition
from augury.verify.base import Answer, Flags, Indices, Rows, Simulator
from augury.verify.observations import flat
from augury.verify.reports import Dimension, Offender

WORST = 5
"""Transitions that a report lists."""
REWARD, TERMINATED, TRUNCATED = "reward", "termination", "truncation"
BEFORE = ", before the step"
"""Behind the name of a number of the observation itself."""


class Errors(NamedTuple):
    """What was claimed and what was simulated, number by number."""

    names: tuple[str, ...]
    claimed: Rows
    simulated: Rows
    error: Rows
    raised: str | None = None
    """What the environment raised where it gave no answer: what was simulated is NaN there."""

    @property
    def scaled(self) -> Rows:
        """What tolerances are about: relative for numbers beyond 1, of which fewer digits are known."""
        return self.error / np.maximum(1, np.nan_to_num(np.abs(self.simulated), posinf=1))

    @classmethod
    def between(cls, simulator: Simulator, transition: Transition, needs: Sequence[str]) -> Errors:
        """Ask the simulator for the next step from where each transition begins, and compare."""
        answer = simulator.ask(transition.observation, transition.extras, transition.action)
        extras = [name for name in needs if name in answer.extras]
        observed = [quantity.name for quantity in simulator.table]
        names = [*observed, REWARD, TERMINATED, *extras]
        if answer.observation is not None:
            names += [f"{name}{BEFORE}" for name in observed]

        def columns(one: Transition | Answer) -> Rows:
            begins = [] if answer.observation is None else [flat(one.observation)]
            parts = [flat(one.next_observation), one.reward, one.terminated]
            return np.column_stack([*parts, *(one.extras[name] for name in extras), *begins]).astype(float)

        claimed, simulated = columns(transition), columns(answer)
        error = np.abs(claimed - simulated)
        error = np.where(np.isnan(error), np.inf, error)
        return cls(tuple(names), claimed, simulated, error, answer.raised)

    def beside(self, name: str, claimed: Any, simulated: Any) -> Errors:
        """With one number more."""
        columns = [np.asarray(values, float)[:, None] for values in (claimed, simulated)]
        error = np.abs(columns[0] - columns[1])
        return self._replace(
            names=(*self.names, name),
            claimed=np.hstack([self.claimed, columns[0]]),
            simulated=np.hstack([self.simulated, columns[1]]),
            error=np.hstack([self.error, error]),
        )

    def rows(self, chosen: Any) -> Errors:
        """Some of them."""
        return self._replace(
            **{name: getattr(self, name)[chosen] for name in ("claimed", "simulated", "error")}
        )

    @property
    def largest(self) -> Rows:
        """Of each transition."""
        return self.scaled.max(1)

    def wrong_in(self, name: str, tolerance: float) -> Flags:
        """Which transitions are wrong in this number."""
        return self.scaled[:, self.names.index(name)] > tolerance

    def rounded(self, name: str, rounding: float) -> float | None:
        """The largest error in this number, where rounding explains all of them."""
        column = self.names.index(name)
        size = np.maximum(1.0, np.abs(self.simulated[:, column]))
        error = self.error[:, column]
        return float(error.max()) if np.all(error <= rounding * size) else None

    def wrong_before(self, tolerance: float) -> Flags:
        """Which transitions begin with another observation than the restored state's."""
        before = [name.endswith(BEFORE) for name in self.names]
        return np.any(self.scaled[:, before] > tolerance, 1)

    def dimensions(self, tolerance: float) -> tuple[Dimension, ...]:
        """The numbers that are wrong somewhere, the most often wrong first."""
        found = [
            Dimension(name, int((scaled > tolerance).sum()), float(column.max()))
            for name, column, scaled in zip(self.names, self.error.T, self.scaled.T, strict=True)
            if scaled.max() > tolerance
        ]
        return tuple(sorted(found, key=lambda one: (-one.invalid, -one.largest_error)))

    def offenders(self, wrong: Flags, numbers: Indices) -> tuple[Offender, ...]:
        """The worst transitions; `numbers` says which of those collected each of ours is."""
        order = np.argsort(-self.error.max(1), kind="stable")[: min(WORST, int(wrong.sum()))]
        return tuple(self._offender(row, int(numbers[row])) for row in order.tolist())

    def _offender(self, row: int, number: int) -> Offender:
        column = int(self.error[row].argmax())
        claimed, simulated = (
            float(rows[row, column]) + 0.0 for rows in (self.claimed, self.simulated)
        )  # no -0
        return Offender(number, float(self.error[row, column]), self.names[column], claimed, simulated)
