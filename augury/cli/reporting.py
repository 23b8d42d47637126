"""`augury report`, and what a study prints and writes in the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table
from rich.text import Text

from augury import report
from augury.cli.output import by_number, console, say
from augury.cli.runs import print_table, row_of
from augury.errors import UserError
from augury.report.verdicts import verdicts_of
from augury.runs import results
from augury.study.record import Finished, Record
from augury.study.store import STUDY, Store

PAGE = "report.html"
_COLOURS = {"supported": "green", "contradicted": "red", "undecided": "yellow"}


@dataclass(frozen=True)
class Report:
    """Write one page that shows everything about the studies or runs in a folder, and figures for papers.

    Example: augury report runs/figure-11
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """The folder of a study or a run, or one that holds several."""
    json: bool = False
    """Print arms and verdicts as JSON instead of tables."""

    def run(self) -> None:
        if not self.folder.is_dir():
            raise UserError(f"no folder {self.folder}")
        stores = [Store(path.parent) for path in sorted(self.folder.glob(f"**/{STUDY}"), key=by_number)]
        reports = [(store.record(), store.folder) for store in stores]
        if (loose := _record_of(self.folder, [store.folder for store in stores])).finished:
            reports.append((loose, self.folder))
        if not any(record.finished for record, _ in reports):
            raise UserError(f"no finished run in {self.folder}")
        page = write_report(reports, self.folder)
        if self.json:
            arms = [
                {"study": record.name, "task": one.task, **row_of(one.result), "arm": one.name}
                for record, _ in reports
                for one in record.finished
            ]
            judged = [verdict.as_json() for record, _ in reports for verdict in verdicts_of(record)]
            failed = [
                {"study": record.name, "task": task, "arm": arm, "why": why}
                for record, _ in reports
                for (task, arm), why in record.failed.items()
            ]
            missing = [
                {"study": record.name, "task": task, "arm": arm}
                for record, _ in reports
                for task, arm in record.missing
            ]
            said = {"arms": arms, "claims": judged, "failed": failed, "missing": missing}
            print(json.dumps(said, indent=2, ensure_ascii=False))
            return
        for record, _ in reports:
            for task in dict.fromkeys(one.task for one in record.finished):
                console.print(Text(f"{record.title}: {task}", "bold"))
                print_table([one.result for one in record.on(task)], [one.name for one in record.on(task)])
            print_verdicts(record)
            print_missing(record)
            for (task, arm), why in record.failed.items():
                say(f"{record.name}, {task}: {arm} failed: {why}", code=0)
        print(f"report in {page}")


def write_report(reports: Sequence[tuple[Record, Path]], folder: Path) -> Path:
    """The page of some studies, and in each one's own folder its figure as PNG and PDF."""
    for record, own in reports:
        if record.finished:
            report.study_figure(record, own)
    page = folder / PAGE
    report.write_page([record for record, _ in reports], page)
    return page


def print_verdicts(record: Record) -> None:
    """The verdicts on a study's claims."""
    judged = verdicts_of(record)
    if not judged:
        return
    table = Table("verdict", "claim", "on", "", box=None, header_style="bold", pad_edge=False)
    for one in judged:
        table.add_row(
            Text(one.verdict, _COLOURS[one.verdict]), Text(one.claim.says), Text(one.task), Text(one.text)
        )
    console.print(table)


def print_missing(record: Record) -> None:
    """The arms that have not been run, in a line for each task; those that failed are told of elsewhere."""
    waiting = [key for key in record.missing if key not in record.failed]
    for task in dict.fromkeys(task for task, _ in waiting):
        names = " · ".join(name for one, name in waiting if one == task)
        console.print(f"not run yet on {task}: {names}", soft_wrap=True, highlight=False, markup=False)


def _record_of(folder: Path, studies: Sequence[Path]) -> Record:
    """Runs that none of these studies asked for, as if one had: a panel for each environment."""
    places = [path.parent for path in sorted(folder.glob(f"**/{results.EVALUATIONS}"))]
    found = [
        results.read(place) for place in places if not any(place.is_relative_to(study) for study in studies)
    ]
    names = _told_apart([(result.asked["environment"], result.label) for result in found])
    finished = [
        Finished(name, result.asked["environment"], result) for name, result in zip(names, found, strict=True)
    ]
    return Record(
        name=folder.resolve().name,
        title=folder.resolve().name,
        about="",
        figure=None,
        x_axis="steps",
        tasks=sorted({one.task for one in finished}),
        arms=list(dict.fromkeys(names)),
        claims=(),
        finished=sorted(finished, key=lambda one: one.task),
        asked=[(one.task, one.name) for one in finished],
    )


def _told_apart(runs: Sequence[tuple[str, str]]) -> list[str]:
    """Labels of runs (environment, label), with a number where two of an environment would be the same."""
    return [
        f"{run[1]} ({runs[: place + 1].count(run)})" if runs.count(run) > 1 else run[1]
        for place, run in enumerate(runs)
    ]
