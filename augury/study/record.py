"""The results of a study so far: everything that reports are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from augury.errors import UserError, unknown_name
from augury.study.claims import Axis, Claim

if TYPE_CHECKING:
    from augury.runs.results import Result


class Finished(NamedTuple):
    """An arm that has been run."""

    name: str
    """As in the study; unique on each task."""
    task: str
    """The panel of the figure that it belongs to."""
    result: Result


@dataclass(frozen=True)
class Record:
    """A study and its results so far."""

    name: str
    """Of its file, without the ending."""
    title: str
    about: str
    """What it is for, in a sentence or two."""
    figure: str | None
    """Of the paper, if the study reproduces one."""
    x_axis: Axis
    tasks: Sequence[str]
    """Panels, in their order."""
    arms: Sequence[str]
    """Names, in their order; an arm has the same colour on every task."""
    claims: Sequence[Claim]
    finished: Sequence[Finished]
    """By task and arm, in these orders; some may be missing."""
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why the arm (task, name) could not be run."""
    command: str = ""
    """What reproduces it."""
    asked: Sequence[tuple[str, str]] = ()
    """Arms (task, name) of the study; by default all arms on all tasks."""

    @property
    def everything(self) -> Sequence[tuple[str, str]]:
        """Arms (task, name), with a result or without."""
        return self.asked or [(task, name) for task in self.tasks for name in self.arms]

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Arms (task, name) without a result."""
        found = {(one.task, one.name) for one in self.finished}
        return [key for key in self.everything if key not in found]

    def on(self, task: str) -> list[Finished]:
        """The arms of one panel that have been run."""
        return [one for one in self.finished if one.task == task]

    def result(self, arm: str, task: str | None = None) -> Result:
        """An arm's result; in a study with several tasks, on the given one."""
        if task is None and len(self.tasks) > 1:
            raise UserError(f"{self.name} has several tasks: name one of {', '.join(self.tasks)}")
        panel = self.tasks[0] if task is None else task
        if panel not in self.tasks:
            raise unknown_name("task", panel, self.tasks)
        found = {one.name: one.result for one in self.on(panel)}
        if (panel, arm) in self.everything and arm not in found:
            why = self.failed.get((panel, arm), "it has not been run")
            raise UserError(f"there is no result of '{arm}' on {panel}: {why}")
        if arm not in found:
            raise unknown_name("arm", arm, [name for one, name in self.everything if one == panel])
        return found[arm]
