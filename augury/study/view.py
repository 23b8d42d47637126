"""The view of a running study: its arms, their progress and scores, and the time left."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from augury.runs.results import score
from augury.runs.scores import middle
from augury.study.arms import StudyArm
from augury.study.runner import Event, Job
from augury.study.store import Store
from augury.study.time_left import TimeLeft

Key = tuple[str, str, str]
"""Study, task and arm."""

MOST_NAMED = 6
"""Arms of a fleet that a line names."""
_COLOURS = {"finished": "green", "failed": "red", "training": "cyan"}


class View:
    """A table on a terminal; elsewhere one line for whatever happens."""

    def __init__(
        self,
        studies: Sequence[tuple[Store, Sequence[StudyArm]]],
        jobs: Sequence[Job],
        console: Console,
        at_once: int = 1,
    ) -> None:
        self._console = console
        self._several = len(studies) > 1
        found = {_key(store, one): store.is_finished(one) for store, arms in studies for one in arms}
        self._state = {key: "finished" if finished else "waiting" for key, finished in found.items()}
        self._share = {key: float(finished) for key, finished in found.items()}
        self._score: dict[Key, str] = {}
        self._time_left = TimeLeft(jobs, at_once)
        self._live = Live(console=console, get_renderable=self._drawn, refresh_per_second=2)

    def show(self, event: Event) -> None:
        """Take note of what happened."""
        job, told = event.job, event.told
        if event.kind == "progress":
            self._advance(job, told)
        else:
            state = {"started": "training", "stopped": "waiting"}.get(event.kind, event.kind)
            self._state |= dict.fromkeys(_keys(job), state)
            if event.kind != "started":
                self._time_left.ended(job)
        if event.kind == "finished":
            self._share |= dict.fromkeys(_keys(job), 1.0)
        if not self._console.is_terminal or event.kind == "failed":  # a table has no room for the reason
            self._say(event)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def _advance(self, job: Job, told: dict[str, Any]) -> None:
        self._time_left.told(job, told["steps"], told["speed"], told["left"])
        self._share |= dict.fromkeys(_keys(job), told["steps"] / told["of"])
        for key, scores in zip(_keys(job), told["scores"] or (), strict=False):
            self._score[key] = score(told["measure"], middle(scores))

    def _drawn(self) -> Group:
        where = ("study",) if self._several else ()
        table = Table(*where, "task", "arm", "", box=None, header_style="bold", pad_edge=False)
        table.add_column("trained", width=20)
        table.add_column("so far", justify="right")
        for key, state in self._state.items():
            bar = ProgressBar(total=1.0, completed=self._share[key], width=20)
            said = Text(state, _COLOURS.get(state, "dim"))
            names = map(Text, key[0 if self._several else 1 :])
            table.add_row(*names, said, bar, self._score.get(key, "–"))
        return Group(table, Text(self._standing(), "dim"))

    def _standing(self) -> str:
        finished = sum(state == "finished" for state in self._state.values())
        return " · ".join([f"{finished} of {len(self._state)} arms", *self._time_left.words()])

    def _say(self, event: Event) -> None:
        names = _few([one.name for one in event.job.arms])
        place = f"{event.job.store.folder.name}, " if self._several else ""
        who = f"{place}{event.job.arms[0].task}: {names}"
        if event.kind == "progress" and event.told["scores"] is not None:
            steps = f"{event.told['steps']:,}/{event.told['of']:,} steps"
            scores = _few([self._score[key] for key in _keys(event.job)])
            line = f"{who}  {steps}  so far {scores}  {self._standing()}"
        elif event.kind != "progress":
            line = f"{who}  {event.kind}" + (f": {event.why}" if event.why else "")
        else:
            return
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)


def _few(words: list[str]) -> str:
    """The first of many, so that they fit a line."""
    more = len(words) - MOST_NAMED
    return ", ".join(words[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _key(store: Store, one: StudyArm) -> Key:
    return store.folder.name, one.task, one.name


def _keys(job: Job) -> list[Key]:
    return [_key(job.store, one) for one in job.arms]
