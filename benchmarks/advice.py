"""The table behind `augury advise`, made of trained arms and of what a pilot says about each beforehand.

    augury study run advice-point advice-reacher … --out runs/advice     # trains; resumes where it stopped
    python benchmarks/advice.py runs/advice results/goal2d/figure-{1,11,5-goal2d}
    python benchmarks/prediction.py results/advice/table.csv --write

Every task gets a pilot, and every arm its signals: that takes half a second an arm. They are kept in
`signals.jsonl` in the first folder, and measured once: remove it where signals mean something else now. The
learning curves of families' arms are written beside the table, as `curves.npz`. With --add, arms that are in
the table and not in the folders stay in it, with signals as they are measured now. It prints what each study
trained: an arm of several studies counts in the first.
The last command judges predictions on families that they never saw, and writes the coefficients that are
shipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.progress import track

from augury.advise import ground_truth, table
from augury.advise.pilot import Pilot, gather, pilot_steps_for
from augury.advise.signals.measuring import Signals as Measurement
from augury.advise.signals.measuring import measuring
from augury.advise.table import Described
from augury.errors import UserError
from augury.files import replacing
from augury.fleet import Arm, keep_compiled, resolved
from augury.runs.results import Result
from augury.study.record import Record
from augury.study.store import Store

DECISIVE = ("task", "algorithm", "replay_ratio", "steps", "augmentation", "ratio", "update_ratio")
"""Settings of an arm that its signals follow from."""

CURVE_OF = ("environment", "algorithm", "updates", "augmentation", "ratio", "update_ratio", "policy_data")
"""Settings that tell curves apart, beside the steps of their evaluations."""

Signals = dict[str, float | None]
Columns = dict[str, Any]  # arrays


@lru_cache(maxsize=1)
def pilot_of(environment: str, algorithm: str, replay_ratio: float, steps: int) -> Pilot:
    """Arms come task by task, so that one is kept at a time."""
    collect = resolved(Arm(environment=environment)).collect
    updates = round(replay_ratio * collect)
    return gather(environment, steps=pilot_steps_for(steps), algorithm=algorithm, updates=updates)


class Kept:
    """Signals by arm, in a file with a line for each."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._held: dict[str, Signals] = {}
        if file.exists():
            whole, _, cut_off = file.read_text().rpartition("\n")
            self._held = dict(map(json.loads, whole.splitlines()))
            if cut_off:
                file.write_text(f"{whole}\n" if whole else "")

    def of(self, arm: Described) -> Signals:
        """Measured now, unless they were before."""
        key = str([getattr(arm, name) for name in DECISIVE])
        if key not in self._held:
            self._held[key] = signals_of(arm)
            with self._file.open("a") as opened:
                opened.write(json.dumps([key, self._held[key]]) + "\n")
        return self._held[key]


@lru_cache(maxsize=1)
def measured(
    environment: str, algorithm: str, replay_ratio: float, steps: int, augmentation: str, ratio: float
) -> Callable[[float], Measurement]:
    """What α does not change is measured once."""
    pilot = pilot_of(environment, algorithm, replay_ratio, steps)
    return measuring(pilot, augmentation, ratio=ratio, seed=0)


def signals_of(arm: Described) -> Signals:
    """What would have been known before this arm was trained."""
    of = measured(arm.task, arm.algorithm, arm.replay_ratio, arm.steps, arm.augmentation, arm.ratio)
    return of(arm.update_ratio).values()


def curves_of(arms: list[Result]) -> Columns:
    """A row for each arm: its settings, steps (evaluations,), and scores (agents, evaluations)."""
    scored = [(arm.asked, ground_truth.scores_of(arm)) for arm in arms]
    columns = {
        name: np.array(["" if asked[name] is None else asked[name] for asked, _ in scored])
        for name in CURVE_OF
    }
    columns["steps"] = np.stack([curves.steps for _, curves in scored]).astype(np.int32)
    columns["scores"] = np.stack([curves.scores for _, curves in scored]).astype(np.float16)
    return columns


def added(earlier: Columns, later: Columns) -> Columns:
    """The arms of both; one that is in both is the later one's."""
    both = {name: np.concatenate([earlier[name], later[name]]) for name in later}
    keys = zip(*(both[name] for name in CURVE_OF), both["steps"][:, -1], strict=True)
    kept = [*{tuple(map(str, key)): place for place, key in enumerate(keys)}.values()]
    return {name: values[kept] for name, values in both.items()}


def trained_by(records: list[Record]) -> list[str]:
    """What each study trained, as lines of a table; the last is of all together."""
    first: dict[str, tuple[str, Result]] = {}
    for record in records:
        for one in record.finished:
            first.setdefault(str(one.result.asked), (record.name, one.result))
    by_study: dict[str, list[Result]] = {}
    for name, result in first.values():
        by_study.setdefault(name, []).append(result)
    every = [result for _, result in first.values()]
    head = "| study | tasks | arms | agents | learner | steps of all agents | minutes |", "|---" * 7 + "|"
    return [*head, *(_trained(name, arms) for name, arms in by_study.items()), _trained("all", every)]


def _trained(name: str, arms: list[Result]) -> str:
    asked = [arm.asked for arm in arms]
    tasks = len({one["environment"] for one in asked})
    agents = sum(one["agents"] for one in asked)
    learners = ", ".join(sorted({one["algorithm"].upper() for one in asked}))
    steps = sum(one["agents"] * one["steps"] * one["policy_data"] for one in asked)
    fleets = {(arm.about["finished"], arm.seconds) for arm in arms}  # an arm has the time of its fleet
    minutes = sum(seconds for _, seconds in fleets) / 60
    return f"| {name} | {tasks} | {len(arms)} | {agents:,} | {learners} | {steps:,.0f} | {minutes:.1f} |"


def main(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional],
    out: Path = Path("results/advice/table.csv"),
    add: bool = False,
) -> None:
    """Make the table of all studies in these folders.

    Args:
        folders: Of studies, or of folders of studies.
        out: The table.
        add: Keep what is in the table already, unless it was trained again.
    """
    keep_compiled()
    records: list[Record] = [
        Store(place.parent).record()
        for folder in folders
        for place in sorted([*folder.glob("study.json"), *folder.glob("*/study.json")])
    ]
    if not records:
        raise SystemExit(f"there are no studies in {', '.join(map(str, folders))}")
    signals = Kept(folders[0] / "signals.jsonl")
    rows = ground_truth.table_of(records, signals.of, lambda arms: track(arms, "measuring signals"))
    trained = {str(one.result.asked): one.result for record in records for one in record.finished}
    curves = curves_of([arm for arm in trained.values() if arm.asked["environment"].startswith("family/")])
    beside = out.with_name("curves.npz")
    if add:
        before = [replace(row, signals=signals.of(row)) for row in track(table.read(out), "measuring again")]
        rows = table.merged(before, rows)
        if beside.exists():
            with np.load(beside) as held:
                curves = added(dict(held), curves)
    out.parent.mkdir(parents=True, exist_ok=True)
    table.write(out, rows)
    with replacing(beside) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **curves)
    print(*trained_by(records), sep="\n")
    print(f"{len(rows)} arms of {len({row.task for row in rows})} tasks in {out}")


if __name__ == "__main__":
    try:
        tyro.cli(main)
    except UserError as error:
        raise SystemExit(str(error)) from None
