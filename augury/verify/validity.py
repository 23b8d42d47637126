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

from augury.augmentations.base import Augmentation, needs_of
from augury.errors import UserError
from augury.transition import Transition
from augury.verify.augmenting import augment
from augury.verify.base import Flags, Indices, Played, Policy, Rows, Simulator
from augury.verify.comparison import TRUNCATED, Errors
from augury.verify.description import described
from augury.verify.explanation import allowance, cause_of
from augury.verify.intervals import clustered
from augury.verify.played import choose, pool_size, together
from augury.verify.precision import tolerance_for
from augury.verify.recorded import recorded
from augury.verify.reports import ANSWERS_BY_CHANCE, MOST_SET_ASIDE, Contact, Report
from augury.verify.shown import as_shown, as_vectors
from augury.verify.simulators import simulator_of
from augury.verify.spaces import outside_the_goals, outside_the_space
from augury.verify.subjects import Subject
from augury.verify.visits import visited

__all__ = ["assert_dynamics_invariant", "augment", "verify"]

ENOUGH_REPEATED = 0.1
"""Share of the observed transitions that a simulator must be able to repeat."""
LOOKED_AT, ASKED_AGAIN = 100, 3
"""Wrong transitions that are asked about again, to see whether chance decides; and how often, if it does."""
MOST_BY_CHANCE = 0.5
"""Share of the wrong ones that may be answered by chance, before all of them are given up."""
NEARLY_ALL = 0.99
LARGEST_ROUNDING = 1e-3
"""A tolerance that may be suggested."""


def verify(
    augmentation: str | Augmentation,
    environment: Any = None,
    *,
    samples: int = 10_000,
    tolerance: float | None = None,
    policy: Policy | None = None,
    seed: int = 0,
    data: Any = None,
) -> Report:
    """Ask the simulator about an augmentation: a function, a name, or a `module:name`; so is the environment.

    With a policy, half of the transitions are collected under it and half under random actions. The tolerance
    follows from the precision of what is observed: 1e-8, or 1e-5 for 32 bits. With data (an SB3 buffer,
    a dataset of Minari, the path of an .npz file) its transitions are verified, and none are collected.
    """
    if samples < 1:
        raise UserError(f"samples must be at least 1, not {samples}")
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise UserError(f"tolerance must be 0 or more, not {tolerance}")
    if seed < 0:
        raise UserError(f"seed must be 0 or more, not {seed}")
    subject = Subject.of(augmentation, environment)
    simulator, needs = simulator_of(subject.environment), needs_of(subject.augmentation)

    if data is not None:
        pool = recorded(data, simulator)
        _check_extras("the data", pool, needs)
    else:
        pool = _played(simulator, samples, policy, seed)
        _check_extras(simulator.name, pool, needs)
    asked, evenly = choose(simulator, pool, samples, seed)
    if tolerance is None:
        # Most data is recorded with 32 bits.
        tolerance = tolerance_for(simulator.single_precision or data is not None)
    repeated, repeating_error, would = _repeatable(simulator, pool.rows(asked).transition, needs, tolerance)
    kept, evenly = asked[repeated], evenly[repeated]
    observed, episode, _ = pool.rows(kept)
    # An augmentation sees the extras that it needs, and the state, which it may map with the observation. The
    # others go with the transition, to restore it.
    shown = {*needs, "state"} & observed.extras.keys()
    seen = observed._replace(extras={extra: observed.extras[extra] for extra in sorted(shown)})
    augmented = as_vectors(augment(subject.augmentation, as_shown(simulator, seen), seed))
    augmented = augmented._replace(extras=observed.extras | augmented.extras)
    errors = Errors.between(simulator, augmented, needs)
    # A time limit does not depend on what is observed. Only an episode that terminates here is not truncated.
    instead = augmented.terminated & ~augmented.truncated
    errors = errors.beside(TRUNCATED, augmented.truncated, observed.truncated & ~instead)
    outside, where = outside_the_space(simulator, pool.transition, augmented)
    wrong = errors.largest > tolerance
    by_chance = _answered_by_chance(simulator, augmented, errors, wrong, tolerance)
    if by_chance.any():
        if by_chance.all():
            raise UserError(f"{simulator.name} {ANSWERS_BY_CHANCE}: it cannot be verified")
        kept, episode = kept[~by_chance], episode[~by_chance]
        evenly, wrong, outside = evenly[~by_chance], wrong[~by_chance], outside[~by_chance]
        observed, augmented = (_rows(one, ~by_chance) for one in (observed, augmented))
        errors = errors.rows(~by_chance)
    contact = _contact(simulator, augmented, wrong)
    cause = description = None
    if wrong.any():
        cause, besides = cause_of(simulator, observed, augmented, errors, contact, tolerance, needs)
        description = described(simulator, observed, augmented, errors, tolerance, outside)
        description += f"; besides, {besides}" if besides else ""
    return Report(
        augmentation=subject.name,
        environment=simulator.name,
        samples=len(wrong),
        set_aside=len(asked) - len(wrong),
        by_chance=int(by_chance.sum()),
        tolerance=tolerance,
        seed=seed,
        invalid=int(wrong.sum()),
        evenly=int(evenly.sum()),
        invalid_evenly=int(wrong[evenly].sum()),
        episodes=len(np.unique(episode)),
        interval=clustered(wrong[evenly], episode[evenly]),
        outside_space=int(outside.sum()),
        outside=where,
        outside_goals=outside_the_goals(simulator, pool.transition, augmented),
        visited=visited(simulator, observed),
        would_repeat=would,
        largest_error=float(errors.error.max()),
        repeating_error=repeating_error,
        dimensions=errors.dimensions(tolerance),
        contact=contact,
        worst=errors.offenders(wrong, kept),
        cause=cause,
        description=description,
    )


