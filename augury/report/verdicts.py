"""Verdicts: what a study's results say about its claims.

A claim asks for a range of differences between two arms: IQM less IQM of their agents' scores. If the 95%
interval of what was found lies in that range, the claim is *supported*; if the two lie apart, *contradicted*;
else it is *undecided*, and takes more agents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import harmonic_mean
from typing import Any, Literal, NamedTuple

import numpy as np

from augury.runs.results import Result
from augury.runs.scores import Scores
from augury.runs.statistics import Estimate, area, between, difference, final
from augury.study.claims import Axis, Claim
from augury.study.record import Record

Outcome = Literal["supported", "contradicted", "undecided"]

FEWEST_AGENTS = 4
"""Per arm, for a verdict: 95% intervals tell equal arms apart 30% of the time with 2, 20% with 3, 7% with 4.

By benchmarks/calibration.py.
"""
MOST_AGENTS = 10_000
"""Larger numbers of agents are not estimated."""
ROUNDING = 1e-9
"""Of the largest score: ends of an interval that are nearer to a bound touch it."""


@dataclass(frozen=True)
class Verdict:
    """What the results say about a claim on one task."""

    claim: Claim
    task: str
    verdict: Outcome
    agents: tuple[int, int]
    """In the two arms; 0 in one that has not been run."""
    text: str
    """The numbers and what was asked for, or why there are none, in a line."""
    difference: float | None = None
    """The first arm's IQM less the second's, and the ends of its 95% interval; None if not compared."""
    low: float | None = None
    high: float | None = None
    agents_needed: int | None = None
    """Per arm, to decide the claim if the difference stays; `MOST_AGENTS` means that many or more.

    None if it is decided, or cannot be estimated.
    """

    def as_json(self) -> dict[str, Any]:
        """For a program; infinite numbers, which JSON does not have, are null."""
        return {
            "claim": self.claim.says,
            "task": self.task,
            "verdict": self.verdict,
            "arms": list(self.claim.arms),
            "measure": self.claim.measure,
            "asked": [_json_number(bound) for bound in asked_range(self.claim)],
            "difference": _json_number(self.difference),
            "interval": [_json_number(self.low), _json_number(self.high)],
            "agents": list(self.agents),
            "agents_needed": self.agents_needed,
            "text": self.text,
        }


class Range(NamedTuple):
    """Differences that a claim asks for."""

    low: float
    high: float


def verdicts_of(record: Record) -> list[Verdict]:
    """One for each claim and each task it is about."""
    return [_verdict(record, claim, task) for claim in record.claims for task in claim.tasks or record.tasks]


def asked_range(claim: Claim) -> Range:
    """Better: above the lower bound. Alike: within both bounds, or on one."""
    if claim.alike is None:
        return Range(claim.by, math.inf)
    assert claim.within is not None, "checked when the study was read"
    return Range(-claim.within, claim.within)


def _verdict(record: Record, claim: Claim, task: str) -> Verdict:
    found = {one.name: one.result for one in record.on(task)}
    arms = [found[name] for name in claim.arms if name in found]
    absent = [_why_absent(record, task, name) for name in claim.arms if name not in found]
    why = "; ".join(absent) or _why_not_compared(record.x_axis, *arms)
    if why:
        first, second = (len(found[name].curves()) if name in found else 0 for name in claim.arms)
        return Verdict(claim, task, "undecided", (first, second), why)
    return _compared(claim, task, record.x_axis, *arms)


def _compared(claim: Claim, task: str, axis: Axis, first: Result, second: Result) -> Verdict:
    span = _common_span(axis, first, second)
    ours, theirs = (_scores(claim, axis, arm, span) for arm in (first, second))
    found, asked, rounding = difference(ours, theirs), asked_range(claim), _rounding(ours, theirs)
    text = _numbers(claim, found) + _over(claim, axis, span, first, second)
    agents, needed = (len(ours), len(theirs)), None
    outcome = _outcome(found, asked, rounding)
    if outcome == "undecided":
        needed = _agents_needed(harmonic_mean(agents), _times_narrower(found, asked, rounding))
        text += _what_it_takes(found, needed)
    return Verdict(claim, task, outcome, agents, text, *found, needed)


def _why_absent(record: Record, task: str, name: str) -> str:
    failed = record.failed.get((task, name))
    return f"{name} has not been run" if failed is None else f"{name} failed: {failed}"


def _why_not_compared(axis: Axis, first: Result, second: Result) -> str:
    """Empty if they can be."""
    if first.measure != second.measure:
        return "one arm is measured by success, the other by returns"
    begin, end = _common_span(axis, first, second)
    if begin > end:
        return f"the arms were evaluated at no common {axis}"
    fewest = min(len(first.curves()), len(second.curves()))
    if fewest < FEWEST_AGENTS:
        return f"too few agents for an interval: {fewest} in an arm, and it takes {FEWEST_AGENTS}"
    return ""


def _common_span(axis: Axis, *arms: Result) -> tuple[int, int]:
    """From where to where all arms were evaluated."""
    begin = max(int(arm.evaluations[axis][0]) for arm in arms)
    end = min(int(arm.evaluations[axis][-1]) for arm in arms)
    return begin, end


def _scores(claim: Claim, axis: Axis, arm: Result, span: tuple[int, int]) -> Scores:
    """One for each agent."""
    places, curves = between(arm.evaluations[axis], arm.curves(), *span)
    return area(places, curves) if claim.measure == "area" else final(curves)


def _rounding(*scores: Scores) -> float:
    every = np.abs(np.concatenate(scores))
    return ROUNDING * max(1.0, every[np.isfinite(every)].max(initial=0.0))


def _outcome(found: Estimate, asked: Range, rounding: float) -> Outcome:
    # "Alike" includes its bounds, "better" does not.
    edge = rounding if math.isinf(asked.high) else -rounding
    if found.low > asked.low + edge and found.high <= asked.high - edge:
        return "supported"
    if found.high < asked.low - rounding or found.low > asked.high + rounding:
        return "contradicted"
    return "undecided"


def _times_narrower(found: Estimate, asked: Range, rounding: float) -> float | None:
    """How much narrower the interval must be to decide, around the same middle; None if none would do."""
    below, above = found.middle - found.low, found.high - found.middle
    over, under = found.middle - asked.low, asked.high - found.middle
    if not math.isfinite(below + above) or min(abs(over), abs(under)) <= rounding:
        return None
    if over < 0:
        return above / -over
    if under < 0:
        return below / -under
    return max(below / over, above / under)


def _agents_needed(agents: float, times_narrower: float | None) -> int | None:
    """An interval's width goes with √(1/n + 1/m)."""
    if times_narrower is None:
        return None
    return min(MOST_AGENTS, math.floor(agents * max(1.0, times_narrower) ** 2) + 1)


