"""From a study's tables to arms that can be trained: axes, shorthands, names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import msgspec

from augury.augmentations.catalogue import parse
from augury.envs import ENVIRONMENTS
from augury.errors import UserError, unknown_name
from augury.fleet import Arm
from augury.study.claims import Claim
from augury.study.schema import Count, Study, Table, claim_place, converted

Goals = Literal["all", "quadrant"]
_LONGEST = 100
"""Characters of a folder's name."""

_SHORTHANDS: dict[str, Any] = {
    "name": str | None,  # {ratio} and the like in it are filled in
    "augmentation": str | None,  # {task} in it is filled in
    "panel": str | None,  # of the figure; one for each task, if not said. {task} in it is filled in
    "p": float | None,  # the augmentation's parameter
    "update_ratio": float | Literal["ratio"] | None,  # a number, or as the ratio is
    "mixture": str | None,  # augmented:observed, of `total` times the data
    "total": Annotated[float, msgspec.Meta(gt=0)],
    "batch_factor": Count,
    "train_goals": Goals,
    "evaluation_goals": Goals,
}
_DEFAULTS: dict[str, Any] = {"total": 2.0, "batch_factor": 1, "train_goals": "all", "evaluation_goals": "all"}
_STUDY_SAYS = {
    "environment": "'task' says where agents train, at the top of the file, and 'train_goals' which goals",
    "evaluation_environment": "'evaluation_goals' says which goals of the task agents are evaluated on",
    "agents": "all arms have equally many, so say it at the top of the file or in [quick]",
    "steps": "all arms train equally long, so say it at the top of the file or in [quick]",
}
"""Settings of `Arm` that are not for a table, and why."""
_OF_AUGMENTATION = ("ratio", "update_ratio", "p", "mixture")
"""What an arm without augmentation does not say; where [settings] do, that is for the others."""
_PLAIN = {
    name: kind for name, kind in get_type_hints(Arm).items() if name not in {*_STUDY_SAYS, *_SHORTHANDS}
}

Written: Any = msgspec.defstruct(
    "Written",
    [(name, kind, _DEFAULTS.get(name)) for name, kind in _SHORTHANDS.items()]
    + [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in _PLAIN.items()],
    frozen=True,
    forbid_unknown_fields=True,
)
"""What an arm's table may say, once every list is one of its values."""

_CALLED = {
    "ratio": "m = {}",
    "update_ratio": "α = {}",
    "p": "p = {}",
    "policy_data": "×{} policy data",
    "batch_factor": "×{} batch",
    "mixture": "{}",
}
"""What an axis is called in the names of arms."""


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
    """How large to run a study, where not as its file says."""

    quick: bool = False
    agents: int | None = None
    steps: int | None = None


def arms_of(study: Study, where: str, size: Size) -> list[StudyArm]:
    """Every arm on every task, checked. `where` is the file, which errors name."""
    _check_size(study, where, size)
    _check_shared(study, where)
    rows = list(_rows(study, where, size))
    found = [
        StudyArm(_panel(row, task), name, _arm(study, f"{where}: in {place}", size, task, name, row))
        for task in study.tasks
        for place, name, row in rows
    ]
    _refuse_equals(found, where)
    for number, claim in enumerate(study.claims, 1):
        _check_claim(claim, found, f"{where}: in {claim_place(number, claim)}")
    return found


def slug(name: str) -> str:
    """A name as part of a path."""
    plain = name.lower().replace("×", "x").replace("α", "alpha").replace("β", "beta").replace("=", "")
    return re.sub(r"[^a-z0-9.]+", "-", plain).strip("-.")


def _rows(study: Study, where: str, size: Size) -> Iterator[tuple[str, str, Any]]:
    """Tables of arms, names and what each says, an axis taken apart."""
    overriding = study.quick.settings if size.quick and study.quick else {}
    for number, table in enumerate(study.arms, 1):
        place = f"[[arms]] {number}"
        said = {**study.settings, **table, **overriding}
        axes = [name for name, value in said.items() if _is_axis(name, value)]
        if empty := [name for name in axes if not said[name]]:
            raise UserError(f"{where}: in {place}, '{empty[0]}' is an empty list")
        for values in itertools.product(*(said[name] for name in axes)):
            own = said | dict(zip(axes, values, strict=True))
            _refuse_misplaced(own, place, where)
            row = converted(own, Written, where, place)
            _refuse_idle(table, row, f"{where}: in {place}")
            name = _name(row, {name: own[name] for name in axes}, f"{where}: in {place}")
            _refuse_unwritable((name, row.panel), f"{where}: in {place}")
            yield place, name, row


