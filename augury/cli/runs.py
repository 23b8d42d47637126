"""Finished runs in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from augury import report
from augury.cli.output import console
from augury.runs import results
from augury.runs.results import Result, rounded


def print_table(found: Sequence[Result], names: Sequence[str] | None = None) -> None:
    """Print a row for each run, under names of its own or those given."""
    if not found:
        return
    names = [result.label for result in found] if names is None else names
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("arm", overflow="fold")
    measure = report.common_measure(found)
    for heading in ("agents", "steps", results.WORDS[measure], "95% belt", "to 0.9", "β", "cover"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in zip(names, map(row_of, found), strict=True):
        middle, low, high = (
            "–" if value is None else results.score(measure, value)
            for value in (row[measure], *row["interval"])
        )
        beta, reached = row["beta"], row["steps to 0.9"]
        table.add_row(
            Text(name),
            str(row["agents"]),
            f"{row['steps']:,}",
            middle,
            f"{low}–{high}",
            "–" if reached is None else f"{reached:,}",
            "–" if beta is None else f"{beta:.3g}",
            "–" if row["coverage"] is None else f"{row['coverage']:.2f}",
        )
    console.print(table)
    for name, result in zip(names, found, strict=True):
        for seed, step in result.diverged.items():
            line = f"{name}: seed {seed} diverged by step {step:,}; it counts with what it scored"
            console.print(line, markup=False)


def row_of(result: Result) -> dict[str, Any]:
    """One arm in a table."""
    evaluations = result.evaluations
    curve = report.iqm_curve(result.curves())
    return {
        "arm": result.label,
        "agents": len(evaluations["seeds"]),
        "steps": int(evaluations["steps"][-1]),
        result.measure: rounded(curve.middle[-1], 3),
        "interval": [rounded(end[-1], 3) for end in (curve.low, curve.high)],
        "steps to 0.9": (
            report.first_to_reach(evaluations["steps"], curve.middle, 0.9)
            if result.measure == "success"
            else None
        ),
        "beta": rounded(result.mean_at_the_end("augmented_replay_ratio"), 5),
        "observed reward density": rounded(result.mean_at_the_end("observed_reward_density"), 5),
        "augmented reward density": rounded(result.mean_at_the_end("augmented_reward_density"), 5),
        "coverage": rounded(result.mean_at_the_end("coverage"), 5),
        "diverged": result.diverged,
        "seconds": round(result.seconds, 1),
    }