def assert_dynamics_invariant(
    augmentation: str | Augmentation,
    environment: Any = None,
    *,
    samples: int = 1_000,
    tolerance: float | None = None,
    policy: Policy | None = None,
    seed: int = 0,
    data: Any = None,
) -> None:
    """Fail, and say why, where the simulator disagrees with an augmentation: for a test suite of your own."""
    report = verify(
        augmentation, environment, samples=samples, tolerance=tolerance, policy=policy, seed=seed, data=data
    )
    assert report.verdict != "unknown", f"too little evidence: {report}"
    assert report.valid, str(report)


def _played(simulator: Simulator, samples: int, policy: Policy | None, seed: int) -> Played:
    """Observed transitions, at least so many."""
    pool = pool_size(samples, simulator.goals)
    by_policy = pool // 2 if policy is not None else 0
    parts = [simulator.play(pool - by_policy, None, seed)]
    if by_policy:
        parts.append(simulator.play(by_policy, policy, seed + 1))
    return together(parts)


def _check_extras(where: str, pool: Played, needs: Sequence[str]) -> None:
    missing = [name for name in needs if name not in pool.transition.extras]
    if missing:
        raise UserError(f"{where} does not provide the extras {', '.join(missing)}")


def _repeatable(
    simulator: Simulator, observed: Transition, needs: Sequence[str], tolerance: float
) -> tuple[Indices, float, float | None]:
    """Which observed transitions the simulator repeats when restored, and its largest error in them.

    It cannot where the observation does not determine the state, because it was clipped, for example. Where
    that is so for many, the third is a tolerance at which nearly all would be repeated, if there is one.
    """
    itself = Errors.between(simulator, observed, needs)
    repeated = itself.largest <= tolerance
    would = _sufficient(itself.largest) if 1 - repeated.mean() > MOST_SET_ASIDE else None
    if repeated.mean() < ENOUGH_REPEATED:
        worst = itself.dimensions(tolerance)[0]
        if simulator.single_precision and would is not None:
            remedy = (
                f"it observes 32 bits, from which a state is restored a little off: {allowance(would / 2)}"
            )
        else:
            remedy = "restore must bring back all that the next step depends on"
        if itself.raised and not repeated.any():
            raise UserError(f"{simulator.name} fails in its own transitions: {itself.raised}")
        raise UserError(
            f"{simulator.name} does not repeat its own transitions (off by {worst.largest_error:.2g} in "
            f"{worst.name}): {remedy}"
        )
    return np.flatnonzero(repeated), float(itself.error.max(1)[repeated].max()), would


def _answered_by_chance(
    simulator: Simulator, augmented: Transition, errors: Errors, wrong: Flags, tolerance: float
) -> Flags:
    """Which wrong transitions the simulator answers differently when asked again.

    Where chance decides, some are wrong in every answer by chance. So if those whose answers differ are the
    most, the others are given up too.
    """
    rows, by_chance = np.flatnonzero(wrong), np.zeros(len(wrong), bool)
    few = rows[np.unique(np.linspace(0, len(rows) - 1, min(LOOKED_AT, len(rows))).astype(int))]
    if not len(few) or not _differs(simulator, augmented, errors, few, tolerance).any():
        return by_chance
    differs = np.any([_differs(simulator, augmented, errors, rows, tolerance) for _ in range(ASKED_AGAIN)], 0)
    by_chance[rows] = differs if differs.mean() < MOST_BY_CHANCE else True
    return by_chance


def _differs(
    simulator: Simulator, augmented: Transition, errors: Errors, rows: Indices, tolerance: float
) -> Flags:
    """Whether the simulator's answers about these rows differ from those that it gave."""
    asked = _rows(augmented, rows)
    again = Errors.between(simulator, asked, [name for name in errors.names if name in asked.extras])
    told = errors.simulated[rows, : again.simulated.shape[1]]
    differs: Flags = np.any(np.abs(told - again.simulated) > tolerance * np.maximum(1, np.abs(told)), 1)
    return differs


def _rows(transition: Transition, chosen: Any) -> Transition:
    picked: Transition = jax.tree.map(lambda leaf: leaf[chosen], transition)
    return picked


def _sufficient(errors: Rows) -> float | None:
    """The smallest power of ten that nearly all errors are within, if rounding may explain it."""
    most = float(np.quantile(errors, NEARLY_ALL, method="higher"))  # some may be infinite
    power = float(10.0 ** np.ceil(np.log10(max(most, 1e-12))))
    return power if power <= LARGEST_ROUNDING else None


def _contact(simulator: Simulator, transitions: Transition, wrong: Flags) -> Contact | None:
    touching = simulator.in_contact(transitions)
    if touching is None:
        return None
    counts = (touching, touching & wrong, ~touching, ~touching & wrong)
    return Contact(*(int(flags.sum()) for flags in counts))