def _numbers(claim: Claim, found: Estimate) -> str:
    """As in: 0.12 [0.05, 0.19], asked for more than 0."""
    decimals = _decimals(found.high - found.low)
    middle, low, high = (f"{number:z,.{decimals}f}" for number in found)
    asked = f"more than {claim.by:g}" if claim.alike is None else f"at most {claim.within:g} either way"
    return f"{middle} [{low}, {high}], asked for {asked}"


def _decimals(width: float) -> int:
    """So many that the width of an interval has two digits."""
    return min(6, max(0, 1 - math.floor(math.log10(width)))) if 0 < width < math.inf else 2


def _over(claim: Claim, axis: Axis, span: tuple[int, int], *arms: Result) -> str:
    """Says so if some evaluations of an arm are left out."""
    begin, end = span
    longer = any(arm.evaluations[axis][-1] > end for arm in arms)
    if claim.measure == "final":
        return f", at {end:,} {axis}" if longer else ""
    earlier = any(arm.evaluations[axis][0] < begin for arm in arms)
    return f", from {begin:,} to {end:,} {axis}" if longer or earlier else ""


def _what_it_takes(found: Estimate, needed: int | None) -> str:
    if needed is not None:
        agents = f"about {needed:,}" if needed < MOST_AGENTS else f"{MOST_AGENTS:,} or more"
        return f"; {agents} agents an arm would decide it"
    if not all(map(math.isfinite, found)):
        return "; too many agents diverged"
    return "; no number of agents decides a difference that is just the bound"


def _json_number(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None
