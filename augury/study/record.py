"""What a study has come to so far: all that reports are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from augury.fleet import Result
from augury.study.claims import Claim

Axis = Literal["steps", "updates"]


class Finished(NamedTuple):
    """An arm that has been run."""

    name: str
    """As the study calls it; on each task there is but one of that name."""
    task: str
    """The panel of the figure that it belongs to."""
    result: Result


@dataclass(frozen=True)
class Record:
    """A study and what came of it."""

    name: str
    """Of its file, without the ending."""
    title: str
    about: str
    """What it is for, in a sentence or two."""
    figure: str | None
    """Of the paper, where it is one of those."""
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
    """Arms (task, name) of the study; all on all tasks, if not said."""

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
