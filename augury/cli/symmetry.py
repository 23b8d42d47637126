"""`augury symmetry`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import mujoco
import tyro
from rich.console import Console

from augury import envs
from augury.cli.output import console
from augury.envs.adapters import is_adapted
from augury.envs.mujoco import robots
from augury.envs.mujoco.task import MujocoTask
from augury.errors import UserError, unknown_name
from augury.files import replacing
from augury.references import is_reference
from augury.report import tables
from augury.symmetry import DEFAULT_TOLERANCE, Symmetrised, around, symmetrise
from augury.symmetry.export.code import Form
from augury.symmetry.export.writing import Source, checked_out, export
from augury.symmetry.model_audit import Audit, read_model
from augury.symmetry.observed.listing import Described, read, whole_state
from augury.symmetry.observed.mirror import mirror_of
from augury.symmetry.observed.of_task import observed_by
from augury.verify import audit
from augury.verify.subjects import environment_of

MODEL_FILES = (".xml", ".mjcf", ".urdf")


@dataclass(frozen=True)
class Symmetry:
    """Derive a robot's mirror map from its model and list what is not symmetric.

    The verdict is exact, approximate or not symmetric; the exit code is 1 for the last.
    For Gymnasium's robots it audits two models: Gymnasium's own, and the corrected one, which decides the
    exit code.

    Example: augury symmetry humanoid
    """

    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL.xml|ENV")]
    """A MuJoCo model file, or an environment: a name, or your own as module:name."""
    normal: Literal["x", "y", "z"] | None = None
    """Normal of the mirror plane: y exchanges left and right, x front and back. By default the first of y, x
    and z that serves (ant: x)."""
    distance: float | None = None
    """Distance of the mirror plane from the origin. By default it is found from the model."""
    reference: str | None = None
    """Keyframe near which the robot is symmetric, where it is not so at qpos0."""
    pair: Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="ONE=OTHER")] = ()
    """Bodies, joints or actuators that are mirror images, where that is not clear: left_hip=right_hip. Can be
    given several times."""
    only: Annotated[str | None, tyro.conf.arg(metavar="REGEX")] = None
    """Mirror only joints whose names have a match of this expression, and the base: 'hip|knee|ankle'."""
    tolerance: float = DEFAULT_TOLERANCE
    """Relative size of differences that are taken for what CAD leaves: the model is then approximate."""
    symmetrise: Annotated[Path | None, tyro.conf.arg(metavar="OUT.xml")] = None
    """Write the model made symmetric, and audit that: what is found is averaged over left and right; all else
    stays as it was."""
    side: Literal["left", "right", "front", "back", "top", "bottom"] | None = None
    """With --symmetrise: take this side, and make the other its mirror image."""
    json: bool = False
    """Print JSON instead of tables."""
    export: Form | None = None
    """Write the map as a file for numpy, torch, jax, rsl_rl or json, and tests of it beside."""
    terms: Path | None = None
    """A TOML file that lists what is observed where the robot is trained; by default what a task of ours
    observes, or of a model its whole state."""
    out: Path | None = None
    """The file that --export writes; by default mirror.py, or mirror.json."""

    def run(self) -> None:
        if self.side is not None and self.symmetrise is None:
            raise UserError("--side belongs to --symmetrise OUT.xml")
        listed = self._listed()
        changes: dict[str, Any] = {}
        if self.symmetrise is None:
            models = self._models()
        else:
            done = self._symmetrised(self.symmetrise)
            changes = {"changes": [each.as_json() for each in done.changes]}
            plane = {"normal": done.reflection.normal_name}
            models = [{"model": read_model(self.symmetrise), "name": str(self.symmetrise), **plane}]
        with Console(stderr=True).status("asking the simulator"):
            audits = [audit(tolerance=self.tolerance, **self._mirror(), **each) for each in models]
        if self.json:
            print(json.dumps([each.as_json() | changes for each in audits], indent=2))
        else:
            console.print(tables.mirror_map(audits[-1]))
            for each in audits:
                console.print(tables.audited(each))
        if not audits[-1].symmetric:
            if listed is not None:
                print("no map was written: see --tolerance, --symmetrise and --only", file=sys.stderr)
            raise SystemExit(1)
        if listed is not None:
            for path in self._exported(listed, models[-1]["model"], audits[-1]):
                print(f"wrote {path}", file=sys.stderr if self.json else sys.stdout)

    def _listed(self) -> Described | None:
        """What the exported map is for; None where none is asked for."""
        if self.export is None:
            if self.terms or self.out:
                raise UserError("--terms and --out belong to --export: say numpy, torch, jax, rsl_rl or json")
            return None
        checked_out(self.export, self.out)
        if self.export == "rsl_rl" and self.terms is None:
            raise UserError("--export rsl_rl needs --terms FILE.toml: the terms of each observation group")
        if self.terms is not None:
            return read(self.terms)
        return observed_by(self._task) if isinstance(self._task, MujocoTask) else whole_state()

    def _exported(self, listed: Described, model: mujoco.MjModel, found: Audit) -> tuple[Path, ...]:
        assert self.export is not None
        out, mirror, task = checked_out(self.export, self.out), found.reflection, self._task
        verdict = f"Its symmetry is {found.verdict}" + (f": {found.reason}" if found.reason else "")
        terms = None if self.terms is None else self.terms.name
        if terms is None and isinstance(task, MujocoTask):
            terms = self.model
            if task.action_scale is not None:
                mirror = around(mirror, task.anatomy.ctrl, self.model)
        if self._is_file:
            source = Source(self.symmetrise or Path(self.model), terms, (f"{verdict}.",))
        else:
            source = Source(out.with_suffix(".mjb"), terms, (f"{verdict}.",), self.model)
        return export(mirror_of(model, listed, mirror), self.export, out, source)

    @property
    def _is_file(self) -> bool:
        return self.model.endswith(MODEL_FILES)

    @cached_property
    def _task(self) -> Any:
        """The task or environment that is meant; None where it is a file, or a robot without a task."""
        named = self.model in envs.ENVIRONMENTS or is_reference(self.model) or is_adapted(self.model)
        return environment_of(self.model) if named and not self._is_file else None

    def _symmetrised(self, out: Path) -> Symmetrised:
        """The model made symmetric, and written."""
        if not self._is_file:
            raise UserError(f"--symmetrise needs a model's file: {self.model} is none")
        if out.resolve() == Path(self.model).resolve():
            raise UserError(f"--symmetrise would overwrite {out}: name another file")
        with Console(stderr=True).status("making it symmetric"):
            done = symmetrise(Path(self.model), self.normal or "auto", side=self.side, **self._mirror())
            with replacing(out) as temporary:
                done.document.write(temporary)
        if not self.json:
            console.print(tables.symmetrised(done))
        print(f"wrote {out}", file=sys.stderr if self.json else sys.stdout)
        return done

    def _models(self) -> list[dict[str, Any]]:
        """The models to audit; the last one decides the exit code."""
        if self._is_file:
            model = read_model(Path(self.model))
            return [{"model": model, "name": self.model, "normal": self.normal or "auto"}]
        if (task := self._task) is not None:
            model, table = getattr(task, "model", None), getattr(task, "table", None)
            if not isinstance(model, mujoco.MjModel):
                raise UserError(f"{self.model} has no MuJoCo model: name a robot, or a file ending in .xml")
            table = table if isinstance(table, Sequence) else None  # of a dict observation it is a dict
            robot, corrections = getattr(task, "robot", None), getattr(task, "corrections", None)
            if robot is None or corrections is None:
                normal = self.normal or str(getattr(task, "mirror_normal", "auto"))
                return [{"model": model, "name": self.model, "normal": normal, "table": table}]
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

    def _mirror(self) -> dict[str, Any]:
        """Where the mirror stands, and what it exchanges."""
        for text in self.pair:
            if text.count("=") != 1:
                raise UserError(f"--pair must read one=other, not '{text}'")
        pairs = dict(text.split("=") for text in self.pair)
        return {"pairs": pairs, "distance": self.distance, "reference": self.reference, "only": self.only}
