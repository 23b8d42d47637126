"""Running a study: arms that share a program train in one fleet, and fleets one by one or some at a time.

A fleet's death does not stop the others. Finished fleets are never run again; unfinished ones continue
from their checkpoints when the study is run again.
"""

from __future__ import annotations

import hashlib
import json
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from augury.envs import make
from augury.errors import UserError
from augury.fleet.building import fleets_of
from augury.runs import checkpoints
from augury.runs.interrupts import deferred_interrupt
from augury.study.arms import StudyArm
from augury.study.store import FLEETS, Store
from augury.study.worker import JOB, write_job

MOST_AGENTS = 64
"""In a fleet of several arms whose environments run on the host: memory does not suffice for any number."""


@dataclass(frozen=True)
class Job:
    """A fleet to train."""

    store: Store
    """Where its results go."""
    arms: tuple[StudyArm, ...]
    folder: Path

    @property
    def is_begun(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return (self.folder / checkpoints.NAME).exists()

    @property
    def steps(self) -> int:
        return self.arms[0].arm.rounds * self.arms[0].arm.round_steps

    @property
    def random_steps(self) -> int:
        """Of each agent, before it learns."""
        return self.arms[0].arm.random_steps

    @property
    def work(self) -> float:
        """How long it will take, roughly: see `work_after`."""
        return self.work_after(0)

    def work_after(self, steps: int) -> float:
        """Steps of learning left after `steps` of each agent: of all agents, policy data included."""
        learning = self.steps - max(steps, self.random_steps)
        return learning * sum(one.arm.agents * one.arm.policy_data for one in self.arms)


class Event(NamedTuple):
    """Something that happened to a fleet."""

    job: Job
    kind: Literal["started", "progress", "finished", "failed", "stopped"]
    told: dict[str, Any] = {}  # noqa: RUF012
    """Of progress: `steps`, `of`, `speed`, `left`, and, if agents were evaluated, `scores` by arm."""
    why: str = ""


class Died(Exception):  # noqa: N818
    """A fleet could not be trained to its end."""


class Stopped(Exception):  # noqa: N818
    """A fleet was asked to stop; its last checkpoint says where it stands."""


class Executor(Protocol):
    """Who trains fleets: this machine, or a cluster."""

    at_once: int
    """How many fleets may train at the same time."""

    def execute(self, job: Job, tell: Callable[[dict[str, Any]], None]) -> None:
        """Train a fleet, and return when its results lie in the job's folder; raises `Died` or `Stopped`."""

    def stop(self) -> None:
        """Ask all fleets to stop."""


def jobs_of(store: Store, arms: Sequence[StudyArm]) -> list[Job]:
    """The fleets of the arms that are not finished; one that was begun keeps its arms."""
    waiting = [one for one in arms if not store.is_finished(one)]
    jobs = _begun(store, waiting)
    left = [one for one in waiting if not any(one in job.arms for job in jobs)]
    for places in fleets_of([one.arm for one in left]):
        jobs += [_job(store, part) for part in _parts([left[place] for place in places])]
    return sorted(jobs, key=lambda job: waiting.index(job.arms[0]))


def run(jobs: Sequence[Job], executor: Executor, watch: Callable[[Event], None]) -> bool:
    """Train the fleets of some studies; whether all were finished.

    Ctrl-C stops them: here with their checkpoints saved, on a cluster at the last ones that arrived.
    """
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    if executor.at_once > 1:
        jobs = sorted(jobs, key=lambda job: -job.work)  # so that none is left alone in the end
    stopping = False

    def train(job: Job) -> None:
        if stopping:
            events.put(Event(job, "stopped"))
            return
        events.put(Event(job, "started"))
        try:
            _train(job, executor, lambda told: events.put(Event(job, "progress", told)))
            events.put(Event(job, "finished"))
        except Stopped:
            events.put(Event(job, "stopped"))
        except Exception as error:
            why = _why(error)
            job.store.fail(job.folder, job.arms, why)
            events.put(Event(job, "failed", why=why))

    outcomes: list[str] = []
    with deferred_interrupt(lambda: events.put(None)), ThreadPoolExecutor(executor.at_once) as pool:
        for job in jobs:
            pool.submit(train, job)
        try:
            while len(outcomes) < len(jobs):
                if (event := events.get()) is None:
                    raise KeyboardInterrupt
                watch(event)
                if event.kind in ("finished", "failed", "stopped"):
                    outcomes.append(event.kind)
        except BaseException:
            stopping = True
            executor.stop()
            raise
    return all(outcome == "finished" for outcome in outcomes)


def _job(store: Store, arms: Sequence[StudyArm]) -> Job:
    """A fleet; its folder is called after its arms and their settings."""
    asked = json.dumps([(one.task, one.arm.described()) for one in arms], sort_keys=True)
    name = hashlib.sha256(asked.encode()).hexdigest()[:12]
    return Job(store, tuple(arms), store.folder / FLEETS / name)


def _begun(store: Store, waiting: Sequence[StudyArm]) -> list[Job]:
    """Fleets with a checkpoint whose arms are all waiting; of two that share an arm, the larger."""
    by_key = {(one.task, one.name): one for one in waiting}
    found = []
    for path, told in store.of_fleets(JOB):
        arms = [by_key[task, name] for task, name in told["names"] if (task, name) in by_key]
        job = _job(store, arms)
        if job.folder == path.parent and job.is_begun:
            found.append(job)
    kept: list[Job] = []
    for job in sorted(found, key=lambda job: -len(job.arms)):
        if not any(one in other.arms for one in job.arms for other in kept):
            kept.append(job)
    return kept


def _train(job: Job, executor: Executor, tell: Callable[[dict[str, Any]], None]) -> None:
    write_job(
        job.folder,
        [one.arm for one in job.arms],
        [str(one.folder) for one in job.arms],
        [(one.task, one.name) for one in job.arms],
    )
    executor.execute(job, tell)
    try:
        job.store.publish(job.folder)
    except OSError as error:
        raise UserError(f"cannot keep the results: {error.strerror}") from error


def _why(error: Exception) -> str:
    """What went wrong, in words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _parts(arms: list[StudyArm]) -> list[list[StudyArm]]:
    """Arms that could share a fleet, in fleets that are not too large."""
    if make(arms[0].arm.environment).runs_in != "host":
        return [arms]
    parts: list[list[StudyArm]] = [[]]
    for one in arms:
        if parts[-1] and sum(other.arm.agents for other in parts[-1]) + one.arm.agents > MOST_AGENTS:
            parts.append([])
        parts[-1].append(one)
    return parts
