"""What a study's file may say. Everything is typed, and unknown keys are refused.

    title = "Augmented replay ratio"
    task = "goal2d"                        # or several, each a panel of the figure
    agents = 50
    steps = 200_000

    [settings]                             # of all arms: any setting of `Arm`
    update_ratio = 1

    [[arms]]
    augmentation = "goal2d/translate"
    ratio = [1, 2, 4, 8]                   # a list makes an arm of each

    [[claims]]
    says = "a lower augmented replay ratio is better"
    better = "translate, m = 8"
    than = "translate, m = 1"

An error names the file, the table and the key.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import msgspec

from augury.errors import UserError
from augury.references import reference_to
from augury.study.claims import Axis, Claim
from augury.toml_files import converted, read_toml

Table = dict[str, Any]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Quick(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same study for a laptop."""

    agents: Count
    steps: Count
    settings: Table = {}


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file, as it is written."""

    title: str
    task: str | tuple[str, ...]
    """An environment; or several, each a panel of the figure."""
    arms: tuple[Table, ...]
    """See `rows.Written` for what one may say."""
    agents: Count
    steps: Count | None = None
    """Of each agent; by default the task's own."""
    about: str = ""
    figure: str | None = None
    """Of the paper."""
    x_axis: Axis = "steps"
    settings: Table = {}
    """Of all arms; an arm's own settings take precedence."""
    quick: Quick | None = None
    claims: tuple[Claim, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        return (self.task,) if isinstance(self.task, str) else self.task


class Chance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a table of probabilities."""

    task: str
    augmentation: str
    paper: Share
    """What the paper prints."""
    note: str = ""


class ChanceStudy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often a random relabelling succeeds, task by task."""

    title: str
    samples: Count
    chances: tuple[Chance, ...]
    about: str = ""
    within: Share = 0.05
    """Relative error up to which the paper's figure is confirmed."""


def read(path: Path) -> Study | ChanceStudy:
    """A study from its file."""
    written = read_toml(path)
    kind = ChanceStudy if "chances" in written else Study
    study: Study | ChanceStudy = converted(written, kind, str(path))
    if isinstance(study, Study):
        _check(study, str(path))
    elif not study.chances:
        raise UserError(f"{path}: a study needs [[chances]]")
    return study


def checked(study: Study, where: str) -> Study:
    """A study that was made in Python, as strictly as if it were read. `where` is what errors name.

    Environments and augmentations that are objects become the `module:name` by which a worker finds them.
    """
    made: Study = converted(msgspec.to_builtins(study, enc_hook=_importable), Study, where)
    _check(made, where)
    return made


def _importable(value: Any) -> str:
    reference = reference_to(value)
    if reference is None or reference.startswith("__main__:"):
        raise UserError(f"other processes cannot import {value!r}: give it a name in a module")
    return reference


def _check(study: Study, where: str) -> None:
    if not study.arms:
        raise UserError(f"{where}: a study needs [[arms]]")
    if not study.tasks or len(set(study.tasks)) < len(study.tasks):
        raise UserError(f"{where}: 'task' must name one environment, or several different ones")
    for number, claim in enumerate(study.claims, 1):
        place = f"{where}: in {claim_place(number, claim)},"
        sides, equals = (claim.better, claim.than), (claim.alike, claim.within)
        better = None not in sides and equals == (None, None)
        alike = None not in equals and sides == (None, None) and not claim.by
        if not (better or alike):
            raise UserError(f"{place} say 'better' and 'than' (and maybe 'by'), or 'alike' and 'within'")
        if not math.isfinite(claim.by + (claim.within or 0.0)):
            raise UserError(f"{place} 'by' and 'within' must be finite")
        if len(set(claim.arms)) == 1:
            raise UserError(f"{place} '{claim.arms[0]}' is compared with itself")


def claim_place(number: int, claim: Claim) -> str:
    """Where a claim stands, for errors: one line, whatever it says."""
    return f"[[claims]] {number} ('{' '.join(claim.says.split())}')"
