"""Does the simulator agree with an augmentation? Collect, augment, restore, step, compare.

    observed  ← transitions of the environment, under random actions and a policy's
    augmented ← the augmentation of each
    answer    ← the simulator's step from the augmented observation, with the augmented action
    invalid   ← augmented and answer differ in next observation, reward, termination or an extra

Dict observations keep their 32-bit numbers; everything else is compared in double precision. Where a
simulator restores a state from more than the observation, that state must look like the observation.
An augmentation is dynamics-invariant where nothing is invalid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from augury.augmentations.base import Augmentation, conforming, describe, needs_of
from augury.errors import UserError
from augury.replay import copies
from augury.transition import Transition
from augury.verify import causes
from augury.verify.base import Answer, Flags, Policy, Rows, Simulator, joined
from augury.verify.observations import flat
from augury.verify.precision import double_precision
from augury.verify.simulators import simulator_of
from augury.verify.subjects import Subject

Indices = npt.NDArray[np.intp]

TOLERANCE = 1e-8
CONFIDENCE = 0.95
WORST = 5
"""Transitions that a report lists."""
ENOUGH_REPEATED = 0.1
"""Share of the observed transitions that a simulator must be able to repeat."""
MOST_SET_ASIDE = 0.1
"""Share that an assertion may leave out."""
SINGLE_PRECISION = 1e-5
"""Errors that 32 bits explain."""
ENOUGH_FREE = 20
"""Transitions without contact that it takes to blame the contacts."""
STRAY = 0.02
"""Share of the invalid ones that may look free of contact: they touched something in between."""
REWARD, TERMINATED = "reward", "termination"
BEFORE = ", before the step"
"""Behind the name of a number of the observation itself."""


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


def verify(
    augmentation: str | Augmentation,
    environment: Any = None,
    *,
    samples: int = 10_000,
    tolerance: float = TOLERANCE,
    policy: Policy | None = None,
    seed: int = 0,
) -> Report:
    """Ask the simulator about an augmentation: a function, a name, or a `module:name`; so is the environment.

    With a policy, half of the transitions are collected under it and half under random actions.
    """
    if samples < 1:
        raise UserError(f"samples must be at least 1, not {samples}")
    if not 0 <= tolerance < np.inf:
        raise UserError(f"tolerance must be 0 or more, not {tolerance}")
    if seed < 0:
        raise UserError(f"seed must be 0 or more, not {seed}")
    subject = Subject.of(augmentation, environment)
    simulator, needs = simulator_of(subject.environment), needs_of(subject.augmentation)

    collected = _collected(simulator, samples, policy, seed, needs)
    kept, repeating_error = _repeatable(simulator, collected, needs, tolerance)
    observed: Transition = jax.tree.map(lambda leaf: leaf[kept], collected)
    # An augmentation sees the extras that it needs, and the state, which it may map with the observation. The
    # others go with the transition, to restore it.
    shown = {*needs, "state"} & observed.extras.keys()
    seen = observed._replace(extras={extra: observed.extras[extra] for extra in sorted(shown)})
    augmented = augment(subject.augmentation, seen, seed)
    augmented = augmented._replace(extras=observed.extras | augmented.extras)
    errors = Errors.between(simulator, augmented, needs)
    wrong = errors.largest > tolerance
    contact = _contact(simulator, augmented, wrong)
    interval = binomtest(int(wrong.sum()), len(wrong)).proportion_ci(CONFIDENCE, "exact")
    return Report(
        augmentation=subject.name,
        environment=simulator.name,
        samples=len(wrong),
        set_aside=samples - len(wrong),
        tolerance=tolerance,
        seed=seed,
        invalid=int(wrong.sum()),
        interval=(float(interval.low), float(interval.high)),
        largest_error=float(errors.largest.max()),
        repeating_error=repeating_error,
        dimensions=errors.dimensions(tolerance),
        contact=contact,
        worst=errors.offenders(wrong, kept),
        cause=_cause(simulator, observed, augmented, errors, contact, tolerance),
    )


def assert_dynamics_invariant(
    augmentation: str | Augmentation,
    environment: Any = None,
    *,
    samples: int = 1_000,
    tolerance: float = TOLERANCE,
    policy: Policy | None = None,
    seed: int = 0,
) -> None:
    """Fail, and say why, where the simulator disagrees with an augmentation: for a test suite of your own."""
    report = verify(augmentation, environment, samples=samples, tolerance=tolerance, policy=policy, seed=seed)
    assert report.valid, str(report)
    assert report.set_aside <= MOST_SET_ASIDE * samples, f"too little evidence: {report}"


def augment(augmentation: Augmentation, observed: Transition, seed: int) -> Transition:
    """Copy 0 of every row, in double precision; rows are numbered from 0 on, and the seed gives the root."""
    function = partial(copies.copy_of, conforming(describe(augmentation), augmentation), shown={})
    rows = np.arange(len(observed.reward), dtype=np.uint32)
    with double_precision():
        keys = copies.keys(jax.random.key(seed), rows, np.uint32(0))
        augmented = jax.jit(jax.vmap(function))(keys, observed)
        # Here, since NumPy functions may be called only when their results are waited for.
        result: Transition = jax.tree.map(np.asarray, augmented)
    return result


class Errors(NamedTuple):
    """What was claimed and what was simulated, number by number."""

    names: tuple[str, ...]
    claimed: Rows
    simulated: Rows
    error: Rows

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
        return cls(tuple(names), claimed, simulated, np.where(np.isnan(error), np.inf, error))

    @property
    def largest(self) -> Rows:
        """Of each transition."""
        return self.error.max(1)

    def wrong_in(self, name: str, tolerance: float) -> Flags:
        """Which transitions are wrong in this number."""
        return self.error[:, self.names.index(name)] > tolerance

    def wrong_before(self, tolerance: float) -> Flags:
        """Which transitions begin with another observation than the restored state's."""
        before = [name.endswith(BEFORE) for name in self.names]
        return np.any(self.error[:, before] > tolerance, 1)

    def dimensions(self, tolerance: float) -> tuple[Dimension, ...]:
        """The numbers that are wrong somewhere, the most often wrong first."""
        found = [
            Dimension(name, int((column > tolerance).sum()), float(column.max()))
            for name, column in zip(self.names, self.error.T, strict=True)
            if column.max() > tolerance
        ]
        return tuple(sorted(found, key=lambda one: (-one.invalid, -one.largest_error)))

    def offenders(self, wrong: Flags, numbers: Indices) -> tuple[Offender, ...]:
        """The worst transitions; `numbers` says which of those collected each of ours is."""
        order = np.argsort(-self.largest, kind="stable")[: min(WORST, int(wrong.sum()))]
        return tuple(self._offender(row, int(numbers[row])) for row in order.tolist())

    def _offender(self, row: int, number: int) -> Offender:
        column = int(self.error[row].argmax())
        claimed, simulated = float(self.claimed[row, column]), float(self.simulated[row, column])
        return Offender(number, float(self.error[row, column]), self.names[column], claimed, simulated)


