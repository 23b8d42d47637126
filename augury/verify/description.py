"""What errors look like, where no cause is recognised: which numbers, by how much, and in which states."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from augury.transition import Transition
from augury.verify.base import Flags, Rows, Simulator
from augury.verify.comparison import BEFORE, Errors
from augury.verify.observations import flat

NUMBERS = 3
"""Numbers that are described."""
NEARLY_ALL = 0.95
CONCENTRATED = 0.9
"""Share of the wrong ones in states of a kind that is worth a word, if it is rarer otherwise."""
ENOUGH = 5
NOISY = 0.8
"""Share of an error's variance without an explanation that is called noise."""
MOST_AT_AN_END = 0.5
"""Share of the transitions up to which those at the end of a number's range are at something like a wall."""


def described(
    simulator: Simulator,
    observed: Transition,
    augmented: Transition,
    errors: Errors,
    tolerance: float,
    outside: Flags,
) -> str:
    """A few words."""
    refused: Flags = np.all(np.isnan(errors.simulated[:, : len(simulator.table)]), 1) & bool(errors.raised)
    wrong = (errors.scaled > tolerance) & ~refused[:, None]
    any_wrong: Flags = np.any(wrong, 1)
    # Errors spread over a robot: the number that is most wrong for its size is nearest to the mistake.
    size = np.median(errors.scaled, 0) / np.maximum(np.std(errors.simulated, 0), 1e-9)
    order = np.lexsort((-np.nan_to_num(size, posinf=1e9), -np.round(wrong.mean(0), 1)))
    worst = [int(place) for place in order if wrong[:, place].any()]
    parts = [_number(errors, place, wrong[:, place], tolerance) for place in worst[:NUMBERS]]
    more = len(worst) - NUMBERS
    parts += [f"and {more} more number{'s' * (more > 1)}"] if more > 0 else []
    if refused.any():
        parts.insert(0, f"{simulator.name} raises {errors.raised} in {refused.sum()} transitions")
    said = "; ".join(parts)
    where = list(_states(simulator, observed, augmented, outside, any_wrong))
    said += f"; nearly all of them {' and '.join(where)}" if where else ""
    moves = wrong[:, : len(simulator.table)].any()  # else the model agrees, and only rewards or ends do not
    if simulator.model is not None and moves and _mirrors(observed, augmented):
        said += "; it maps like a mirror: ask `augury symmetry` whether the model has that symmetry"
    return said


def _number(errors: Errors, place: int, wrong: Flags, tolerance: float) -> str:
    claimed, simulated = errors.claimed[wrong], errors.simulated[wrong]
    typical = float(np.median(errors.error[wrong, place]))
    looks = next(_looks(errors, place, claimed, simulated, tolerance), "")
    rare = wrong.mean() < 0.01
    often = f"{wrong.sum()} of {len(wrong):,}" if rare else f"{wrong.mean():.0%} of the"
    return f"{errors.names[place]} is off by {typical:.2g} in {often} transitions{looks}"


def _looks(errors: Errors, place: int, claimed: Rows, simulated: Rows, tolerance: float) -> Iterator[str]:
    """What the error of one number looks like, the plainest first."""
    own, truth = claimed[:, place], simulated[:, place]
    difference = own - truth
    own_before = errors.names[place] + BEFORE

    def mostly(near: Rows) -> bool:
        return bool((np.abs(near) <= 10 * tolerance * np.maximum(1, np.abs(truth))).mean() >= NEARLY_ALL)

    if len(own) < ENOUGH:
        return
    if mostly(own + truth):
        yield ": its sign"
    for other, name in enumerate(errors.names):
        if other != place and np.ptp(truth) > 0 and mostly(own - simulated[:, other]):
            yield ": it is as before the step" if name == own_before else f": it is what {name} should be"
        if other != place and np.ptp(truth) > 0 and mostly(own + simulated[:, other]):
            yield f": it is what {name} should be, with the other sign"
    turns = difference / (2 * np.pi)
    if np.round(turns).any() and mostly(turns - np.round(turns)):
        yield ": by whole turns"
    if mostly(difference - np.median(difference)):
        yield f": by a constant, {np.median(difference):.3g}"
    with np.errstate(all="ignore"):
        factors = own / truth
    factor = float(np.median(factors[np.isfinite(factors)])) if np.isfinite(factors).any() else np.nan
    if np.isfinite(factor) and mostly(own - factor * truth):
        yield f": by a factor, {factor:.3g}"
    if _unexplained(difference, simulated) > NOISY:
        yield ": to either side, as noise would be"


def _unexplained(difference: Rows, simulated: Rows) -> float:
    """The share of the error's variance that no linear function of what was simulated explains."""
    inputs = np.column_stack([simulated, np.ones(len(simulated))])
    if len(inputs) < 3 * inputs.shape[1] or not np.isfinite(difference).all() or np.ptp(difference) == 0:
        return 0.0
    fit, *_ = np.linalg.lstsq(inputs, difference, rcond=None)
    return float(np.var(difference - inputs @ fit) / np.var(difference))


def _states(
    simulator: Simulator, observed: Transition, augmented: Transition, outside: Flags, wrong: Flags
) -> Iterator[str]:
    """In which states the wrong ones are, where others are not."""
    if wrong.sum() < ENOUGH or wrong.all():
        return
    meetings = {"in contact": simulator.in_contact, "at a joint's limit": simulator.at_limit}
    for name, meets in meetings.items():
        before, after = meets(observed), meets(augmented)
        if before is None or after is None:
            continue
        if _concentrated(after, wrong):
            yield name
        elif _concentrated(before | after, wrong):
            yield f"{name} before or after they are augmented"
    others = {
        "where an episode terminates": np.asarray(observed.terminated),
        "outside the space": outside,
        "where a number is at the end of its range, as at a wall": _at_an_end(observed),
    }
    yield from (name for name, flags in others.items() if _concentrated(flags, wrong))


def _concentrated(flags: Flags, wrong: Flags) -> bool:
    """Whether nearly all of the wrong ones are of a kind, and few of the others."""
    return bool(flags[wrong].mean() >= CONCENTRATED and flags[~wrong].mean() < CONCENTRATED / 2)


def _at_an_end(observed: Transition) -> Flags:
    """Which transitions end where a number is as large or as small as it ever gets, with several others.

    Numbers that are clipped do that; numbers of which there are few do too, and tell nothing.
    """
    there = np.zeros(len(observed.reward), bool)
    for column in flat(observed.next_observation).T:
        if len(np.unique(column)) < len(column) / 4:
            continue
        for end in (column.min(), column.max()):
            flags = column == end
            if ENOUGH <= flags.sum() <= MOST_AT_AN_END * len(column):
                there |= flags
    return there


def _mirrors(observed: Transition, augmented: Transition) -> bool:
    """Whether every augmented number is an observed one, or its negative: then some symmetry is claimed."""
    seen, said = flat(observed.observation), flat(augmented.observation)
    if np.array_equal(seen, said):
        return False
    return all(
        any(np.array_equal(own, sign * other) for other in seen.T for sign in (1, -1)) for own in said.T
    )
