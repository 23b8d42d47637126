"""What the simulator found, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
class Report:
    """What the simulator found."""

    augmentation: str
    environment: str
    samples: int
    set_aside: int
    """Observed transitions, not counted in `samples`, that the environment cannot repeat itself."""
    tolerance: float
    seed: int
    invalid: int
    interval: tuple[float, float]
    """95% confidence interval of the invalid share (Clopper and Pearson); it takes transitions for
    independent, which those of one episode are not quite."""
    largest_error: float
    repeating_error: float
    """The same for the observed transitions themselves: what restoring alone costs."""
    dimensions: tuple[Dimension, ...]
    """Those with an error above the tolerance, the worst first."""
    contact: Contact | None
    worst: tuple[Offender, ...]
    cause: str | None
    """Why, where that can be recognised."""

    @property
    def share(self) -> float:
        """Of transitions that are invalid."""
        return self.invalid / self.samples

    @property
    def valid(self) -> bool:
        return self.invalid == 0

    def as_json(self) -> dict[str, Any]:
        """Plain values, for a program to read."""
        return {**asdict(self), "share": self.share, "valid": self.valid}

    def __str__(self) -> str:
        """One line, and the cause."""
        low, high = self.interval
        line = (
            f"{self.augmentation} on {self.environment}: {self.invalid} of {self.samples} transitions are "
            f"invalid at {self.tolerance:g} (95% interval {low:.2%} to {high:.2%}), "
            f"largest error {self.largest_error:.2g}"
        )
        if self.set_aside:
            line += f", {self.set_aside} more set aside"
        if self.dimensions:
            line += f", most often in {self.dimensions[0].name}"
        return line if self.cause is None else f"{line}; {self.cause}"
