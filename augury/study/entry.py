"""Running studies, from Python as from the command line: plan, train, and return the results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from augury.errors import UserError
from augury.runs.files import claimed
from augury.study.arms import Size, StudyArm, arms_of
from augury.study.local import Local
from augury.study.parts import part_of
from augury.study.record import Record
from augury.study.rows import slug
from augury.study.runner import Event, Executor, Job, jobs_of, run
from augury.study.schema import Study, checked, read
from augury.study.sharing import identities, identity, take_equal
from augury.study.shipped import found, named
from augury.study.store import Store


def run_study(
    study: Study | Path | str,
    *,
    out: Path | str = "runs",
    name: str | None = None,
    quick: bool = False,
    agents: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    only: Sequence[str] | str = (),
    on: Executor | None = None,
    watch: Callable[[Event], None] | None = None,
) -> Record:
    """Train the unfinished arms of a study, and return the results of all its arms.

        record = run_study("studies/first-look.toml", out="runs")
        record.result("translate").curves()              # success: (agents, evaluations)
        [verdict.verdict for verdict in augury.report.verdicts_of(record)]

    The study is a file, the name of one that comes with Augury, or a `Study`. Its folder is below `out`,
    called after the file, or `name`, or the title. A study that was stopped or killed continues when it is
    run again. `quick`, `agents`, `steps` and `seed` (of each arm's first agent) change its size, `on` says
    where fleets train (`Local(at_once=2)`, for example, or `Cluster()`), and `watch` is called with every
    `Event`.

    `only` names a part to train: arms, tasks, or both (then these arms on these tasks), or one arm on one
    task as "task: arm". The record is that of the whole study; its `missing` tells what has no result yet.

    Arms that cannot be trained are in the record's `failed`; the others are trained all the same. Fleets
    train in processes of their own, which want the accelerators for themselves: where there are some, call
    `jax.config.update("jax_platforms", "cpu")` first, as the command line does.
    """
    planned = plan(study, Path(out), Size(quick, agents, steps, seed), name, only=only)
    with ExitStack() as held:
        held.enter_context(claimed(planned.store.folder))
        fleets, remarks = begin(planned)
        for remark in remarks:
            warnings.warn(remark, stacklevel=2)
        executor = on if on is not None else Local()
        if fleets:
            if isinstance(executor, AbstractContextManager):  # a cluster is joined and left again
                held.enter_context(executor)
            run(fleets, executor, watch or _ignore)
        return planned.store.record()


@dataclass(frozen=True)
class Planned:
    """A study that is ready to run: everything it asks for has been checked."""

    study: Study
    name: str
    store: Store
    arms: Sequence[StudyArm]
    chosen: Sequence[StudyArm]
    """Arms to run now: all, or a part."""
    source: bytes | None
    """The file's content, where there is one."""
    command: str
    """What reproduces it."""


def plan(
    study: Study | Path | str,
    out: Path,
    size: Size,
    name: str | None = None,
    command: str = "",
    only: Sequence[str] | str = (),
) -> Planned:
    """Read and check a study; nothing is written."""
    if isinstance(study, Study):
        where = f"study '{study.title}'"
        asked, name, source = checked(study, where), name or slug(study.title), None
        if not name:
            raise UserError(f"{where}: its title cannot name a folder: give run_study a 'name'")
    else:
        path = found(Path(study))
        where, written, name = named(path), read(path), name or path.stem
        if not isinstance(written, Study):
            raise UserError(f"{where} holds probabilities, not arms: run it with augury study run {where}")
        asked, source = written, path.read_bytes()
    arms = arms_of(asked, where, size)
    return Planned(asked, name, Store(out / name), arms, part_of(arms, only, where), source, command)


def begin(planned: Planned, others: Sequence[Job] = ()) -> tuple[list[Job], list[str]]:
    """Record the study in its folder; return the fleets to train, and remarks for the user.

    Arms that other studies have trained, or train in the fleets `others`, are not trained again, except in
    fleets that were begun: those go on from their checkpoints.
    """
    store, chosen = planned.store, planned.chosen
    remarks = store.begin(planned.study, planned.name, planned.source, planned.arms, planned.command, chosen)
    begun = [one for job in jobs_of(store, chosen) if job.is_begun for one in job.arms]
    remarks += take_equal(store, [one for one in chosen if one not in begun])
    promised = identities([one for job in others for one in job.arms])
    fleets = jobs_of(
        store, [one for one in chosen if one in begun or identity(one.arm.described()) not in promised]
    )
    later = jobs_of(store, [one for one in planned.arms if one not in chosen])
    return fleets, remarks + store.others_begun([fleet.folder for fleet in (*fleets, *later)])


def _ignore(_: Any) -> None:
    """Nobody watches."""
