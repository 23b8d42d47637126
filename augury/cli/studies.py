"""`augury study run`, `status`, `list` and `export`."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table
from rich.text import Text

from augury.cli.output import by_number, console
from augury.errors import UserError
from augury.files import replacing
from augury.runs.results import rounded, score
from augury.runs.scores import middle
from augury.study.record import Record
from augury.study.schema import ChanceStudy, read
from augury.study.shipped import named, shipped
from augury.study.store import STUDY, Store


class Studies:
    """Studies from files: `augury study run`, `status`, `list`, `export`.

    Example: augury study run studies/first-look.toml
    """


@dataclass(frozen=True)
class Status:
    """Show a study's progress: which arms are finished, begun, failed or waiting.

    Example: augury study status runs/figure-11
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """A study's folder."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        store = Store(self.folder)
        rows = list(_standings(store, store.record()))
        if self.json:
            print(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        table = Table("task", "arm", "", box=None, header_style="bold", pad_edge=False)
        table.add_column("steps", justify="right")
        table.add_column("so far", justify="right")
        table.add_column("why")
        for row in rows:
            steps = "–" if row["steps"] is None else f"{row['steps']:,}"
            so_far = "–" if row["score"] is None else score(row["measure"], row["score"])
            words = (row["task"], row["arm"], row["state"], steps, so_far, row["why"])
            table.add_row(*map(Text, words))
        console.print(table)


@dataclass(frozen=True)
class ListStudies:
    """List studies: those in a folder, or those that come with Augury.

    Example: augury study list
    """

    folder: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")] = None
    """Where to look, folders below included; by default studies/ or, without one, what comes with Augury."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        rows = [_listed(path) for path in sorted(self._files(), key=by_number)]
        if self.json:
            print(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("study", no_wrap=True)
        table.add_column("title")
        for heading in ("tasks", "arms", "agents"):
            table.add_column(heading, justify="right")
        for row in rows:
            numbers = ["" if row[name] is None else str(row[name]) for name in ("arms", "agents")]
            table.add_row(*map(Text, (row["file"], row["title"], str(len(row["tasks"])), *numbers)))
        console.print(table)

    def _files(self) -> Sequence[Path]:
        folder = self.folder or Path("studies")
        if folder.is_dir():
            if not (files := [path for path in folder.rglob("*.toml") if _is_study(path, folder)]):
                raise UserError(f"no studies in {folder}")
            return files
        if self.folder is not None:
            raise UserError(f"no folder {folder}")
        return list(shipped().values())


@dataclass(frozen=True)
class Export:
    """Write every number of a study's evaluations as one tidy CSV: a row for each agent and evaluation.

    Example: augury study export runs/figure-11 --out figure-11.csv
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """A study's folder."""
    out: Path
    """The file to write."""

    def run(self) -> None:
        record = Store(self.folder).record()
        if not record.finished:
            raise UserError(f"nothing in {self.folder} is finished yet")
        count = 0
        with replacing(self.out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            names = sorted(
                name for name, values in record.finished[0].result.evaluations.items() if values.ndim == 2
            )
            writer.writerow(["study", "task", "arm", "seed", "steps", "updates", "transitions", *names])
            for one in record.finished:
                evaluations = one.result.evaluations
                for agent, seed in enumerate(evaluations["seeds"]):
                    for place, steps in enumerate(evaluations["steps"]):
                        shared = [int(evaluations[name][place]) for name in ("updates", "transitions")]
                        values = [evaluations[name][agent, place] for name in names]
                        writer.writerow([record.name, one.task, one.name, seed, steps, *shared, *values])
                        count += 1
        print(f"{count:,} rows in {self.out}")


def _standings(store: Store, record: Record) -> Iterator[dict[str, Any]]:
    """One row for each arm, as `status` shows it."""
    finished = {(one.task, one.name): one.result for one in record.finished}
    training = store.progress()
    for task, name in record.everything:
        row: dict[str, Any] = {"task": task, "arm": name, "state": "waiting", "steps": None, "score": None}
        row |= {"measure": "success", "why": record.failed.get((task, name), "")}
        if (result := finished.get((task, name))) is not None:
            row |= {"state": "finished", "measure": result.measure}
            row |= {"steps": int(result.evaluations["steps"][-1])}
            row |= {"score": rounded(middle(result.curves()[:, -1]), 4)}
        elif (standing := training.get((task, name))) is not None:
            own = [list(key) for key in standing["arms"]].index([task, name])
            row |= {"state": "begun", "steps": standing["steps"]}
            row |= {"measure": standing["measure"]}
            row |= {"score": rounded(middle(standing["scores"][own]), 4)}
        if (task, name) in record.failed and row["state"] != "finished":
            row["state"] = "failed"
        yield row


def _is_study(path: Path, folder: Path) -> bool:
    """Not one of another program's files, nor the copy beside a study's results."""
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    if hidden or (path.parent / STUDY).exists():
        return False
    try:
        return bool({"arms", "chances"} & tomllib.loads(path.read_text(encoding="utf-8")).keys())
    except (OSError, ValueError):
        return True  # reading it tells what is wrong


def _listed(path: Path) -> dict[str, Any]:
    study = read(path)
    if isinstance(study, ChanceStudy):
        tasks = [chance.task for chance in study.chances]
        return {"file": named(path), "figure": None, "title": study.title, "tasks": tasks} | dict.fromkeys(
            ("arms", "agents")
        )
    from augury.study.arms import Size, arms_of  # slow: other commands need no environments

    return {
        "file": named(path),
        "figure": study.figure,
        "title": study.title,
        "tasks": list(study.tasks),
        "arms": len(arms_of(study, str(path), Size())),
        "agents": study.agents,
    }
