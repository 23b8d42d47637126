"""`augury study run`, `status`, `list` and `export`."""

from __future__ import annotations

import csv
import json
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import tyro
from msgspec.structs import asdict
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from augury.cli.output import by_number, check_seconds, console, say
from augury.cli.reporting import print_verdicts, write_report
from augury.errors import UserError
from augury.runs.files import claimed, replacing
from augury.runs.results import rounded, score
from augury.study import chances
from augury.study.arms import Size, arms_of
from augury.study.cluster import Cluster, check_needs
from augury.study.entry import Planned, begin, plan
from augury.study.local import Local
from augury.study.record import Record
from augury.study.runner import Executor, run
from augury.study.schema import ChanceStudy, Study, read
from augury.study.store import STUDY, Store
from augury.study.view import View, middle

CHANCES = "chances.json"


@dataclass(frozen=True)
class Run:
    """Run studies: train what is not finished yet, and write a report.

    Each study has a folder of its own below --out, named after its file. Stopped or killed, it goes on where
    it was when the same command is given again.

    Example: augury study run studies/paper/figure-11.toml --quick
    """

    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE…")]
    """Studies (see `augury study list`)."""
    out: Path = Path("runs")
    """Where the studies' folders are."""
    quick: bool = False
    """The laptop's size of each study, as its file has it."""
    agents: int | None = None
    """Agents of each arm, instead of the file's."""
    steps: int | None = None
    """Steps of each agent, instead of the file's."""
    seed: int | None = None
    """Seed of each arm's first agent, instead of 0."""
    on: Literal["here", "ray"] = "here"
    """Train on this machine, or on the Ray cluster that RAY_ADDRESS names."""
    jobs: int | None = None
    """Fleets to train at the same time: 1 here; on a cluster as many as it has room for."""
    cpus: int | None = None
    """Cores of a cluster's node for each fleet; by default its share of one."""
    gpus: int | None = None
    """Accelerators of a cluster's node for each fleet; by default 1 where there are any."""
    checkpoint_every: float = 60.0
    """Seconds between checkpoints."""

    def run(self) -> None:
        if not self.files:
            raise UserError("augury study run needs a FILE: see augury study list")
        if self.jobs is not None and self.jobs < 1:
            raise UserError(f"jobs must be at least 1, not {self.jobs}")
        if self.on == "here" and (self.cpus is not None or self.gpus is not None):
            raise UserError("--cpus and --gpus are for --on ray: here fleets use the whole machine")
        check_needs(self.cpus, self.gpus)
        check_seconds(self.checkpoint_every)
        if len({file.stem for file in self.files}) < len(self.files):
            raise UserError("two of these studies have the same name, and would share a folder")
        jax.config.update("jax_platforms", "cpu")  # accelerators are for the processes that train
        size = Size(self.quick, self.agents, self.steps, self.seed)
        read_all = [(file, read(file)) for file in self.files]
        asked = [
            plan(file, self.out, size, command=self._command(file))
            for file, study in read_all
            if isinstance(study, Study)
        ]
        sampled = [(file, study) for file, study in read_all if isinstance(study, ChanceStudy)]
        for file, study in sampled:
            chances.check(study, str(file))
        for file, study in sampled:
            with claimed(self.out / file.stem):
                _run_chances(study, self.out / file.stem)
        if not asked:
            return
        with ExitStack() as held:
            for one in asked:
                held.enter_context(claimed(one.store.folder))
            complete = self._train(asked)
            reports = [(one.store.record(), one.store.folder) for one in asked]
            for record, _ in reports:
                print_verdicts(record)
            folder = self.out if len(reports) > 1 else reports[0][1]
            print(f"report in {write_report(reports, folder)}")
        if not complete:
            raise SystemExit(say("some arms failed: the same command tries them again", code=1))

    def _train(self, asked: list[Planned]) -> bool:
        """Train what is not finished; whether all is now."""
        jobs = []
        for one in asked:
            fleets, remarks = begin(one)
            for line in remarks:
                say(line, code=0)
            kept = len(one.arms) - sum(len(job.arms) for job in fleets)
            counts = f"{len(one.arms)} arms, {kept} finished, {len(fleets)} fleets to train"
            console.print(f"[bold]{escape(one.study.title)}[/bold]: {counts}", highlight=False)
            jobs += fleets
        if not jobs:
            return True
        view = View([(one.store, one.arms) for one in asked], jobs, console)
        try:
            with self._executor() as executor, view:
                return run(jobs, executor, view.show)
        except KeyboardInterrupt:
            raise SystemExit(say("stopped; the same command goes on from here", code=130)) from None

    @contextmanager
    def _executor(self) -> Iterator[Executor]:
        if self.on == "here":
            yield Local(self.jobs or 1, self.checkpoint_every)
            return
        with Cluster(self.checkpoint_every, self.cpus, self.gpus, self.jobs) as cluster:
            yield cluster

    def _command(self, file: Path) -> str:
        numbers = {"--agents": self.agents, "--steps": self.steps, "--seed": self.seed}
        words = ["augury", "study", "run", str(file)]
        for name, value in numbers.items():
            words += [] if value is None else [name, str(value)]
        words += ["--quick"] if self.quick else []
        return shlex.join(words)


