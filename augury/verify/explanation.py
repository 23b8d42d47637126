"""The likely cause of what is wrong, where one is recognised."""

from __future__ import annotations

import jax
import numpy as np

from augury.transition import Transition
from augury.verify import causes
from augury.verify.base import Flags, Simulator
from augury.verify.comparison import REWARD, TERMINATED, Errors
from augury.verify.reports import Contact

SINGLE_PRECISION = 1e-5
"""Errors that 32 bits explain."""
ROUNDING = 2e-6
"""Errors that the order of a sum in 32 bits explains, relative to the sum where that is above 1."""
ENOUGH_FREE = 20
"""Transitions without contact that it takes to blame the contacts."""
STRAY = 0.02
"""Share of the invalid ones that may look free of contact: they touched something in between."""


def cause_of(
    simulator: Simulator,
    observed: Transition,
    augmented: Transition,
    errors: Errors,
    contact: Contact | None,
    tolerance: float,
) -> str | None:
    """The likely cause, where one is recognised."""
    if simulator.single_precision and tolerance < errors.largest.max() < SINGLE_PRECISION:
        return (
            f"{simulator.name} computes with 32 bits, and errors are within them: "
            f"{allowance(errors.largest.max())}"
        )
    moved_wrongly: Flags = np.any(errors.error[:, : len(simulator.table)] > tolerance, 1)
    found: list[str | None] = []
    for name, field in ((REWARD, "reward"), (TERMINATED, "terminated")):
        amiss = errors.wrong_in(name, tolerance) & ~moved_wrongly
        if amiss.any() and (rounded := errors.rounded(name, ROUNDING)) is not None:
            found.append(
                f"the {name} differs by {rounded:.2g} at most, as sums in 32 bits do: {allowance(rounded)}"
            )
        elif amiss.any() and causes.stale(observed, augmented, field, amiss):
            found.append(f"the {name} is that of the observed transition: recompute it")
    if moved_wrongly.any():
        found.append(_cause_of_motion(simulator, observed, augmented, moved_wrongly, contact, tolerance))
    elif (misplaced := errors.wrong_before(tolerance)).any():
        found.append(_cause_by_repair(simulator, observed, augmented, misplaced, tolerance))
    return "; ".join(filter(None, found)) or None


def allowance(error: float) -> str:
    """The tolerance to ask for where errors of this size are rounding."""
    return f"a tolerance of {10.0 ** np.ceil(np.log10(2 * error)):.0e} allows for it"


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
