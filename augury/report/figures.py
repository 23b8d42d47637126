"""Learning curves: one line per arm, IQM over its agents, 95% bootstrap belt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from augury.envs.base import Measure
from augury.errors import UserError
from augury.fleet import Result
from augury.fleet.files import replacing
from augury.report.statistics import iqm_curve

# Okabe and Ito's palette: told apart by readers who see colours differently, and in grey.
COLOURS = ("#000000", "#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")

LONG_LABEL = 36
"""Characters of which no two labels fit beside each other."""

LABELS: dict[Measure, str] = {"success": "success rate", "returns": "mean return"}


def common_measure(results: Sequence[Result]) -> Measure:
    """What the curves of all these arms show; arms that show different things are not compared."""
    measures: set[Measure] = {result.measure for result in results}
    if len(measures) > 1:
        raise UserError("some of these runs are measured by success, others by returns: report them apart")
    return measures.pop()


def learning_curves(results: Sequence[Result], path: Path) -> None:
    """Draw success or returns over steps for several arms into a PNG."""
    measure = common_measure(results)
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    for index, result in enumerate(results):
        colour = COLOURS[index % len(COLOURS)]
        thousands = result.evaluations["steps"] / 1000
        curve = iqm_curve(result.curves())
        agents = len(result.evaluations["seeds"])
        lost = f", {len(result.diverged)} diverged" if result.diverged else ""
        axes.plot(thousands, curve.middle, color=colour, label=f"{result.label} ({agents} agents{lost})")
        axes.fill_between(thousands, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    axes.set(
        xlabel="environment steps (thousands)",
        ylabel=f"{LABELS[measure]} (IQM, 95% bootstrap belt)",
        ylim=(-0.02, 1.02) if measure == "success" else None,
        xlim=(0, None),
        title=", ".join(sorted({result.asked["environment"] for result in results})),
    )
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    longest = max(len(label) for label in axes.get_legend_handles_labels()[1])
    figure.legend(frameon=False, loc="outside lower center", ncols=2 if longest < LONG_LABEL else 1)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=160)
