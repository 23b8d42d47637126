"""The command line: `augury train`, `evaluate`, `verify`, `symmetry`, `show`, `report`, `list`."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from augury import envs, report
from augury.agents import ALGORITHMS
from augury.augmentations import CATALOGUE
from augury.envs import ENVIRONMENTS, Locomotion, robots
from augury.errors import UserError, unknown_name
from augury.fleet import (
    Arm,
    Interrupted,
    Result,
    checkpoint,
    load_policies,
    results,
    train_fleet,
    use_all_cores,
)
from augury.fleet.files import PARTIAL
from augury.fleet.progress import Display
from augury.report import tables
from augury.verify import audit, verify
from augury.verify.symmetry import read_model

LOCK = ".lock"
console = Console()


@dataclass(frozen=True, kw_only=True)
class Train(Arm):
    """Train a fleet of agents, with or without augmentation.

    The defaults shown are Goal2D's. Locomotion and manipulation have their own, the paper's; run.json says
    what was used.

    Example: augury train goal2d --augmentation goal2d/translate --ratio 4 --agents 20 --out runs/translate
    """

    environment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ENV")] = field()
    """Where the agents collect experience (see `augury list`)."""
    augmentation: str | None = None
    """Name of an augmentation, parameters in brackets: 'goal2d/translate-proximal(0.1)'."""
    out: Path | None = None
    """Folder for the results; by default one named after the arm, in runs/."""
    resume: bool = False
    """Go on with the run in that folder, from its last checkpoint."""
    checkpoint_every: float = 60.0
    """Seconds between checkpoints."""

    def run(self) -> None:
        arm = Arm(**{field.name: getattr(self, field.name) for field in fields(Arm)}).resolved()
        folder = self.out or Path("runs") / _slug(arm)
        with _claimed(folder, self.resume, arm) as finished:
            path = folder / checkpoint.NAME
            if finished:
                path.unlink(missing_ok=True)
                print(f"{folder} is finished already: nothing to do")
                return
            try:
                with Display(arm) as display:
                    result = train_fleet(
                        [arm], checkpoint=path, checkpoint_every=self.checkpoint_every, watch=display.show
                    )[0]
            except Interrupted as stop:
                raise SystemExit(
                    _say(f"{stop}; go on with the same command and --resume --out {folder}", code=130)
                ) from None
            results.write(folder, result)
            path.unlink(missing_ok=True)
        _print_table([result])
        print(f"results in {folder}")


@dataclass(frozen=True)
class Evaluate:
    """Let the agents of a finished run play, without exploration: where they were trained, or elsewhere.

    Example: augury evaluate runs/goal2d-quadrant-td3 --environment goal2d --episodes 200
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """A finished run's folder."""
    environment: str | None = None
    """Where to play; where they were trained, if not said."""
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


@dataclass(frozen=True)
class Report:
    """Print a table of the runs in a folder and draw their learning curves.

    Example: augury report results/reproduce
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """A run's folder, or one that holds several."""
    json: bool = False
    """Print the table as JSON instead."""

    def run(self) -> None:
        if not self.folder.is_dir():
            raise UserError(f"no folder {self.folder}")
        folders = sorted(path.parent for path in self.folder.glob(f"**/{results.EVALUATIONS}"))
        if not folders:
            raise UserError(f"no finished run in {self.folder}")
        found = [results.read(folder) for folder in folders]
        picture = self.folder / "curves.png"
        report.learning_curves(found, picture)
        if self.json:
            print(json.dumps([_row(result) for result in found], indent=2))
            return
        _print_table(found)
        print(f"curves in {picture}")


