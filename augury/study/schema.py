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
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from augury.errors import UserError, nearest
from augury.references import reference_to
from augury.study.claims import Axis, Claim
from augury.toml_files import read_toml

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


def converted(written: Any, kind: Any, where: str, table: str = "") -> Any:
    """A table as what it should be, or an error that names file, table and key."""
    try:
        return msgspec.convert(written, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {_in_words(str(error), kind, table)}") from None


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


_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_GOT = {**_EXPECTED, "float": "a fraction"}


def _in_words(message: str, kind: Any, table: str) -> str:
    """The message of msgspec in words, with the table and key as in the file, and the key that was meant."""
    said, _, path = message.partition(" - at ")
    steps = re.findall(r"\.(\w+)(?:\[(\d+)\])?", path)
    unknown = re.search(r"unknown field `(.+)`", said)
    missing = re.search(r"missing required field `(.+)`", said)
    for name, number in steps if unknown or missing else steps[:-1]:
        table = f"[[{name}]] {int(number) + 1}" if number else f"[{name}]"
        kind = next(part for part in _parts(_kinds(kind)[name]) if hasattr(part, "__struct_fields__"))
    where = f"in {table}, " if table else ""
    if unknown:
        return f"{where}unknown key '{unknown[1]}'{nearest(unknown[1], _kinds(kind))}"
    if missing:
        return f"{where}'{missing[1]}' is missing"
    name, number = steps[-1]
    key = f"{where}{f'item {int(number) + 1} of ' if number else ''}'{name}'"
    if wrong := re.search(r"[Ii]nvalid enum value '(.+)'", said):
        choices = [part for part in _parts(_kinds(kind)[name]) if isinstance(part, str)]
        return f"{key} cannot be '{wrong[1]}'{nearest(wrong[1], choices)}"
    expected, _, got = said.removeprefix("Expected ").partition(", got ")
    return f"{key} must be {_named(expected, _EXPECTED)}" + (f", not {_named(got, _GOT)}" if got else "")


def _named(kinds: str, names: dict[str, str]) -> str:
    """Kinds of values in words: `str | array` is a string or a list."""

    def either(found: re.Match[str]) -> str:
        known = [names.get(kind, kind) for kind in found[1].split(" | ") if kind != "null"]
        return " or ".join(known)

    words = re.sub(r"`(.+?)`", either, kinds).removesuffix(".0")
    return words.replace(">=", "of at least").replace("<=", "of at most").replace(">", "above")


def _kinds(kind: Any) -> dict[str, Any]:
    """The keys that a table may have, and the kind of value of each."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _parts(kind: Any) -> Iterator[Any]:
    """A type and all that it is made of, values of literals too."""
    yield kind
    for part in get_args(kind):
        yield from _parts(part)
