"""How fast a fleet learns, and how long it has yet to go.

Only learning counts: rounds of the random phase make no updates and are many times faster, and the first call
of a program compiles it. So there is no estimate before the first rounds that learn.
"""

from __future__ import annotations

from collections.abc import Sequence

MEMORY = 30.0
"""Seconds of learning after which a measurement counts half: the machine's load may change."""


class Pace:
    """Measures rounds that learn and evaluations; predicts the rest."""

    def __init__(self, rounds: int, first_update: int, evaluations: Sequence[int]) -> None:
        """For a run that learns from round `first_update` on and is evaluated after the given rounds."""
        self._last, self._first_update, self._due = rounds, first_update, evaluations
        self._compiled = False
        self._rounds = self._seconds = 0.0
        self._evaluations = 0
        self._evaluating = 0.0

    def advanced(self, first: int, rounds: int, seconds: float) -> None:
        """Note how long these rounds took."""
        if self._compiled and first >= self._first_update:
            kept = 0.5 ** (seconds / MEMORY)
            self._rounds = kept * self._rounds + rounds
            self._seconds = kept * self._seconds + seconds
        self._compiled = True

    def evaluated(self, seconds: float) -> None:
        """Note how long an evaluation took."""
        self._evaluations += 1
        if self._evaluations > 1:  # the first compiles
            self._evaluating += seconds

    @property
    def speed(self) -> float | None:
        """Rounds per second while learning; None as long as nothing was learned."""
        return self._rounds / self._seconds if self._seconds > 0 else None

    def left(self, done: int) -> float | None:
        """Seconds to the end after `done` rounds, evaluations included; None if the speed is not known."""
        if self.speed is None:
            return None
        evaluations = sum(rounds > done for rounds in self._due)
        each = self._evaluating / (self._evaluations - 1) if self._evaluations > 1 else 0.0
        return (self._last - done) / self.speed + evaluations * each


def duration(seconds: float) -> str:
    """As in 2:05, or 1:02:05."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
