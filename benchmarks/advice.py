"""The table behind `augury advise`, and how good its predictions are on families that they never saw.

    augury study run advice-point … --out runs/advice              # trains the arms; resumes where it stopped
    python benchmarks/advice.py table runs/advice --out results/advice/table.csv
    python benchmarks/advice.py judge results/advice/table.csv     # leave one family out
    python benchmarks/advice.py fit results/advice/table.csv       # writes the coefficients that are shipped

`table` gathers a pilot of every task and measures the signals of every arm, so that it takes some seconds an
arm the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.progress import track

from augury.advise import coefficients, ground_truth, judging, prediction, table
from augury.advise.pilot import Pilot, gather
from augury.advise.signals.measuring import measure
from augury.errors import UserError
from augury.fleet import keep_compiled
from augury.study.store import Store

Folder = Annotated[Path, tyro.conf.Positional]


@lru_cache(maxsize=1)
def pilot_of(environment: str, algorithm: str, steps: int) -> Pilot:
    """Arms are sorted by task, so that one is kept at a time."""
    return gather(environment, steps=min(4_000, steps // 4), algorithm=algorithm)


def signals_of(asked: Mapping[str, Any]) -> Mapping[str, float | None]:
    """What would have been known before this arm was trained."""
    pilot = pilot_of(asked["environment"], asked["algorithm"], asked["steps"])
    signals = measure(
        pilot, asked["augmentation"], ratio=float(asked["ratio"]), update_ratio=asked["update_ratio"]
    ).as_dict()
    signals.pop("notes")
    return {name: None if value is None else float(value) for name, value in signals.items()}


def make_table(folder: Folder, out: Path = Path("results/advice/table.csv")) -> None:
    """Make the table of the studies in a folder."""
    keep_compiled()
    records = [Store(place.parent).record() for place in sorted(folder.glob("*/study.json"))]
    if not records:
        raise SystemExit(
            f"there are no studies in {folder}: run `augury study run advice-point --out {folder}`"
        )
    arms = sum(one.result.asked["augmentation"] is not None for record in records for one in record.finished)
    counted = iter(track(range(arms), "measuring signals"))

    def counting(asked: Mapping[str, Any]) -> Mapping[str, float | None]:
        next(counted)
        return signals_of(asked)

    rows = ground_truth.table_of(records, counting)
    out.parent.mkdir(parents=True, exist_ok=True)
    table.write(out, rows)
    print(f"{len(rows)} arms of {len({row.task for row in rows})} tasks in {out}")


def judge(path: Folder) -> None:
    """Print how predictions do on families that they were not fitted on, beside simpler advice."""
    print(judging.judge(table.read(path)))


def fit(path: Folder) -> None:
    """Fit the model on the whole table, and write its coefficients into the package."""
    coefficients.write(coefficients.SHIPPED, prediction.fit(table.read(path)))


if __name__ == "__main__":
    try:
        tyro.extras.subcommand_cli_from_dict({"table": make_table, "judge": judge, "fit": fit})
    except UserError as error:
        raise SystemExit(str(error)) from None
