"""Claims as the page shows them: verdicts in words, with an interval that is drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from augury.report.verdicts import Outcome, Verdict, asked_range, verdicts_of
from augury.runs.statistics import Estimate
from augury.study.claims import Kind
from augury.study.record import Record

SIGNS: dict[Outcome, str] = {"supported": "✓", "contradicted": "✗", "undecided": "?"}
MEASURES: dict[Kind, str] = {"area": "mean of the curve", "final": "end of the curve"}
MARGIN = 0.08
"""Of a drawn interval's scale, on either side."""


class Drawn(NamedTuple):
    """An interval, and the range that was asked for, from 0 to 100 along a scale."""

    middle: float
    low: float
    high: float
    zero: float
    asked_low: float
    asked_high: float


class Line(NamedTuple):
    """A claim's verdict on one task."""

    task: str
    verdict: Outcome
    sign: str
    text: str
    agents: str
    drawn: Drawn | None


class Shown(NamedTuple):
    """A claim."""

    says: str
    compares: str
    lines: list[Line]


class Count(NamedTuple):
    """How many claims got this verdict."""

    verdict: Outcome
    sign: str
    number: int


def claims(record: Record) -> list[Shown]:
    """Claims in their order, each with its tasks."""
    shown = []
    found = iter(verdicts_of(record))
    for claim in record.claims:
        ours = list(itertools.islice(found, len(claim.tasks or record.tasks)))
        first, second = claim.arms
        lines = [_line(one, _scale(record, one, ours)) for one in ours]
        shown.append(Shown(claim.says, f"{MEASURES[claim.measure]}: {first} less {second}", lines))
    return shown


def counts(shown: Sequence[Shown]) -> list[Count]:
    """How many verdicts there are of each kind."""
    every = [line.verdict for claim in shown for line in claim.lines]
    return [Count(kind, sign, every.count(kind)) for kind, sign in SIGNS.items() if kind in every]


def _line(one: Verdict, scale: tuple[float, float]) -> Line:
    first, second = one.agents
    agents = f"{first:,} agents an arm" if first == second else f"{first:,} and {second:,} agents"
    return Line(one.task, one.verdict, SIGNS[one.verdict], one.text, agents, _drawn(one, scale))


def _estimate(one: Verdict) -> Estimate | None:
    """The difference, where all of it is finite."""
    if one.difference is None or one.low is None or one.high is None:
        return None
    found = Estimate(one.difference, one.low, one.high)
    return found if all(map(math.isfinite, found)) else None


def _scale(record: Record, one: Verdict, of_claim: Sequence[Verdict]) -> tuple[float, float]:
    """From where to where intervals are drawn: rates of success share a scale, returns of tasks do not."""
    returns = any(finished.result.measure == "returns" for finished in record.on(one.task))
    estimates = [_estimate(other) for other in ([one] if returns else of_claim)]
    ends = [0.0, *(bound for bound in asked_range(one.claim) if math.isfinite(bound))]
    ends += [end for found in estimates if found is not None for end in found]
    margin = MARGIN * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


def _drawn(one: Verdict, scale: tuple[float, float]) -> Drawn | None:
    found = _estimate(one)
    if found is None:
        return None
    low, high = scale

    def place(value: float) -> float:
        return round(100 * (min(max(value, low), high) - low) / (high - low), 2)

    asked = asked_range(one.claim)
    return Drawn(
        middle=place(found.middle),
        low=place(found.low),
        high=place(found.high),
        zero=place(0.0),
        asked_low=place(asked.low),
        asked_high=place(asked.high),
    )
