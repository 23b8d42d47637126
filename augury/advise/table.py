"""The table of what augmentations were worth: one row for each arm, one CSV file.

`rows_from` makes rows of learning curves; `write` and `read` keep them. The columns are the fields of `Row`
in their order, then one `signal.NAME` for every signal, in alphabetical order. An empty cell is not known.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

from augury.advise.cells import above_zero, any_text, count, finite, one_of, or_unknown, share
from augury.advise.worth import BOOTSTRAP, EARLY, Censored, Curves, areas, gain, worth
from augury.errors import UserError, nearest
from augury.files import replacing
from augury.runs.statistics import Bootstrap

Truth = Literal["exact", "useless", "coverage-only", "reward-only", "slightly-wrong", "badly-wrong"]
"""What is known about an augmentation of a family, because it was made so."""

SIGNAL = "signal."


class Setting(NamedTuple):
    """What arms must share for their difference to be the augmentation's."""

    family: str
    task: str
    algorithm: str
    replay_ratio: float
    steps: int


@dataclass(frozen=True, kw_only=True)
class Described:
    """An arm with augmentation, as it was asked for, and the signals that were measured before."""

    family: str
    """Tasks made by one program; predictions are judged on families never seen."""
    task: str
    """The environment's name, with its numbers."""
    augmentation: str
    truth: Truth
    error: float = 0.0
    """How wrong the augmentation was made, in its own unit; 0 if it is exact."""
    algorithm: str
    ratio: float = 1.0
    """m"""
    update_ratio: float = 1.0
    """α"""
    replay_ratio: float = 0.5
    """Updates per observed transition."""
    steps: int
    """The budget of an agent."""
    signals: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def setting(self) -> Setting:
        """What its arm without augmentation shares."""
        return Setting(self.family, self.task, self.algorithm, self.replay_ratio, self.steps)


@dataclass(frozen=True, kw_only=True)
class Row(Described):
    """An arm with what came of it. Intervals are 90%, over agents."""

    agents: int
    area: float
    """Mean score from step 0 to the end, over agents."""
    area_none: float
    """The same without augmentation."""
    gain: float
    gain_low: float
    gain_high: float
    early_gain: float | None = None
    """The gain after a tenth of the training."""
    worth: float | None = None
    """As a multiple of policy data (see `augury.advise.worth`); unknown without arms of more policy data."""
    worth_low: float | None = None
    worth_high: float | None = None
    censored: Censored = ""
    """'below' or 'above': the worth lies beyond what was measured."""

    @property
    def decided(self) -> bool:
        """Whether the interval of the gain leaves no doubt about its sign."""
        return self.gain_low > 0 or self.gain_high < 0


def rows_from(
    arms: Iterable[tuple[Described, Curves]],
    policy: Mapping[Setting, Mapping[float, Curves]],
    bootstrap: Bootstrap = BOOTSTRAP,
) -> list[Row]:
    """Rows of trained arms; `policy` has the arms without augmentation, by their multiple of policy data."""
    return [_row(arm, trained, policy, bootstrap) for arm, trained in arms]


def _row(
    arm: Described,
    trained: Curves,
    policy: Mapping[Setting, Mapping[float, Curves]],
    bootstrap: Bootstrap,
) -> Row:
    references = policy.get(arm.setting, {})
    if 1 not in references:
        what = f"{arm.task} with {arm.algorithm}, {arm.replay_ratio:g} updates a step and {arm.steps:,} steps"
        raise UserError(f"{what} has no arm without augmentation to compare '{arm.augmentation}' with")
    none = references[1]
    gained = gain(trained, none, bootstrap=bootstrap)
    worths: dict[str, Any] = {}
    if len(references) > 1:
        found = worth(trained, references, bootstrap)
        worths = {"worth": found.middle, "worth_low": found.low, "worth_high": found.high}
        worths["censored"] = found.censored
    return Row(
        **{name.name: getattr(arm, name.name) for name in fields(Described)},
        agents=len(trained.scores),
        area=float(areas(trained).mean()),
        area_none=float(areas(none).mean()),
        gain=gained.middle,
        gain_low=gained.low,
        gain_high=gained.high,
        early_gain=float(areas(trained, EARLY).mean() - areas(none, EARLY).mean()),
        **worths,
    )


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write the table, sorted by what was asked."""
    with replacing(path) as temporary:
        temporary.write_text(text(rows))


def merged(earlier: Iterable[Row], later: Iterable[Row]) -> list[Row]:
    """The rows of both; an arm that is in both is the later one's."""
    return list({_key(row): row for row in (*earlier, *later)}.values())


