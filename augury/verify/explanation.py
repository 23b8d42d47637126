"""The likely cause of what is wrong, where one is recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from augury.transition import Transition
from augury.verify.base import Answer, Flags, Simulator
from augury.verify.causes import Case, recognised
from augury.verify.comparison import REWARD, TERMINATED, TRUNCATED, Errors
from augury.verify.observations import flat
from augury.verify.precision import SINGLE
from augury.verify.reports import Contact

ROUNDING = 2e-6
"""Errors that the order of a sum in 32 bits explains, relative to the sum where that is above 1."""
ENOUGH_FREE = 20
"""Transitions without contact that it takes to blame the contacts."""
STRAY = 0.05
"""Share of the invalid ones that a cause need not explain: some touched something in between, for example."""


def cause_of(
    simulator: Simulator,
    observed: Transition,
    augmented: Transition,
    errors: Errors,
    contact: Contact | None,
    tolerance: float,
    needs: Sequence[str],
) -> tuple[str | None, str | None]:
    """The cause, and what is recognised but does not explain nearly all that is wrong.

    Independent mistakes are named side by side.
    """
    if simulator.single_precision and tolerance < errors.largest.max() < SINGLE:
        text = f"{simulator.name} computes with 32 bits, and errors are within them: "
        return text + allowance(errors.largest.max()), None
    moved_wrongly: Flags = np.any(errors.scaled[:, : len(simulator.table)] > tolerance, 1)
    misplaced = moved_wrongly | errors.wrong_before(tolerance)
    found: list[str] = []
    unexplained: Flags = np.zeros(len(misplaced), bool)
    for name, field in ((REWARD, "reward"), (TERMINATED, "terminated")):
        amiss = errors.wrong_in(name, tolerance) & ~misplaced
        if amiss.any() and (rounded := errors.rounded(name, ROUNDING)) is not None:
            found.append(
                f"the {name} differs by {rounded:.2g} at most, as sums in 32 bits do: {allowance(rounded)}"
            )
        elif amiss.any() and _stale(observed, augmented, field, amiss):
            found.append(f"the {name} is that of the observed transition: recompute it")
        else:
            unexplained |= amiss
    for extra in needs:
        if extra not in errors.names:
            continue
        amiss = errors.wrong_in(extra, tolerance) & ~misplaced
        if amiss.any() and np.array_equal(augmented.extras[extra][amiss], observed.extras[extra][amiss]):
            found.append(f"the extra '{extra}' is that of the observed transition: map it too")
        else:
            unexplained |= amiss
    if errors.wrong_in(TRUNCATED, tolerance).any():
        found.append("a time limit does not depend on what is observed: truncated must stay as observed")
    if misplaced.any():
        case = Case(simulator, observed, augmented, tolerance)
        motion = _cause_of_motion(case, misplaced, contact, needs)
        if motion is None:
            unexplained |= misplaced
        else:
            found.append(motion)
    said = "; ".join(found) or None
    wrong = errors.largest > tolerance
    return (said, None) if unexplained.sum() <= STRAY * wrong.sum() else (None, said)


def allowance(error: float) -> str:
    """The tolerance to ask for where errors of this size are rounding."""
    return f"a tolerance of {10.0 ** np.ceil(np.log10(2 * error)):.0e} allows for it"


def _cause_of_motion(case: Case, wrong: Flags, contact: Contact | None, needs: Sequence[str]) -> str | None:
    if contact is not None and contact.free >= ENOUGH_FREE and contact.invalid_free <= STRAY * wrong.sum():
        return (
            f"{contact.invalid_touching} of the {wrong.sum()} are in contact: the model's contacts lack the "
            "symmetry, ask `augury symmetry`"
        )
    found = recognised(case, wrong)
    if found is None:
        return None
    tried = case.rows(wrong).rows(found.rows)
    return "; ".join([found.text, *_wrong_too(tried, found.answer, needs)])


def _wrong_too(case: Case, answer: Answer, needs: Sequence[str]) -> Iterator[str]:
    """What the simulator's answer to a repair of the motion leaves wrong, besides."""
    told = {REWARD: answer.reward, TERMINATED: answer.terminated}
    fields = {REWARD: "reward", TERMINATED: "terminated"}
    for name in (*told, *(name for name in needs if name in answer.extras)):
        claimed, seen, truth = (
            (flat(getattr(one, fields[name])) if name in told else one.extras[name]).astype(float)
            for one in (case.augmented, case.observed, answer)
        )
        amiss = np.abs(claimed - truth) > case.tolerance * np.maximum(1, np.abs(truth))
        if amiss.mean() <= STRAY:
            continue
        kind = name if name in told else f"extra '{name}'"
        stale = np.array_equal(claimed[amiss], seen[amiss])
        yield f"the {kind} is {'that of the observed transition' if stale else 'wrong'}, too"


def _stale(observed: Transition, augmented: Transition, field: str, wrong: Flags) -> bool:
    """Whether a field was simply left as it was observed, in every transition where it is wrong."""
    return bool((flat(getattr(augmented, field))[wrong] == flat(getattr(observed, field))[wrong]).all())
