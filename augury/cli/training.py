"""`augury train` and `augury evaluate`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from augury import augmentations, envs, report
from augury.cli import loggers
from augury.cli.output import check_seconds, console, say
from augury.cli.runs import print_table
from augury.cli.settings import Settings
from augury.errors import RaisedElsewhere, UserError
from augury.files import PARTIAL, replacing
from augury.fleet import Arm, Interrupted, load_policies, resolved, train_fleet
from augury.fleet.progress import Display
from augury.fleet.training import Progress
from augury.runs import checkpoints, results
from augury.runs.files import LOCK, claimed, slug

TRACEBACK = "traceback.txt"
"""In a run's folder, where an environment raised an error."""


@dataclass(frozen=True)
class Train:
    """Train a fleet of agents, with or without augmentation.

    Settings that are not given are the environment's own: for locomotion and manipulation the paper's.
    run.json records what was used.

    Example: augury train goal2d --augmentation goal2d/translate --ratio 4 --agents 20 --out runs/translate
    """

    environment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")]
    """Where the agents collect experience: a name (see `augury list`), with knobs or without, as in
    'family/point(wind=0.1)'; a module:name; or gymnasium:ID."""
    settings: Annotated[Settings, tyro.conf.arg(name="")]
    out: Path | None = None
    """Folder for the results; by default one named after the arm, in runs/."""
    resume: bool = False
    """Go on with the run in that folder, from its last checkpoint."""
    checkpoint_every: float = 60.0
    """Seconds between checkpoints."""
    tensorboard: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Also write evaluations for TensorBoard, into a folder of DIR that is named as that of the results."""
    wandb: Annotated[str | None, tyro.conf.arg(metavar="PROJECT")] = None
    """Also send evaluations to this project of Weights & Biases."""

    def run(self) -> None:
        check_seconds(self.checkpoint_every)
        arm = resolved(Arm(environment=self.environment, **self.settings))
        folder = self.out or Path("runs") / _slug(arm)
        with claimed(folder):
            path = folder / checkpoints.NAME
            if _is_finished(folder, self.resume, arm.described()):
                path.unlink(missing_ok=True)
                print(f"{folder} is finished already: nothing to do")
                return
            try:
                with (
                    loggers.watching(arm, folder, tensorboard=self.tensorboard, wandb=self.wandb) as log,
                    Display(arm) as display,
                ):

                    def watch(standing: Progress) -> None:
                        display.show(standing)
                        log(standing)

                    result = train_fleet(
                        [arm], checkpoint=path, checkpoint_every=self.checkpoint_every, watch=watch
                    )[0]
            except Interrupted as stop:
                raise SystemExit(
                    say(f"{stop}; go on with the same command and --resume --out {folder}", code=130)
                ) from None
            except UserError as error:
                raise UserError(f"{error}{_traceback_kept(error, folder)}") from error
            results.write(folder, result)
            path.unlink(missing_ok=True)
        print_table([result])
        if result.restarts:
            print(result.restarts)
        print(f"results in {folder}")


@dataclass(frozen=True)
class Evaluate:
    """Evaluate the agents of a finished run without exploration, where they were trained or elsewhere.

    Example: augury evaluate runs/goal2d-quadrant-td3 --environment goal2d --episodes 200
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """A finished run's folder."""
    environment: str | None = None
    """Where to evaluate them: a name, or a module:name. By default where they were trained."""
    episodes: int = 80
    """Episodes of each agent."""
    seed: int = 0
    """Seed of how episodes start."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        policies = load_policies(self.folder)
        with Console(stderr=True).status("playing"):
            played = policies.play(self.environment, self.episodes, self.seed)
        rows = list(zip(policies.seeds, *(values.tolist() for values in played), strict=True))
        middle = [float(report.interquartile_mean(values)) for values in played]
        where = self.environment or policies.environment
        if self.json:
            agents = [{"seed": seed, **_rounded(success, returns)} for seed, success, returns in rows]
            said = {"environment": where, "trained_on": policies.environment, "episodes": self.episodes}
            print(json.dumps({**said, "agents": agents, "iqm": _rounded(*middle)}, indent=2))
            return
        table = Table(box=None, header_style="bold", pad_edge=False)
        for heading in ("seed", "success", "return"):
            table.add_column(heading, justify="right")
        for name, success, returns in (*rows, ("IQM", *middle)):
            table.add_row(str(name), f"{success:.2f}", f"{returns:,.2f}")
        console.print(table)
        print(f"{self.episodes} episodes of each agent on {where}, trained on {policies.environment}")


def _is_finished(folder: Path, resume: bool, asked: dict[str, Any]) -> bool:
    """Whether the run in this folder is finished; a folder that holds nothing yet becomes the new run's."""
    held = {
        path.name
        for path in folder.iterdir()
        if path.name not in (LOCK, TRACEBACK) and path.suffix != PARTIAL
    }
    begun = held == {results.RUN} and results.read_run(folder).get("finished") is None
    if not held or (begun and not resume):
        results.write_run(folder, asked, finished=None)
        return False
    if not resume:
        raise UserError(f"{folder} exists already: choose another --out, or go on with --resume")
    record = results.read_run(folder)
    checkpoints.refuse_other_run(folder, [record["asked"]], [asked])
    return record.get("finished") is not None


def _traceback_kept(error: UserError, folder: Path) -> str:
    """Where the traceback of an environment that raised an error was written, in words; empty if none was."""
    if not isinstance(error.__cause__, RaisedElsewhere):
        return ""
    path = folder / TRACEBACK
    with replacing(path) as temporary:
        temporary.write_text(str(error.__cause__).lstrip(), encoding="utf-8")
    return f" (traceback in {path})"


def _rounded(success: float, returns: float) -> dict[str, float | None]:
    """The results of episodes; a diverged agent has no return."""
    scores = {"success": success, "returns": returns}
    return {name: results.rounded(value, 4) for name, value in scores.items()}


def _called(environment: Any) -> str:
    """An environment's name, with its knobs where it has some."""
    reference = envs.reference(environment)
    return reference if "(" in reference else envs.make(environment).name


def _slug(arm: Arm) -> str:
    """A folder name that tells what arms mostly differ in."""
    parts = [_called(arm.environment), arm.algorithm]
    if arm.augmentation is not None:
        name = re.split("[/:]", augmentations.reference(arm.augmentation))[-1]
        parts += [name, f"m{arm.ratio:g}", f"a{arm.update_ratio:g}"]
    if arm.policy_data > 1:
        parts.append(f"x{arm.policy_data:.3g}")
    if arm.environments > 1:
        parts.append(f"k{arm.environments}")
    return slug("-".join(parts))