@dataclass(frozen=True)
class Verify:
    """Ask the simulator whether it agrees with an augmentation; exit code 1 where it does not.

    Example: augury verify humanoid/rotate --environment humanoid-paper
    """

    augmentation: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AUGMENTATION")]
    """Name of an augmentation (see `augury list`), or one of your own as module:name."""
    environment: str | None = None
    """Where to verify it: a name, or your own as module:name. By default the augmentation's own."""
    samples: int = 10_000
    """Transitions to verify."""
    tolerance: float = 1e-8
    """Largest error of a valid transition."""
    seed: int = 0
    """Seed of what is collected and augmented."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        augmentation, environment = _imported(self.augmentation), _imported(self.environment)
        if isinstance(environment, Callable):  # type: ignore[arg-type]
            environment = environment()
        with Console(stderr=True).status("asking the simulator"):
            report = verify(
                augmentation,
                environment,
                samples=self.samples,
                tolerance=self.tolerance,
                seed=self.seed,
            )
        if self.json:
            print(json.dumps(report.as_json(), indent=2))
        else:
            console.print(tables.verification(report))
        if not report.valid:
            raise SystemExit(1)


@dataclass(frozen=True)
class Symmetry:
    """Derive a robot's mirror map from its model and list what is not symmetric; exit code 1 if anything is.

    Of an environment both models are looked at: Gymnasium's, and ours with its corrections, which decides.

    Example: augury symmetry humanoid
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL.xml|ENV")]
    """A MuJoCo model file, or an environment."""
    normal: Literal["x", "y"] | None = None
    """Normal of the mirror plane: y exchanges left and right, x front and back. By default y (ant: x)."""
    pair: tuple[str, ...] = ()
    """Bodies or actuators that are mirror images, where that is not clear: left_hip=right_hip."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        with Console(stderr=True).status("asking the simulator"):
            audits = [audit(pairs=self._pairs(), **each) for each in self._models()]
        if self.json:
            print(json.dumps([each.as_json() for each in audits], indent=2))
        else:
            console.print(tables.mirror_map(audits[-1]))
            for each in audits:
                console.print(tables.audited(each))
        if not audits[-1].symmetric:
            raise SystemExit(1)

    def _models(self) -> list[dict[str, Any]]:
        """What to audit, the one that decides last."""
        if self.model.endswith((".xml", ".mjcf", ".urdf")):
            model = read_model(Path(self.model))
            return [{"model": model, "name": self.model, "normal": self.normal or "y"}]
        if self.model in envs.ENVIRONMENTS:
            task = envs.make(self.model)
            if not isinstance(task, Locomotion):
                raise UserError(f"{self.model} has no MuJoCo model: name a robot, or a file ending in .xml")
            robot, corrections, table = task.robot, task.corrections, task.table
        else:  # a robot without a task
            robot, table = self.model.replace("-", "_"), None
            if robot not in robots.CORRECTIONS:
                raise unknown_name("robot", self.model, {*robots.CORRECTIONS, *envs.ENVIRONMENTS})
            corrections = robots.corrections_of(robot, "corrected")
        names: dict[tuple[str, ...], str] = {(): f"{robot} as Gymnasium has it"}
        names |= {corrections: f"{self.model} as corrected ({', '.join(corrections)})"} if corrections else {}
        normal = self.normal or robots.MIRROR_NORMAL[robot]
        return [
            {"model": robots.load(robot, which).compile(), "name": name, "normal": normal, "table": table}
            for which, name in names.items()
        ]

    def _pairs(self) -> dict[str, str]:
        for text in self.pair:
            if text.count("=") != 1:
                raise UserError(f"--pair must read one=other, not '{text}'")
        return dict(text.split("=") for text in self.pair)


@dataclass(frozen=True)
class Show:
    """Draw observed transitions beside the augmented ones an augmentation makes of them.

    Example: augury show 'goal2d/translate-proximal(0.5)' --out proximal.png
    """

    augmentation: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AUGMENTATION")]
    """Name of an augmentation, parameters in brackets (see `augury list`)."""
    environment: str | None = None
    """Where its transitions are from; by default the augmentation's own. Relabellings have several."""
    out: Path | None = None
    """The PNG to write; by default named after the augmentation."""
    seed: int = 0
    """Seed of what is drawn."""

    def run(self) -> None:
        path = self.out or Path(re.sub(r"[^a-z0-9.]+", "-", self.augmentation).strip("-") + ".png")
        report.draw_augmentation(self.augmentation, path, self.environment, seed=self.seed)
        print(f"picture in {path}")


