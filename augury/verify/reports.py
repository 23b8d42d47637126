"""What the simulator found, as data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["valid", "invalid", "outside the space", "unknown"]

MOST_SET_ASIDE = 0.1
"""Share of the transitions that a verdict may leave out."""

ANSWERS_BY_CHANCE = "answers differently when it is asked again"


@dataclass(frozen=True)
class Dimension:
    """How one number of a transition fared."""

    name: str
    invalid: int
    """Transitions that are wrong in it by more than the tolerance."""
    largest_error: float


@dataclass(frozen=True)
class Offender:
    """One of the worst transitions."""

    index: int
    """Its index among those collected: the same seed gives the same ones."""
    error: float
    dimension: str
    claimed: float
    """By the augmentation."""
    simulated: float


@dataclass(frozen=True)
class Contact:
    """How transitions that begin or end in contact fared, and the others."""

    touching: int
    invalid_touching: int
    free: int
    invalid_free: int


@dataclass(frozen=True)
class Outside:
    """What lies outside of the environment's world."""

    name: str
    transitions: int
    farthest: float
    """By how much; infinite where that has no measure."""


@dataclass(frozen=True)
class Visit:
    """How many of the observed transitions are at a place where mistakes hide."""

    name: str
    transitions: int


@dataclass(frozen=True)
class Report:
    """What the simulator found."""

    augmentation: str
    environment: str
    samples: int
    set_aside: int
    """Observed transitions, not counted in `samples`, that the environment cannot repeat itself, or whose
    copies it answers differently when asked again."""
    by_chance: int
    """The latter. Chance decides them, or something that is not restored."""
    tolerance: float
    seed: int
    invalid: int
    evenly: int
    """How many of them were drawn evenly from whole episodes. The others were chosen where mistakes hide: in
    contact, at limits, where episodes end, and where a number is extreme."""
    invalid_evenly: int
    episodes: int
    interval: tuple[float, float]
    """95% confidence interval of the invalid share, by episodes: transitions of one resemble each other."""
    outside_space: int
    """Transitions with an action or an observation that does not occur, though the dynamics may be right."""
    outside: tuple[Outside, ...]
    """In what, the most frequent first."""
    outside_goals: int
    """Transitions with a goal that the task never sets: a warning, since some do that on purpose."""
    visited: tuple[Visit, ...]
    """What the transitions show that an augmentation may get wrong."""
    would_repeat: float | None
    """Where many were set aside, the tolerance at which nearly all of them would be repeated, if any is."""
    largest_error: float
    repeating_error: float
    """The same for the observed transitions themselves: what restoring alone costs."""
    dimensions: tuple[Dimension, ...]
    """Those with an error above the tolerance, the worst first."""
    contact: Contact | None
    worst: tuple[Offender, ...]
    cause: str | None
    """Why, where that can be recognised: a repair with which the simulator agrees."""
    description: str | None
    """Which numbers are wrong, by how much and in which states."""

    @property
    def share(self) -> float:
        """Of transitions that are invalid, among those that were drawn evenly."""
        return self.invalid_evenly / max(self.evenly, 1)

    @property
    def unseen(self) -> tuple[str, ...]:
        """What no transition shows."""
        return tuple(visit.name for visit in self.visited if not visit.transitions)

    @property
    def verdict(self) -> Verdict:
        """Unknown where nothing is wrong, but too much was set aside, or chance had a part in it."""
        if self.invalid:
            return "invalid"
        if self.outside_space:
            return "outside the space"
        asked = self.samples + self.set_aside
        return "unknown" if self.by_chance or self.set_aside > MOST_SET_ASIDE * asked else "valid"

    @property
    def valid(self) -> bool:
        """Whether nothing wrong was found, and enough was looked at."""
        return self.verdict == "valid"

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a program to read."""
        told: dict[str, Any] = _finite(asdict(self))
        return told | {
            "share": self.share,
            "unseen": self.unseen,
            "verdict": self.verdict,
            "valid": self.valid,
        }

    def __str__(self) -> str:
        """One line, and the cause."""
        low, high = self.interval
        line = (
            f"{self.augmentation} on {self.environment}: {self.invalid} of {self.samples} transitions are "
            f"invalid at {self.tolerance:g} (95% interval {low:.2%} to {high:.2%} over "
            f"{self.episodes} episodes), "
            f"largest error {self.largest_error:.2g}"
        )
        if self.set_aside:
            line += f", {self.set_aside} more set aside"
        if self.by_chance:
            line += f", {self.by_chance} of them because {self.environment} {ANSWERS_BY_CHANCE}"
        if self.would_repeat is not None:
            line += f" (a tolerance of {self.would_repeat:g} would repeat nearly all)"
        if self.outside:
            line += f", {self.outside_space} lie outside the space, most often in {self.outside[0].name}"
        if self.outside_goals:
            line += f", {self.outside_goals} have goals that the task never sets"
        if self.unseen:
            line += f"; never seen: {', '.join(self.unseen)}"
        if self.dimensions:
            line += f", most often in {self.dimensions[0].name}"
        reason = self.cause or self.description
        return line if reason is None else f"{line}; {reason}"


def _finite(value: Any) -> Any:
    """The same with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
