"""The table of arms: a row for each, as text."""

from __future__ import annotations

import math
from typing import NamedTuple

from augury.report.page.curves import Entry, entry
from augury.runs.results import Result, score
from augury.runs.statistics import Curve, aggregate_curve, area, steps_to_reach
from augury.study.claims import Axis
from augury.study.record import Record

THRESHOLD = 0.9
"""Of success."""
NONE = "–"


class Column(NamedTuple):
    """What a column is called, and what stands in it."""

    name: str
    about: str = ""


COLUMNS = (
    Column("arm"),
    Column("agents"),
    Column("steps", "of each agent in the environment"),
    Column("final", "success rate, or return, at the last evaluation"),
    Column("area", "mean of the whole curve"),
    Column(f"steps to {THRESHOLD}", f"first evaluation with a success rate of {THRESHOLD}"),
    Column("β", "updates for each augmented transition generated, as measured"),
    Column("observed density", "share of observed transitions that carry the reward of success"),
    Column("augmented density", "share of augmented transitions that carry the reward of success"),
    Column("coverage", "share of cells of states and actions that observed or augmented transitions reach"),
)


class Cell(NamedTuple):
    """A value and its confidence interval."""

    value: str
    interval: str = ""


class Row(NamedTuple):
    """An arm; or why there is none."""

    arm: Entry
    cells: list[Cell]
    absent: str = ""


class Panel(NamedTuple):
    """The arms of one task."""

    task: str
    rows: list[Row]


def table(record: Record) -> list[Panel]:
    """Every arm on every task, whether it has been run or not."""
    asked = set(record.everything)
    return [
        Panel(
            task, [_row(record, task, arm) for arm, name in enumerate(record.arms) if (task, name) in asked]
        )
        for task in record.tasks
    ]


def absent(record: Record) -> str:
    """How many arms are missing, in words; empty if none is."""
    missing, everything = len(record.missing), len(record.everything)
    failed = sum(arm in record.failed for arm in record.missing)
    kinds = [
        f"{number} {kind}"
        for number, kind in ((failed, "failed"), (missing - failed, "not run yet"))
        if number
    ]
    return f"{missing} of {everything} arms are missing: {', '.join(kinds)}" if missing else ""


def _row(record: Record, task: str, arm: int) -> Row:
    shown = entry(record, arm)
    for one in record.on(task):
        if one.name == shown.name:
            return Row(shown, _cells(one.result, record.x_axis))
    reason = record.failed.get((task, shown.name))
    return Row(shown, [], "not run yet" if reason is None else f"failed: {reason}")


def _cells(result: Result, axis: Axis) -> list[Cell]:
    evaluations, scores = result.evaluations, result.curves()
    curve = aggregate_curve(scores)
    lost = f"({len(result.diverged)} diverged)" if result.diverged else ""
    return [
        Cell(f"{len(scores):,}", lost),
        Cell(_short(evaluations["steps"][-1])),
        _estimated(result, Curve(*(values[-1] for values in curve))),
        _estimated(result, aggregate_curve(area(evaluations[axis], scores))),
        _reached(result),
        _mean(result, "augmented_replay_ratio", "{:.3g}"),
        _mean(result, "observed_reward_density", "{:.2%}"),
        _mean(result, "augmented_reward_density", "{:.2%}") if _augments(result) else Cell(NONE),
        _mean(result, "coverage", "{:.1%}"),
    ]


def _augments(result: Result) -> bool:
    return result.asked["augmentation"] is not None and float(result.asked["ratio"]) != 0


def _estimated(result: Result, found: Curve) -> Cell:
    middle, low, high = (score(result.measure, float(value)) for value in found)
    return Cell(middle, f"[{low}, {high}]")


def _reached(result: Result) -> Cell:
    if result.measure != "success":
        return Cell(NONE)
    steps = result.evaluations["steps"]
    found = steps_to_reach(steps, result.curves(), THRESHOLD)
    middle, low, high = (f">{_short(steps[-1])}" if step is None else _short(step) for step in found)
    return Cell(middle, f"[{low}, {high}]" if found.low is not None else "")


def _short(steps: int) -> str:
    """As axes have it: 10k, 1.5M; evaluations come at the end of a round, 60,032 for 60,000."""
    rounded = float(f"{steps:.3g}")
    for size, sign in ((1_000_000, "M"), (1_000, "k")):
        if rounded >= size:
            return f"{rounded / size:g}{sign}"
    return str(steps)


def _mean(result: Result, name: str, shown: str) -> Cell:
    mean = result.mean_at_the_end(name)
    return Cell(shown.format(mean) if math.isfinite(mean) else NONE)