@dataclass(frozen=True)
class List:
    """List environments, algorithms and augmentations.

    Example: augury list --json
    """

    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        augmentations = [
            {
                "augmentation": entry.signature,
                "environment": entry.environment,
                "needs": list(entry.needs),
                "does": entry.summary,
            }
            for entry in CATALOGUE.values()
        ]
        if self.json:
            names = {"environments": list(ENVIRONMENTS), "algorithms": list(ALGORITHMS)}
            print(json.dumps({**names, "augmentations": augmentations}, indent=2))
            return
        console.print(f"environments: {', '.join(ENVIRONMENTS)}")
        console.print(f"algorithms: {', '.join(ALGORITHMS)}")
        table = Table("augmentation", "environment", "does", box=None, header_style="bold")
        for row in augmentations:
            table.add_row(str(row["augmentation"]), str(row["environment"]), str(row["does"]))
        console.print(table)


COMMANDS: dict[str, Callable[..., Any]] = {
    "train": Train,
    "evaluate": Evaluate,
    "verify": Verify,
    "symmetry": Symmetry,
    "show": Show,
    "report": Report,
    "list": List,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input is one line and exit code 2."""
    use_all_cores()
    try:
        _parsed(arguments).run()
    except UserError as error:
        raise SystemExit(_say(str(error), code=2)) from None
    except jax.errors.JaxRuntimeError as error:  # out of memory, most of all
        raise SystemExit(_say(str(error).splitlines()[0], code=1)) from error
    except BrokenPipeError:  # whoever was reading has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(_say("interrupted", code=130)) from None


def _parsed(arguments: list[str] | None) -> Any:
    """The command asked for. What tyro says in a box of several lines becomes one."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise unknown_name("command", arguments[0], COMMANDS)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.extras.subcommand_cli_from_dict(
                COMMANDS, prog="augury", args=arguments, config=(tyro.conf.FlagCreatePairsOff,)
            )
    except SystemExit as leaving:
        if leaving.code != 2:
            raise
        raise UserError(_one_line(said.getvalue())) from None


def _one_line(box: str) -> str:
    """The gist of tyro's complaint, whose first line is a title and whose rules are dashes."""
    lines = [line.strip("│╰╯ ") for line in box.splitlines()[1:]]
    text = " ".join(line for line in lines if line.strip("─-"))
    text = re.sub(r"\s*(Argument helptext|For full helptext).*", "", text)
    if unknown := re.match(r"Unrecognized options: ([^\s,]+)", text):
        near = re.search(r"Perhaps you meant: (--[\w-]+)", text)
        hint = f": did you mean '{near.group(1)}'?" if near else ""
        return f"unknown option '{unknown.group(1)}'{hint}"
    if wrong := re.match(r"Error parsing ([^\s:]+): .*?('[^']*')", text):
        return f"{wrong.group(1)} cannot be {wrong.group(2)}: see --help for what it takes"
    if missing := re.match(r"Missing from (augury \w+): (\S+)", text):
        return f"{missing.group(1)} needs {missing.group(2)}: see --help"
    return text


def _imported(text: str | None) -> Any:
    """What a user calls module:name; other text is returned as it is."""
    if text is None or not re.fullmatch(r"[\w.]+:\w+", text):
        return text
    module, name = text.split(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"cannot import '{text}': {error}") from error


