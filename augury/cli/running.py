"""What `augury study run` does: train, show progress, and report in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jax
from msgspec.structs import asdict
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from augury.cli.output import console, say
from augury.cli.study_run import Run
from augury.files import replacing
from augury.fleet import keep_compiled
from augury.runs.files import claimed
from augury.study import chances
from augury.study.arms import Size, StudyArm
from augury.study.cluster import Cluster
from augury.study.entry import Planned, begin, plan
from augury.study.local import Local
from augury.study.processes import Worker
from augury.study.runner import Event, Executor, Job
from augury.study.runner import run as run_fleets
from augury.study.schema import ChanceStudy, Study
from augury.study.sharing import take_equal
from augury.study.shipped import named
from augury.study.store import Store
from augury.study.view import View

CHANCES = "chances.json"


def run(asked: Run, studies: Sequence[tuple[Path, Study | ChanceStudy]], spare: Worker | None) -> None:
    """Run the studies; a spare worker trains the first fleet."""
    keep_compiled()
    jax.config.update("jax_platforms", "cpu")  # accelerators are for the processes that train
    size = Size(asked.quick, asked.agents, asked.steps, asked.seed)
    planned = [
        plan(file, asked.out, size, command=asked.command(file), only=asked.only)
        for file, study in studies
        if isinstance(study, Study)
    ]
    sampled = [(file, study) for file, study in studies if isinstance(study, ChanceStudy)]
    for file, study in sampled:
        chances.check(study, named(file))
    for file, study in sampled:
        with claimed(asked.out / file.stem):
            _run_chances(study, asked.out / file.stem)
    if not planned:
        return
    with ExitStack() as held:
        for one in planned:
            held.enter_context(claimed(one.store.folder))
        complete = _train(asked, planned, spare)
        _report(asked.out, planned)
    if not complete:
        raise SystemExit(say("some arms failed: the same command tries them again", code=1))


def _train(asked: Run, planned: Sequence[Planned], spare: Worker | None) -> bool:
    """Train what is not finished; whether all is now."""
    jobs: list[Job] = []
    promised: list[tuple[Store, list[StudyArm]]] = []
    for one in planned:
        fleets, remarks = begin(one, jobs)
        for line in remarks:
            say(line, code=0)
        trained = [arm for job in fleets for arm in job.arms]
        kept = [arm for arm in one.chosen if one.store.is_finished(arm)]
        shared = [arm for arm in one.chosen if arm not in trained and arm not in kept]
        part = f"{len(one.chosen)} of " if len(one.chosen) < len(one.arms) else ""
        counts = f"{part}{len(one.arms)} arms, {len(kept)} finished, {len(fleets)} fleets to train"
        counts += f", {len(shared)} arms come from those of another study" if shared else ""
        console.print(f"[bold]{escape(one.study.title)}[/bold]: {counts}", highlight=False)
        jobs += fleets
        promised.append((one.store, shared))
    if not jobs:
        return True

    def watch(event: Event) -> None:
        if event.kind == "finished":
            for store, arms in promised:
                take_equal(store, arms)
        view.show(event)

    try:
        with _executor(asked, spare) as executor:
            shown = [
                (one.store, [arm for arm in one.chosen if arm not in arms])
                for one, (_, arms) in zip(planned, promised, strict=True)
            ]
            view = View(shown, jobs, console, executor.at_once)
            with view:
                return run_fleets(jobs, executor, watch)
    except KeyboardInterrupt:
        raise SystemExit(say("stopped; the same command goes on from here", code=130)) from None


@contextmanager
def _executor(asked: Run, spare: Worker | None) -> Iterator[Executor]:
    if asked.on == "here":
        yield Local(asked.jobs or 1, asked.checkpoint_every, spare)
        return
    with Cluster(asked.checkpoint_every, asked.cpus, asked.gpus, asked.jobs) as cluster:
        yield cluster


def _report(out: Path, planned: Sequence[Planned]) -> None:
    from augury.cli.reporting import print_missing, print_verdicts, write_report  # slow, and only now needed

    reports = [(one.store.record(), one.store.folder) for one in planned]
    for record, _ in reports:
        print_verdicts(record)
        print_missing(record)
    folder = out if len(reports) > 1 else reports[0][1]
    print(f"report in {write_report(reports, folder)}")


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