def digest(rows: Iterable[Row]) -> str:
    """Tells tables apart: of what the file holds."""
    return hashlib.sha256(text(rows).encode()).hexdigest()[:16]


def text(rows: Iterable[Row]) -> str:
    """The table as CSV. Settings are written in full, measurements with four digits."""
    ordered = sorted(rows, key=_key)
    names = sorted({name for row in ordered for name in row.signals})
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*_COLUMNS, *(SIGNAL + name for name in names)])
    for row in ordered:
        cells = [_cell(name, getattr(row, name)) for name in _COLUMNS]
        writer.writerow([*cells, *(_cell(SIGNAL, row.signals.get(name)) for name in names)])
    return file.getvalue()


def read(path: Path) -> list[Row]:
    """Read a table, checking every cell."""
    try:
        lines = csv.reader(path.read_text().splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    header = next(lines, [])
    _check_header(path, header)
    return list(_checked(path, header, lines))


def _checked(path: Path, header: Sequence[str], lines: Iterable[Sequence[str]]) -> Iterator[Row]:
    seen: dict[tuple[Any, ...], int] = {}
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(header):
            raise UserError(f"{path}, line {number}: {len(cells)} cells, and {len(header)} columns")
        values = {
            name: _value(name, cell, f"{path}, line {number}, column '{name}'")
            for name, cell in zip(header, cells, strict=True)
        }
        signals = {name[len(SIGNAL) :]: values.pop(name) for name in header if name.startswith(SIGNAL)}
        row = Row(**values, signals=signals)
        if (first := seen.setdefault(_key(row), number)) != number:
            raise UserError(f"{path}, line {number}: the same arm as in line {first}")
        yield row


def _check_header(path: Path, header: Sequence[str]) -> None:
    for name in header:
        if name not in _COLUMNS and not name.startswith(SIGNAL):
            raise UserError(f"{path}, line 1: unknown column '{name}'{nearest(name, _COLUMNS)}")
    for name in _COLUMNS:
        if header.count(name) != 1:
            raise UserError(f"{path}, line 1: column '{name}' is there {header.count(name)} times, not once")


def _key(row: Row) -> tuple[Any, ...]:
    return (*row.setting, row.augmentation, row.ratio, row.update_ratio)


_COLUMNS: dict[str, Callable[[str], Any]] = {
    "family": any_text,
    "task": any_text,
    "augmentation": any_text,
    "truth": one_of(Truth),
    "error": finite,
    "algorithm": any_text,
    "ratio": above_zero,
    "update_ratio": above_zero,
    "replay_ratio": above_zero,
    "steps": count,
    "agents": count,
    "area": share,
    "area_none": share,
    "gain": finite,
    "gain_low": finite,
    "gain_high": finite,
    "early_gain": or_unknown(finite),
    "worth": or_unknown(above_zero),
    "worth_low": or_unknown(above_zero),
    "worth_high": or_unknown(above_zero),
    "censored": one_of(Censored),
}
"""The columns in their order, each with the check of its cells."""

_IN_FULL = {"error", "ratio", "update_ratio", "replay_ratio"}


def _value(name: str, cell: str, place: str) -> Any:
    check = _COLUMNS.get(name, or_unknown(finite))
    try:
        return check(cell)
    except ValueError as error:
        raise UserError(f"{place}: {error}") from None


def _cell(name: str, value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, float):
        return f"{value:.10g}" if name in _IN_FULL else f"{value:.4g}"
    return str(value)
