"""From a study's rows to arms that can be trained: shorthands spelt out, tasks and goals named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from augury.augmentations.catalogue import parse
from augury.envs import ENVIRONMENTS, make
from augury.envs.adapters import is_adapted
from augury.envs.knobs import split
from augury.errors import UserError, unknown_name
from augury.fleet import Arm, resolved
from augury.references import is_reference
from augury.study.claims import Claim
from augury.study.rows import PLAIN, Goals, rows_of, slug
from augury.study.schema import Study, Table, claim_place


class StudyArm(NamedTuple):
    """An arm of a study on one of its tasks."""

    task: str
    """The panel of the figure that it belongs to: the task, unless the file says otherwise."""
    name: str
    arm: Arm

    @property
    def folder(self) -> Path:
        """Where its results go, below the study's own."""
        return Path(slug(self.task)) / slug(self.name)


@dataclass(frozen=True)
class Size:
    """The size at which to run a study, where it differs from its file's."""

    quick: bool = False
    agents: int | None = None
    steps: int | None = None
    seed: int | None = None
    """Of each arm's first agent."""


def arms_of(study: Study, where: str, size: Size) -> list[StudyArm]:
    """Every arm on every task, checked. `where` is the file, which errors name."""
    _check_size(study, where, size)
    for task in study.tasks:
        _check_task(task, where)
    rows = list(rows_of(study, where, quick=size.quick))
    found = [
        StudyArm(_panel(written, task), name, _arm(study, f"{where}: in {place}", size, task, name, written))
        for task in study.tasks
        for place, name, written in rows
    ]
    _refuse_equals(found, where)
    for number, claim in enumerate(study.claims, 1):
        _check_claim(claim, found, f"{where}: in {claim_place(number, claim)}")
    return found


def _check_task(task: str, where: str) -> None:
    """A task is an environment: a name or a module:name, with knobs or without, or a prefix:name."""
    try:
        name, _ = (task, None) if is_adapted(task) else split(task)
        if not (is_reference(name) or is_adapted(name) or name in ENVIRONMENTS):
            raise unknown_name("task", name, ENVIRONMENTS)
        make(task)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _arm(study: Study, place: str, size: Size, task: str, name: str, row: Any) -> Arm:
    try:
        return resolved(Arm(**_settings(study, size, task, row)))
    except UserError as error:
        raise UserError(f"{place} ('{name}' on {task}), {error}") from None


def _settings(study: Study, size: Size, task: str, row: Any) -> Table:
    """A row's settings, as those of `Arm`."""
    smaller = study.quick if size.quick else None
    steps = size.steps or (smaller.steps if smaller else study.steps)  # 0 was refused
    settings: Table = {
        "environment": _environment(task, row.train_goals),
        "evaluation_environment": _environment(task, row.evaluation_goals),
        "agents": size.agents or (smaller.agents if smaller else study.agents),
        **({} if steps is None else {"steps": steps}),
        **{name: value for name in PLAIN if (value := getattr(row, name)) is not msgspec.UNSET},
        **({} if size.seed is None else {"seed": size.seed}),
    }
    if row.update_ratio is not None:
        settings["update_ratio"] = settings.get("ratio") if row.update_ratio == "ratio" else row.update_ratio
    if row.augmentation is None:
        settings |= {"ratio": None, "update_ratio": None}
    else:
        settings |= {"augmentation": _augmentation(row.augmentation, row.p, task), **_mixture(row)}
    if row.batch_factor != 1:
        plain = resolved(Arm(**settings))
        settings["batch_size"] = plain.batch_size * row.batch_factor
    return settings


def _environment(task: str, goals: Goals) -> str:
    if goals == "all":
        return task
    if (part := f"{task}-{goals}") not in ENVIRONMENTS:
        raise UserError(f"{task} has no goals called '{goals}'")
    return part


def _augmentation(written: str, p: float | None, task: str) -> str:
    """The augmentation with its parameter."""
    name = written.replace("{task}", task)
    if p is None:
        return name
    entry, said = parse(name)
    if said or "p" not in entry.parameters:
        raise UserError(f"'{name}' takes no 'p'{' beside its own' if said else ''}")
    return f"{name}({p:.15g})"


def _mixture(row: Any) -> Table:
    """Augmented and observed data in a ratio, together `total` times what an agent collects by itself."""
    if row.mixture is None:
        return {}
    if not (parts := re.fullmatch(r"([1-9]\d*):([1-9]\d*)", row.mixture)):
        raise UserError(f"'mixture' must read augmented:observed, as in '1:5', not '{row.mixture}'")
    augmented, observed = int(parts[1]), int(parts[2])
    share = augmented / observed
    return {
        "policy_data": row.total * observed / (augmented + observed),
        "ratio": share,
        "update_ratio": share,
    }


def _check_size(study: Study, where: str, size: Size) -> None:
    if size.quick and study.quick is None:
        raise UserError(f"{where}: there is no [quick] size of this study")
    for name, value in (("agents", size.agents), ("steps", size.steps)):
        if value is not None and value < 1:
            raise UserError(f"{name} must be at least 1, not {value}")
    if size.seed is not None and size.seed < 0:
        raise UserError(f"seed must be 0 or more, not {size.seed}")


def _panel(row: Any, task: str) -> str:
    return task if row.panel is None else str(row.panel.replace("{task}", task))


def _refuse_equals(found: list[StudyArm], where: str) -> None:
    """Two arms in one panel that would do the same, or be called the same."""
    names: set[tuple[str, str]] = set()
    folders: dict[Path, str] = {}
    settings: dict[str, str] = {}
    for one in found:
        if (one.task, one.name) in names:
            raise UserError(f"{where}: two arms are called '{one.name}': give one another 'name'")
        names.add((one.task, one.name))
        called = f"{one.task}, {one.name}"
        if (other := folders.setdefault(one.folder, called)) != called:
            raise UserError(
                f"{where}: '{other}' and '{called}' would share the folder {one.folder}: rename one"
            )
        if (other := settings.setdefault(f"{one.task} {one.arm.described()}", one.name)) != one.name:
            raise UserError(f"{where}: the arms '{other}' and '{one.name}' have the same settings")


def _check_claim(claim: Claim, found: list[StudyArm], place: str) -> None:
    """Every panel that it is about must have both arms."""
    panels = {one.task: {other.name for other in found if other.task == one.task} for one in found}
    for task in claim.tasks:
        if task not in panels:
            raise UserError(f"{place}, {unknown_name('task', task, panels)}")
    for task in claim.tasks or panels:
        for name in claim.arms:
            if name not in panels[task]:
                raise UserError(f"{place} on {task}, {unknown_name('arm', name, panels[task])}")
