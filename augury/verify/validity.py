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
from typing import Any

import jax
import numpy as np
from scipy.stats import binomtest

from augury.augmentations.base import Augmentation, needs_of
from augury.errors import UserError
from augury.transition import Transition
from augury.verify.augmenting import augment
from augury.verify.base import Flags, Policy, Simulator, joined
from augury.verify.comparison import Errors, Indices
from augury.verify.explanation import allowance, cause_of
from augury.verify.reports import Contact, Report
from augury.verify.simulators import simulator_of
from augury.verify.subjects import Subject

__all__ = ["assert_dynamics_invariant", "augment", "verify"]

TOLERANCE = 1e-8
CONFIDENCE = 0.95
ENOUGH_REPEATED = 0.1
"""Share of the observed transitions that a simulator must be able to repeat."""
MOST_ROUNDED = 1e-3
"""Errors that a step makes of a state that was rounded to 32 bits."""
MOST_SET_ASIDE = 0.1
"""Share that an assertion may leave out."""


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
        cause=cause_of(simulator, observed, augmented, errors, contact, tolerance),
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
        usual = float(np.quantile(itself.largest, 0.99))
        if simulator.single_precision and usual < MOST_ROUNDED:
            remedy = f"it observes 32 bits, from which a state is restored a little off: {allowance(usual)}"
        else:
            remedy = "restore must bring back all that the next step depends on"
        raise UserError(
            f"{simulator.name} does not repeat its own transitions (off by {worst.largest_error:.2g} in "
            f"{worst.name}): {remedy}"
        )
    return np.flatnonzero(repeated), float(itself.largest[repeated].max())


def _contact(simulator: Simulator, transitions: Transition, wrong: Flags) -> Contact | None:
    touching = simulator.in_contact(transitions)
    if touching is None:
        return None
    counts = (touching, touching & wrong, ~touching, ~touching & wrong)
    return Contact(*(int(flags.sum()) for flags in counts))
