"""How a run looks while it goes: success or return so far, agent-steps per second, time left."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from augury import envs
from augury.fleet.arm import Arm
from augury.fleet.pace import duration
from augury.fleet.training import Progress as Standing
from augury.runs.results import WORDS, score
from augury.runs.scores import interquartile_mean


class Display:
    """A bar on a terminal; elsewhere one line per evaluation."""

    def __init__(self, arm: Arm) -> None:
        self._console = Console()
        self._steps = arm.rounds * arm.round_steps
        self._random_steps = arm.random_steps
        self._measure = envs.make(arm.environment).measure
        self._standing = "compiling"
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} steps"),
            TextColumn("{task.fields[pace]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task(self._standing, total=self._steps, pace="")

    def show(self, standing: Standing) -> None:
        """Take note of where the run stands."""
        pace = self._pace(standing)
        if standing.evaluated is not None:
            middle = interquartile_mean(getattr(standing.evaluated, self._measure))
            self._standing = f"{WORDS[self._measure]} {score(self._measure, float(middle))}"
            if not self._console.is_terminal:
                self._console.print(
                    f"{standing.steps:,}/{self._steps:,} steps  {self._standing}  {pace}".rstrip()
                )
        elif self._standing == "compiling":
            self._standing = "training"
        self._bar.update(self._task, completed=standing.steps, description=self._standing, pace=pace)

    def _pace(self, standing: Standing) -> str:
        """Speed and time left of learning: the random phase before it tells nothing about either."""
        if standing.speed is None or standing.left is None:
            return "random phase" if standing.steps <= self._random_steps else ""
        return f"{standing.speed:,.0f} agent-steps/s  about {duration(standing.left)} left"

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
