"""`augury advise`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from augury.advise.advice import Advice, advise
from augury.advise.measured import Watcher
from augury.advise.race import FEWEST, Standing
from augury.advise.racing import run_race, span_of
from augury.cli.output import console
from augury.errors import UserError
from augury.fleet import Arm
from augury.report.advice import cards, write_advice
from augury.runs.files import claimed, slug

PAGE = "advice.html"
RACE = "race"
WITHOUT = "without"
"""The arm without augmentation, in a race."""


@dataclass(frozen=True)
class Advise:
    """Tell before training whether augmentations will help, and how much of each to use.

    A short run without augmentation shows what an augmentation would add. A model that was fitted on many
    trained arms turns that into what it is worth, in multiples of the policy's own data.

    Example: augury advise goal2d --augmentation goal2d/translate --augmentation goal2d/rotate
    """

    environment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """Where agents will train: a name (see `augury list`), a module:name, or gymnasium:ID."""
    augmentation: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A candidate; give it once for each."""
    steps: int | None = None
    """Of each agent that will be trained; by default the environment's own."""
    algorithm: str | None = None
    """With which; by default the environment's own."""
    pilot_steps: int | None = None
    """Of the short run; by default a quarter of an agent's steps, and at most 4,000."""
    seed: int = 0
    """Of the short run and of all that is drawn."""
    out: Path | None = None
    """Folder for the page and for what was measured; by default runs/advice-ENV."""
    race: bool = False
    """Then train candidates that may help beside an arm without, and drop those that are behind."""
    agents: int = 10
    """Of each candidate in the race."""
    returns: tuple[float, float] | None = None
    """In the race, where the task is measured by returns: those that count as nothing and as perfect."""
    json: bool = False
    """Print JSON instead of cards."""

    def run(self) -> None:
        if not self.augmentation:
            raise UserError("augury advise needs --augmentation NAME, once or several times: see --help")
        self._check_race()
        folder = self.out or Path("runs") / slug(f"advice-{self.environment}")
        with claimed(folder):
            with progress_bar() as watch:
                found = advise(
                    self.environment,
                    self.augmentation,
                    steps=self.steps,
                    algorithm=self.algorithm,
                    pilot_steps=self.pilot_steps,
                    seed=self.seed,
                    folder=folder,
                    pictures=True,
                    watch=watch,
                )
            write_advice(folder / PAGE, found)
            standing = self._raced(found, folder) if self.race else None
        if self.json:
            raced = None if standing is None else _as_json(standing)
            print(json.dumps({"advice": [one.as_json() for one in found], "race": raced}, indent=2))
            return
        console.print(cards(found))
        if self.race:
            console.print(_told(standing))
        print(f"the page is {folder / PAGE}")

    def _check_race(self) -> None:
        """What a race would refuse is refused before the pilot."""
        if not self.race:
            if self.returns is not None:
                raise UserError("--returns is about the race: give --race too, or leave it out")
            return
        span_of(Arm(environment=self.environment), self.returns)
        if self.agents < FEWEST:
            raise UserError(f"a race needs {FEWEST} agents of each candidate or more: --agents {self.agents}")

    def _raced(self, found: list[Advice], folder: Path) -> Standing | None:
        """Those that may help, beside an arm without augmentation."""
        hopeful = [one for one in found if one.may_help]
        if not hopeful:
            return None
        given = {"algorithm": self.algorithm, "steps": self.steps}
        shared: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        shared |= {"environment": self.environment, "agents": self.agents, "seed": self.seed}
        arms = {WITHOUT: Arm(**shared)} | {
            one.augmentation: Arm(
                augmentation=one.augmentation, ratio=one.ratio, update_ratio=one.update_ratio, **shared
            )
            for one in hopeful
        }
        with progress_bar() as show:

            def watch(standing: Standing, turn: str) -> None:
                show(f"{turn} trains; in the race: {', '.join(standing.racing)}", standing.cost)

            return run_race(arms, folder / RACE, returns=self.returns, watch=watch)


@contextmanager
def progress_bar() -> Iterator[Watcher]:
    """What is being done and how far it is, on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda doing, share: bar.update(task, description=doing, completed=share)


def _told(standing: Standing | None) -> str:
    """How a race ended, in a sentence."""
    if standing is None:
        return "race: no candidate may help, so none was trained"
    saved = f"{standing.cost:.0%} of the steps of all"
    if standing.winner is not None:
        what = "training without augmentation" if standing.winner == WITHOUT else standing.winner
        return f"race: {what} wins, after {saved}"
    return f"race: {', '.join(standing.racing)} cannot be told apart, after {saved}; {standing.leader} leads"


def _as_json(standing: Standing) -> dict[str, Any]:
    return {
        "winner": standing.winner,
        "leader": standing.leader,
        "racing": list(standing.racing),
        "out": {name: {"agents": agents, "steps": steps} for name, (agents, steps) in standing.out.items()},
        "cost": standing.cost,
    }
