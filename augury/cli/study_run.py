"""`augury study run`: its options. What it does is in `running`, imported while a first worker starts."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from augury.cli.output import check_seconds
from augury.errors import UserError
from augury.study.processes import check_needs, spare_worker
from augury.study.schema import Study, read
from augury.study.shipped import found, named


@dataclass(frozen=True)
class Run:
    """Run studies: train what is not finished yet, and write a report.

    Each study has a folder of its own below --out, named after its file. A study that was stopped or
    killed continues when the same command is given again.

    With --only, a part of a study is trained. The rest can be run later, into the same folder; until then
    the report says what is missing.

    Example: augury study run studies/paper/figure-11.toml --quick

    Example: augury study run studies/paper/figure-6.toml --only "m = 16" --only panda-push
    """

    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE…")]
    """Studies: files, or names of those that come with Augury (see `augury study list`)."""
    out: Path = Path("runs")
    """Where the studies' folders are."""
    quick: bool = False
    """Run each study in the size for a laptop that its file gives under [quick]."""
    agents: int | None = None
    """Agents of each arm, instead of the file's."""
    steps: int | None = None
    """Steps of each agent, instead of the file's."""
    seed: int | None = None
    """Seed of each arm's first agent, instead of 0."""
    only: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="TEXT")] = ()
    """An arm, a task, or "task: arm" to train. Arms and tasks together: these arms on these tasks."""
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
        files = [found(file) for file in self.files]
        if len({file.stem for file in files}) < len(files):
            raise UserError("two of these studies have the same name, and would share a folder")
        studies = [(file, read(file)) for file in files]
        if self.only and (without := [file for file, study in studies if not isinstance(study, Study)]):
            raise UserError(f"{named(without[0])} holds probabilities: it has no arms for --only")
        here = self.on == "here" and any(isinstance(study, Study) for _, study in studies)
        with spare_worker(self.jobs or 1) if here else nullcontext() as spare:
            from augury.cli import running  # slow: meanwhile the worker imports as much

            running.run(self, studies, spare)

    def command(self, file: Path) -> str:
        """What reproduces a study of this size: all of it, whichever part is run."""
        numbers = {"--agents": self.agents, "--steps": self.steps, "--seed": self.seed}
        words = ["augury", "study", "run", named(file)]
        for name, value in numbers.items():
            words += [] if value is None else [name, str(value)]
        words += ["--quick"] if self.quick else []
        return shlex.join(words)
