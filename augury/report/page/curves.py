"""Curves as numbers that the page's script draws."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from augury.report.figures import LABELS, common_measure, style
from augury.runs.scores import Scores
from augury.runs.statistics import Statistic, aggregate_curve
from augury.study.record import Finished, Record

STATISTICS: dict[Statistic, str] = {"iqm": "IQM", "mean": "mean"}
DIGITS = 5
"""Significant digits of numbers; more would not be visible."""


class Entry(NamedTuple):
    """How an arm appears in legends and curves."""

    place: int
    """Its index among the study's arms."""
    name: str
    colour: int
    dashed: bool


def entry(record: Record, place: int) -> Entry:
    """An arm keeps its colour, whichever others are missing."""
    return Entry(place, record.arms[place], *style(place))


def legend(record: Record) -> list[Entry]:
    """The arms that have curves."""
    seen = {one.name for one in record.finished}
    return [entry(record, place) for place, name in enumerate(record.arms) if name in seen]


def panels(record: Record) -> list[dict[str, Any]]:
    """For each task its label and its arms' curves, by statistic and by axis."""
    return [_panel(record, record.on(task)) for task in record.tasks]


def _panel(record: Record, finished: list[Finished]) -> dict[str, Any]:
    if not finished:
        return {"arms": []}
    measure = common_measure([one.result for one in finished])
    return {
        "label": LABELS[measure],
        "share": measure == "success",
        "arms": [{"place": record.arms.index(one.name), **_curves(one)} for one in finished],
    }


def _curves(one: Finished) -> dict[str, Any]:
    evaluations, scores = one.result.evaluations, one.result.curves()
    found: dict[str, Any] = {axis: evaluations[axis].tolist() for axis in ("steps", "updates")}
    for statistic in STATISTICS:
        curve = aggregate_curve(scores, statistic)
        found[statistic] = {name: _numbers(values) for name, values in curve._asdict().items()}
    return found


def _numbers(values: Scores) -> list[float | None]:
    """JSON has no infinite numbers."""
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values.tolist()]