@dataclass(frozen=True)
class Status:
    """Say how far a study is: what is finished, begun, failed or waiting.

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
class List:
    """List the studies in a folder.

    Example: augury study list
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")] = Path("studies")
    """Where to look, folders below included."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        if not self.folder.is_dir():
            raise UserError(f"no folder {self.folder}")
        files = sorted(filter(self._is_study, self.folder.rglob("*.toml")), key=by_number)
        rows = [_listed(path) for path in files]
        if not rows:
            raise UserError(f"no studies in {self.folder}")
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

    def _is_study(self, path: Path) -> bool:
        """Not one of another program's files, nor the copy beside a study's results."""
        hidden = any(part.startswith(".") for part in path.relative_to(self.folder).parts)
        if hidden or (path.parent / STUDY).exists():
            return False
        try:
            return bool({"arms", "chances"} & tomllib.loads(path.read_text(encoding="utf-8")).keys())
        except (OSError, ValueError):
            return True  # reading it tells what is wrong


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


def _listed(path: Path) -> dict[str, Any]:
    study = read(path)
    if isinstance(study, ChanceStudy):
        tasks = [chance.task for chance in study.chances]
        return {"file": str(path), "figure": None, "title": study.title, "tasks": tasks} | dict.fromkeys(
            ("arms", "agents")
        )
    return {
        "file": str(path),
        "figure": study.figure,
        "title": study.title,
        "tasks": list(study.tasks),
        "arms": len(arms_of(study, str(path), Size())),
        "agents": study.agents,
    }


def _run_chances(study: ChanceStudy, folder: Path) -> None:
    with Console(stderr=True).status("sampling"):
        measured = chances.measure(study)
    table = Table("task", title=Text(study.title), box=None, header_style="bold", pad_edge=False)
    for heading in ("measured", "paper"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in measured:
        verdict = "[green]as in the paper[/green]" if one.confirmed else "[red]not as in the paper[/red]"
        table.add_row(
            one.chance.task,
            f"{one.measured:.5f} ± {one.error:.5f}",
            f"{one.chance.paper:g}",
            verdict,
        )
    console.print(table)
    for one in measured:
        if one.chance.note:
            console.print(f"{one.chance.task}: {one.chance.note}", markup=False)
    rows = [
        {**asdict(one.chance), "measured": one.measured, "error": one.error, "confirmed": one.confirmed}
        for one in measured
    ]
    with replacing(folder / CHANCES) as temporary:
        temporary.write_text(json.dumps({"samples": study.samples, "chances": rows}, indent=2) + "\n")
    print(f"table in {folder / CHANCES}")
