"""Learning curves: one line per arm, IQM over its agents, 95% bootstrap belt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextToPath
from matplotlib.ticker import MaxNLocator

from augury.envs.base import Measure
from augury.errors import UserError
from augury.files import replacing
from augury.runs.results import Result
from augury.runs.statistics import iqm_curve
from augury.study.claims import Axis
from augury.study.record import Record

# Okabe and Ito's palette, which colour-blind readers can distinguish.
COLOURS = ("#000000", "#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")

LABELS: dict[Measure, str] = {"success": "success rate", "returns": "mean return"}
AXES: dict[Axis, str] = {"steps": "environment steps", "updates": "updates"}

PANELS_A_ROW = 5
PANEL_WIDTH, PANEL_HEIGHT = 2.4, 2.2
"""In inches; a panel alone is larger."""
ALONE = 1.6
FONTS: dict[Any, Any] = {"font.size": 9, "lines.linewidth": 1.4, "pdf.fonttype": 42}
"""The last makes PDFs hold letters, not their outlines."""
POINTS_AN_INCH = 72
LEGEND_LINE, LEGEND_ENTRY = 0.2, 0.55
"""In inches: the height of a line of a legend, and the width of an entry without its name."""


class Style(NamedTuple):
    """How an arm's line is drawn."""

    colour: int
    """Index into `COLOURS`."""
    dashed: bool


def style(arm: int) -> Style:
    """The style of an arm by its index; when the colours are used up, lines are dashed."""
    return Style(arm % len(COLOURS), bool(arm // len(COLOURS) % 2))


def common_measure(results: Sequence[Result]) -> Measure:
    """What the curves of all these arms show; arms with different measures are not compared."""
    measures: set[Measure] = {result.measure for result in results}
    if len(measures) > 1:
        raise UserError("some of these runs are measured by success, others by returns: report them apart")
    return measures.pop()


def study_figure(record: Record, folder: Path) -> list[Path]:
    """Draw a study as the paper does, a panel per task, into a PNG and a PDF named after it."""
    with mpl.rc_context(FONTS):
        figure = _panels(record)
        paths = [folder / f"{record.name}.{ending}" for ending in ("png", "pdf")]
        for path, dated in zip(paths, ({}, {"CreationDate": None}), strict=True):
            with replacing(path) as temporary:
                figure.savefig(temporary, format=path.suffix[1:], dpi=200, metadata=dated)
    return paths


def _panels(record: Record) -> Figure:
    """Panels above, the legend of them all below."""
    count = len(record.tasks)
    rows = math.ceil(count / PANELS_A_ROW)
    columns = math.ceil(count / rows)
    scale = ALONE if count == 1 else 1.0
    height = scale * PANEL_HEIGHT * rows
    entries = [LEGEND_ENTRY + _width(name) for name in record.arms]
    width = max(scale * PANEL_WIDTH * columns, *entries)
    across = _across(entries, width)
    below = LEGEND_LINE * (math.ceil(len(entries) / across) + 0.5)
    figure = Figure(figsize=(width, height + below), layout="constrained")
    above, beneath = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, below)).ravel()
    grid = above.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[count:]:
        axes.remove()

    measures = {one.result.measure for one in record.finished}
    unit, in_units = _unit(record)
    lines: dict[str, Line2D] = {}
    for task, axes in zip(record.tasks, grid, strict=False):
        axes.set_title(task, parse_math=False, fontsize="medium")
        lines |= _panel(axes, record, task, unit)
        if len(measures) > 1 and record.on(task):
            axes.set_ylabel(LABELS[record.on(task)[0].result.measure])
    above.supxlabel(f"{AXES[record.x_axis]} ({in_units})", fontsize="medium")
    if len(measures) == 1:
        above.supylabel(f"{LABELS[measures.pop()]} (IQM)", fontsize="medium")
    _legend(beneath, {name: lines[name] for name in record.arms if name in lines}, across)
    return figure


def _panel(axes: Axes, record: Record, task: str, unit: int) -> dict[str, Line2D]:
    """Draw the arms of one task; their lines, by name."""
    finished = record.on(task)
    if not finished:
        axes.text(0.5, 0.5, "not run yet", ha="center", color="0.5", transform=axes.transAxes)
        axes.set(xticks=(), yticks=())
        return {}
    lines, last = {}, 0.0
    for one in finished:
        x = one.result.evaluations[record.x_axis] / unit
        lines[one.name] = _draw(axes, record.arms.index(one.name), x, one.result)
        last = max(last, float(x[-1]))
    _dress(axes, common_measure([one.result for one in finished]))
    axes.set_xlim(0, last or None)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 2.5, 5, 10)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    return lines


def _legend(place: SubFigure, lines: dict[str, Line2D], across: int) -> None:
    legend = place.legend(lines.values(), ["-"] * len(lines), frameon=False, loc="center", ncols=across)
    for text, name in zip(legend.get_texts(), lines, strict=True):
        # As labels, names that begin with "_" would be left out, and those with "$" read as formulas.
        text.set(text=name, parse_math=False)


def _width(name: str) -> float:
    """Of a text in a legend, in inches."""
    font = FontProperties(size=mpl.rcParams["legend.fontsize"])
    return TextToPath().get_text_width_height_descent(name, font, ismath=False)[0] / POINTS_AN_INCH


def _across(entries: Sequence[float], width: float) -> int:
    """How many columns of a legend fit; entries run down the columns, which are as wide as their widest."""
    for rows in range(1, len(entries)):
        across = math.ceil(len(entries) / rows)
        columns = np.array_split(entries, across)  # as Matplotlib does
        if sum(column.max() for column in columns) <= width:
            return across
    return 1


def _unit(record: Record) -> tuple[int, str]:
    """By what the horizontal axis is divided, and how it says so."""
    largest = max((int(one.result.evaluations[record.x_axis][-1]) for one in record.finished), default=0)
    return (1_000_000, "millions") if largest >= 1_000_000 else (1_000, "thousands")


def _draw(axes: Axes, arm: int, x: npt.NDArray[np.floating[Any]], result: Result) -> Line2D:
    """An arm's line and belt; what is not finite cannot be drawn."""
    middle, low, high = (np.where(np.isfinite(part), part, np.nan) for part in iqm_curve(result.curves()))
    place, dashed = style(arm)
    (line,) = axes.plot(x, middle, "--" if dashed else "-", color=COLOURS[place])
    if len(x) == 1:
        line.set(marker="o", markersize=4)
    axes.fill_between(x, low, high, color=COLOURS[place], alpha=0.18, linewidth=0)
    return line


def _dress(axes: Axes, measure: Measure) -> None:
    axes.set(ylim=(-0.02, 1.02) if measure == "success" else None, xlim=(0, None))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
