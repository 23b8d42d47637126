"""From a study's tables to rows, one for each arm: lists taken apart, values typed, names given."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import msgspec

from augury.errors import UserError
from augury.fleet import Arm
from augury.runs import files
from augury.study.schema import Count, Study, Table
from augury.toml_files import converted

Goals = Literal["all", "quadrant"]
_LONGEST = 100
"""Characters of a folder's name."""

_SHORTHANDS: dict[str, Any] = {
    "name": str | None,  # {ratio} and the like in it are filled in
    "augmentation": str | None,  # {task} in it is filled in
    "panel": str | None,  # of the figure; by default one for each task. {task} in it is filled in
    "p": float | None,  # the augmentation's parameter
    "update_ratio": float | Literal["ratio"] | None,  # a number, or the arm's `ratio`
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
"""Keys that an arm without augmentation may not have; in [settings] they concern the other arms only."""
PLAIN = {name: kind for name, kind in get_type_hints(Arm).items() if name not in {*_STUDY_SAYS, *_SHORTHANDS}}

Written: Any = msgspec.defstruct(
    "Written",
    [(name, kind, _DEFAULTS.get(name)) for name, kind in _SHORTHANDS.items()]
    + [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in PLAIN.items()],
    frozen=True,
    forbid_unknown_fields=True,
)
"""The keys of an arm's table, after every list was replaced by one of its values."""

_CALLED = {
    "ratio": "m = {}",
    "update_ratio": "α = {}",
    "p": "p = {}",
    "policy_data": "×{} policy data",
    "batch_factor": "×{} batch",
    "mixture": "{}",
}
"""What an axis is called in the names of arms."""


class Row(NamedTuple):
    """An arm as written in its table."""

    place: str
    """Of the table, for errors."""
    name: str
    written: Any
    """A `Written`."""


def rows_of(study: Study, where: str, *, quick: bool) -> Iterator[Row]:
    """The arms of a study, for any of its tasks. `where` is the file, which errors name."""
    _check_shared(study, where)
    overriding = study.quick.settings if quick and study.quick else {}
    for number, table in enumerate(study.arms, 1):
        place = f"[[arms]] {number}"
        said = {**study.settings, **table, **overriding}
        axes = [name for name, value in said.items() if _is_axis(name, value)]
        if empty := [name for name in axes if not said[name]]:
            raise UserError(f"{where}: in {place}, '{empty[0]}' is an empty list")
        for values in itertools.product(*(said[name] for name in axes)):
            own = said | dict(zip(axes, values, strict=True))
            _refuse_misplaced(own, place, where)
            written = converted(own, Written, where, place)
            _refuse_idle(table, written, f"{where}: in {place}")
            name = _name(written, {name: own[name] for name in axes}, f"{where}: in {place}")
            _refuse_unwritable((name, written.panel), f"{where}: in {place}")
            yield Row(place, name, written)


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
        if name != "augmentation" or row.name is not None  # else it is the name already
    ]
    if row.name is None and row.augmentation is None and called:
        return ", ".join(called)
    return ", ".join([base, *called])


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def slug(name: str) -> str:
    """A name as part of a path, with the symbols in arms' names spelt out."""
    plain = name.lower().replace("×", "x").replace("α", "alpha").replace("β", "beta").replace("=", "")
    return files.slug(plain).strip("-.")


def _check_shared(study: Study, where: str) -> None:
    """[settings] are for all arms: no unknown keys, no names and no lists."""
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
    """Refuse keys in an arm's own table that would have no effect."""
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
    """A name must fit a folder, and a line of a table."""
    for name in names:
        if name is not None and not (name.isprintable() and 0 < len(slug(name)) <= _LONGEST):
            rule = f"it takes 1 to {_LONGEST} letters and digits, on one line"
            raise UserError(f"{place}, {name!r} cannot name a folder: {rule}")