def _is_axis(name: str, value: Any) -> bool:
    """A list makes arms; but the widths of layers are a list themselves."""
    return isinstance(value, list) and (name != "hidden" or any(isinstance(one, list) for one in value))


def _name(row: Any, axes: Table, place: str) -> str:
    if row.name is not None and "{" in row.name:
        known = {name: _shown(value) for name, value in axes.items()}
        try:
            return str(row.name.format(**known))
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            fields = " and ".join(f"{{{name}}}" for name in known)
            what = f"can hold {fields} alone" if known else "has nothing to fill in: nothing here is a list"
            raise UserError(f"{place}, the name '{row.name}' {what}") from None
    base = row.name or ("none" if row.augmentation is None else row.augmentation.split("/")[-1])
    if row.update_ratio == "ratio" and "ratio" in axes:
        axes = {"m = α = {}": axes["ratio"], **{name: axes[name] for name in axes if name != "ratio"}}
    called = [
        (name if "{}" in name else _CALLED.get(name, f"{name} = {{}}")).format(_shown(value))
        for name, value in axes.items()
    ]
    if row.name is None and row.augmentation is None and called:
        return ", ".join(called)
    return ", ".join([base, *called])


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _arm(study: Study, place: str, size: Size, task: str, name: str, row: Any) -> Arm:
    try:
        return Arm(**_settings(study, size, task, row)).resolved()
    except UserError as error:
        raise UserError(f"{place} ('{name}' on {task}), {error}") from None


def _settings(study: Study, size: Size, task: str, row: Any) -> Table:
    """The settings of `Arm` that a row comes to."""
    smaller = study.quick if size.quick else None
    steps = size.steps or (smaller.steps if smaller else study.steps)  # 0 was refused
    settings: Table = {
        "environment": _environment(task, row.train_goals),
        "evaluation_environment": _environment(task, row.evaluation_goals),
        "agents": size.agents or (smaller.agents if smaller else study.agents),
        **({} if steps is None else {"steps": steps}),
        **{name: value for name in _PLAIN if (value := getattr(row, name)) is not msgspec.UNSET},
    }
    if row.update_ratio is not None:
        settings["update_ratio"] = settings.get("ratio") if row.update_ratio == "ratio" else row.update_ratio
    if row.augmentation is None:
        settings |= {"ratio": None, "update_ratio": None}
    else:
        settings |= {"augmentation": _augmentation(row.augmentation, row.p, task), **_mixture(row)}
    if row.batch_factor != 1:
        plain = Arm(**settings).resolved()
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


def _check_shared(study: Study, where: str) -> None:
    """[settings] are for all arms, so each must know them; and names are for arms."""
    for task in study.tasks:
        if task not in ENVIRONMENTS:
            raise UserError(f"{where}: {unknown_name('task', task, ENVIRONMENTS)}")
    for table, said in (
        ("[settings]", study.settings),
        ("[quick.settings]", study.quick.settings if study.quick else {}),
    ):
        for name, value in said.items():
            if name == "name" or _is_axis(name, value):
                what = "is for one arm" if name == "name" else "is a list, which makes arms"
                raise UserError(f"{where}: in {table}, '{name}' {what}: say it in [[arms]]")
        _refuse_misplaced(said, table, where)
        converted(said, Written, where, table)


def _refuse_misplaced(said: Table, table: str, where: str) -> None:
    for name, why in _STUDY_SAYS.items():
        if name in said:
            raise UserError(f"{where}: in {table}, unknown key '{name}': {why}")


def _refuse_idle(table: Table, row: Any, place: str) -> None:
    """What an arm's own table says must do something."""
    for name in _OF_AUGMENTATION:
        if name in table and row.augmentation is None:
            raise UserError(f"{place}, '{name}' needs an 'augmentation'")
    if "total" in table and row.mixture is None:
        raise UserError(f"{place}, 'total' needs a 'mixture'")
    for name in ("ratio", "update_ratio", "policy_data"):
        if name in table and row.mixture is not None:
            raise UserError(f"{place}, 'mixture' says '{name}' too: leave one of them out")
    if row.panel is not None and "{" in row.panel.replace("{task}", ""):
        raise UserError(f"{place}, the panel '{row.panel}' can hold {{task}} alone")


def _refuse_unwritable(names: Iterable[str | None], place: str) -> None:
    """What is called so gets a folder of its own, and a line in tables."""
    for name in names:
        if name is not None and not (name.isprintable() and 0 < len(slug(name)) <= _LONGEST):
            rule = f"it takes 1 to {_LONGEST} letters and digits, on one line"
            raise UserError(f"{place}, {name!r} cannot name a folder: {rule}")


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
                f"{where}: '{other}' and '{called}' would share the folder {one.folder}: call one otherwise"
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