@contextlib.contextmanager
def _claimed(folder: Path, resume: bool, arm: Arm) -> Iterator[bool]:
    """Take a folder for a run, and say whether that run is finished. Nothing of another run is touched."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("w")
    except OSError as error:
        raise UserError(f"cannot use {folder}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{folder} is in use by another run") from None
        try:
            yield _is_finished(folder, resume, arm.described())
        finally:
            (folder / LOCK).unlink(missing_ok=True)


def _is_finished(folder: Path, resume: bool, asked: dict[str, Any]) -> bool:
    """Whether the run in this folder is finished; a folder without a run becomes the new run's."""
    if not any(path for path in folder.iterdir() if path.name != LOCK and path.suffix != PARTIAL):
        results.write_run(folder, asked, finished=None)
        return False
    if not resume:
        raise UserError(f"{folder} exists already: choose another --out, or go on with --resume")
    record = results.read_run(folder)
    checkpoint.refuse_other_run(folder, [record["asked"]], [asked])
    return record.get("finished") is not None


def _row(result: Result) -> dict[str, Any]:
    """One arm in a table."""
    evaluations = result.evaluations
    curve = report.iqm_curve(result.curves())
    return {
        "arm": result.label,
        "agents": len(evaluations["seeds"]),
        "steps": int(evaluations["steps"][-1]),
        result.measure: round(float(curve.middle[-1]), 3),
        "interval": [round(float(curve.low[-1]), 3), round(float(curve.high[-1]), 3)],
        "steps to 0.9": (
            report.first_to_reach(evaluations["steps"], curve.middle, 0.9)
            if result.measure == "success"
            else None
        ),
        "beta": _number(evaluations["augmented_replay_ratio"]),
        "observed reward density": _number(evaluations["observed_reward_density"]),
        "augmented reward density": _number(evaluations["augmented_reward_density"]),
        "coverage": _number(evaluations["coverage"]),
        "diverged": result.diverged,
        "seconds": round(result.seconds, 1),
    }


def _number(values: np.ndarray[Any, Any]) -> float | None:
    """The mean over agents at the last evaluation."""
    mean = float(values[:, -1].mean())
    return None if np.isnan(mean) else round(mean, 5)


def _rounded(success: float, returns: float) -> dict[str, float | None]:
    """What came of episodes, for JSON, which has no NaN: a diverged agent's return."""
    scores = {"success": success, "returns": returns}
    return {name: None if np.isnan(value) else round(value, 4) for name, value in scores.items()}


def _print_table(found: list[Result]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("arm", no_wrap=True)
    measure = report.common_measure(found)
    for heading in ("agents", "steps", results.WORDS[measure], "95% belt", "to 0.9", "β", "cover"):
        table.add_column(heading, justify="right")
    for row in map(_row, found):
        low, high = row["interval"]
        beta, reached = row["beta"], row["steps to 0.9"]
        table.add_row(
            row["arm"],
            str(row["agents"]),
            f"{row['steps']:,}",
            results.score(measure, row[measure]),
            f"{results.score(measure, low)}–{results.score(measure, high)}",
            "–" if reached is None else f"{reached:,}",
            "–" if beta is None else f"{beta:.3g}",
            f"{row['coverage']:.2f}",
        )
    console.print(table)
    for result in found:
        for seed, step in result.diverged.items():
            console.print(
                f"{result.label}: seed {seed} diverged by step {step:,}; it counts with what it scored"
            )


def _slug(arm: Arm) -> str:
    """A folder name that tells arms apart."""
    parts = [arm.environment, arm.algorithm]
    if arm.augmentation is not None:
        parts += [str(arm.augmentation).split("/")[-1], f"m{arm.ratio:g}", f"a{arm.update_ratio:g}"]
    if arm.policy_data > 1:
        parts.append(f"x{arm.policy_data}")
    if arm.environments > 1:
        parts.append(f"k{arm.environments}")
    return re.sub(r"[^a-z0-9.]+", "-", "-".join(parts).lower()).strip("-")


def _say(message: str, code: int) -> int:
    print(f"augury: {message}", file=sys.stderr)
    return code