def _collected(
    simulator: Simulator, samples: int, policy: Policy | None, seed: int, needs: Sequence[str]
) -> Transition:
    """Observed transitions; they must carry the extras that are needed."""
    by_policy = samples // 2 if policy is not None else 0
    parts = [simulator.collect(samples - by_policy, None, seed)]
    if by_policy:
        parts.append(simulator.collect(by_policy, policy, seed + 1))
    missing = [name for name in needs if name not in parts[0].extras]
    if missing:
        raise UserError(f"{simulator.name} does not provide the extras {', '.join(missing)}")
    return joined(parts)


def _repeatable(
    simulator: Simulator, observed: Transition, needs: Sequence[str], tolerance: float
) -> tuple[Indices, float]:
    """Which observed transitions the simulator repeats when restored, and its largest error in them.

    It cannot where the observation does not determine the state, because it was clipped, for example.
    """
    itself = Errors.between(simulator, observed, needs)
    repeated = itself.largest <= tolerance
    if repeated.mean() < ENOUGH_REPEATED:
        worst = itself.dimensions(tolerance)[0]
        raise UserError(
            f"{simulator.name} does not repeat its own transitions (off by {worst.largest_error:.2g} in "
            f"{worst.name}): restore must bring back all that the next step depends on"
        )
    return np.flatnonzero(repeated), float(itself.largest[repeated].max())


def _contact(simulator: Simulator, transitions: Transition, wrong: Flags) -> Contact | None:
    touching = simulator.in_contact(transitions)
    if touching is None:
        return None
    counts = (touching, touching & wrong, ~touching, ~touching & wrong)
    return Contact(*(int(flags.sum()) for flags in counts))


def _cause(
    simulator: Simulator,
    observed: Transition,
    augmented: Transition,
    errors: Errors,
    contact: Contact | None,
    tolerance: float,
) -> str | None:
    """The likely cause, where one is recognised."""
    if simulator.single_precision and tolerance < errors.largest.max() < SINGLE_PRECISION:
        return f"{simulator.name} computes with 32 bits, and errors are within them: raise the tolerance"
    moved_wrongly: Flags = np.any(errors.error[:, : len(simulator.table)] > tolerance, 1)
    found: list[str | None] = []
    for name, field in ((REWARD, "reward"), (TERMINATED, "terminated")):
        amiss = errors.wrong_in(name, tolerance) & ~moved_wrongly
        if amiss.any() and causes.stale(observed, augmented, field, amiss):
            found.append(f"the {name} is that of the observed transition: recompute it")
    if moved_wrongly.any():
        found.append(_cause_of_motion(simulator, observed, augmented, moved_wrongly, contact, tolerance))
    elif (misplaced := errors.wrong_before(tolerance)).any():
        found.append(_cause_by_repair(simulator, observed, augmented, misplaced, tolerance))
    return "; ".join(filter(None, found)) or None


def _cause_of_motion(
    simulator: Simulator,
    observed: Transition,
    augmented: Transition,
    wrong: Flags,
    contact: Contact | None,
    tolerance: float,
) -> str:
    if contact is not None and contact.free >= ENOUGH_FREE and contact.invalid_free <= STRAY * wrong.sum():
        return (
            f"{contact.invalid_touching} of the {wrong.sum()} are in contact: the model's contacts lack the "
            "symmetry, ask `augury symmetry`"
        )
    if causes.stale(observed, augmented, "next_observation", wrong):
        return "the next observation is that of the observed transition: augment it too"
    if cause := causes.torn(observed, augmented, wrong):
        return cause
    if cause := _cause_by_repair(simulator, observed, augmented, wrong, tolerance):
        return cause
    return "the action is that of the observed transition" * causes.stale(
        observed, augmented, "action", wrong
    )


def _cause_by_repair(
    simulator: Simulator, observed: Transition, augmented: Transition, wrong: Flags, tolerance: float
) -> str | None:
    def rows(transition: Transition) -> Transition:
        picked: Transition = jax.tree.map(lambda leaf: leaf[wrong][: causes.SECOND_LOOK], transition)
        return picked

    return causes.recognised(simulator, rows(observed), rows(augmented), tolerance)
