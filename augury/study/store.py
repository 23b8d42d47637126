"""A study's folder: what was asked, what is finished, what failed.

    study.json                      the study: its arms and claims, and the command
    study.toml                      the file it was read from, if there was one
    arms/TASK/ARM/                  a finished arm's results: run.json, evaluations.npz, policies.safetensors
    fleets/ID/                      a fleet that is not finished: its checkpoint, its log, why it failed

A fleet's results are published all at once: they are moved to `arms` when the last has been written.
A runner that dies in between has its successor finish the move.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from augury.errors import UserError
from augury.files import replacing
from augury.runs import checkpoints, results
from augury.runs.results import Result
from augury.study.claims import Axis, Claim
from augury.study.record import Finished, Record
from augury.study.schema import Study

if TYPE_CHECKING:
    from augury.study.arms import StudyArm

STUDY, SOURCE = "study.json", "study.toml"
ARMS, FLEETS = "arms", "fleets"
FINISHED, FAILURE, PROGRESS = "finished", "failure.json", "progress.json"
UNFINISHED, PLACES = f".{FINISHED}", "places.json"
"""`FINISHED` while it is being written; the folders below `ARMS` to which its arms are moved."""
_FORMAT = 1


class _UnreadableError(UserError):
    """The study's record is missing or damaged."""


class AskedArm(msgspec.Struct, frozen=True):
    """An arm that was asked for."""

    task: str
    name: str
    folder: str
    """Of its results, below `ARMS`."""

    @property
    def key(self) -> tuple[str, str]:
        return self.task, self.name


class _Format(msgspec.Struct, frozen=True):
    """What `study.json` holds in every format."""

    format: int


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What `study.json` holds."""

    format: int = _FORMAT
    name: str
    title: str
    about: str
    figure: str | None
    x_axis: Axis
    claims: tuple[Claim, ...]
    rows: list[AskedArm]
    command: str


@dataclass(frozen=True)
class Store:
    """The folder of one study."""

    folder: Path

    def begin(
        self,
        study: Study,
        name: str,
        source: bytes | None,
        arms: Sequence[StudyArm],
        command: str,
        chosen: Sequence[StudyArm] | None = None,
    ) -> list[str]:
        """Record the study, and finish what an earlier runner left half done; returns remarks for the user.

        An arm that was run with other settings is refused, and its results are not touched. If only the
        `chosen` arms are to be run, the failures and damaged results of the others stay.
        """
        chosen = arms if chosen is None else chosen
        try:
            for fleet in sorted((self.folder / FLEETS).glob(f"*/{FINISHED}")):
                self.publish(fleet.parent)
            said = [*self._set_aside(arms, chosen), *self._changes(arms)]
            trying = {(one.task, one.name) for one in chosen}
            for failure, told in self.of_fleets(FAILURE):
                if any((task, arm) in trying for task, arm in told["arms"]):
                    failure.unlink()
        except OSError as error:
            raise UserError(f"cannot use {error.filename or self.folder}: {error.strerror}") from error
        self._write(study, name, source, arms, command)
        return said

    def others_begun(self, ours: Collection[Path]) -> list[str]:
        """Remarks about unfinished fleets that are not part of the study any more.

        Their checkpoints stay, in case the change is undone.
        """
        said = []
        for fleet in sorted((self.folder / FLEETS).glob("*/")):
            if fleet not in ours:
                (fleet / PROGRESS).unlink(missing_ok=True)
                if (fleet / checkpoints.NAME).exists():
                    said.append(f"{fleet} was begun with other arms or settings: it is left as it is")
        return said

    def place(self, one: StudyArm) -> Path:
        """Where an arm's results go."""
        return self.folder / ARMS / one.folder

    def is_finished(self, one: StudyArm) -> bool:
        return (self.place(one) / results.EVALUATIONS).exists()

    def finished(self) -> dict[Path, Result]:
        """The results of finished arms, by where they are; damaged ones are left out."""
        found = {}
        for row in self._read().rows:
            place = self.folder / ARMS / row.folder
            with suppress(UserError):
                found[place] = _whole(place)
        return found

    def publish(self, fleet: Path) -> None:
        """Move the results of a finished fleet to `ARMS`, and remove the fleet's folder."""
        try:
            places = json.loads((fleet / FINISHED / PLACES).read_text(encoding="utf-8"))
        except FileNotFoundError:
            places = []  # all is moved already: that runner was killed while removing the fleet
        for number, place in enumerate(places):
            made, target = fleet / FINISHED / str(number), self.folder / ARMS / place
            if made.exists() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                made.rename(target)
        for path in fleet.iterdir():  # goes last: it tells that the rest is to be removed
            if path.is_file():
                path.unlink()
        shutil.rmtree(fleet)

    def fail(self, fleet: Path, arms: Sequence[StudyArm], why: str) -> None:
        """Note that a fleet could not be run."""
        with suppress(UserError, OSError), replacing(fleet / FAILURE) as temporary:  # on a full disk, say
            rows = [[one.task, one.name] for one in arms]
            temporary.write_text(json.dumps({"arms": rows, "why": why}, indent=2) + "\n", encoding="utf-8")

    def record(self) -> Record:
        """The study's results so far."""
        about = self._read()
        finished, failed = [], self._by_arm(FAILURE, itemgetter("why"))
        for row in about.rows:
            place = self.folder / ARMS / row.folder
            if not (place / results.EVALUATIONS).exists():
                continue
            try:
                finished.append(Finished(row.name, row.task, _whole(place)))
                failed.pop(row.key, None)
            except UserError as error:
                failed[row.key] = str(error)
        return Record(
            name=about.name,
            title=about.title,
            about=about.about,
            figure=about.figure,
            x_axis=about.x_axis,
            tasks=list(dict.fromkeys(row.task for row in about.rows)),
            arms=list(dict.fromkeys(row.name for row in about.rows)),
            claims=about.claims,
            finished=finished,
            failed=failed,
            command=about.command,
            asked=[row.key for row in about.rows],
        )

    def progress(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Where the arms of unfinished fleets stand, by task and name."""
        return self._by_arm(PROGRESS, lambda standing: standing)

    def of_fleets(self, file: str) -> Iterator[tuple[Path, Any]]:
        """Files with that name in the folders of unfinished fleets, with their content; not damaged ones."""
        for path in sorted((self.folder / FLEETS).glob(f"*/{file}")):
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            yield path, told

    def _by_arm(self, file: str, value: Callable[[Any], Any]) -> dict[tuple[str, str], Any]:
        """The content of files with that name in the folders of unfinished fleets, by task and arm."""
        found: dict[tuple[str, str], Any] = {}
        for _, told in self.of_fleets(file):
            found |= {(task, name): value(told) for task, name in told["arms"]}
        return found

    def _set_aside(self, arms: Sequence[StudyArm], chosen: Sequence[StudyArm]) -> list[str]:
        """Move damaged results out of the way; refuse results of other settings, which are not touched."""
        said = []
        for one in arms:
            if (place := self.place(one)).exists():
                try:
                    found = _whole(place)
                except UserError as error:
                    if one in chosen:
                        said.append(f"{error}: it was moved to {_aside(place).name}, and is run again")
                    continue
                try:
                    checkpoints.refuse_other_run(place, [found.asked], [one.arm.described()])
                except UserError as error:
                    raise UserError(f"{error}: choose another --out, or move it away") from None
        return said

    def _changes(self, arms: Sequence[StudyArm]) -> list[str]:
        """Which arms were added to the study, and which removed, since it was begun."""
        try:
            before = {row.key for row in self._read().rows}
        except _UnreadableError:
            return []  # it is written anew
        now = {(one.task, one.name) for one in arms}
        said = {
            f"arms that are new since {self.folder} was begun": len(now - before),
            f"arms in {self.folder} that are no longer in the study, and left as they are": len(before - now),
        }
        return [f"{what}: {count}" for what, count in said.items() if count]

    def _write(
        self, study: Study, name: str, source: bytes | None, arms: Sequence[StudyArm], command: str
    ) -> None:
        about = About(
            name=name,
            title=study.title,
            about=study.about,
            figure=study.figure,
            x_axis=study.x_axis,
            claims=study.claims,
            rows=[AskedArm(one.task, one.name, str(one.folder)) for one in arms],
            command=command,
        )
        with replacing(self.folder / STUDY) as temporary:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(about)) + b"\n")
        if source is None:  # it was made in Python
            (self.folder / SOURCE).unlink(missing_ok=True)
            return
        with replacing(self.folder / SOURCE) as temporary:
            temporary.write_bytes(source)

    def _read(self) -> About:
        path = self.folder / STUDY
        try:
            content = path.read_bytes()
            written = msgspec.json.decode(content, type=_Format).format
            about = msgspec.json.decode(content, type=About) if written == _FORMAT else None
        except OSError as error:
            raise _UnreadableError(
                f"{self.folder} holds no study: cannot read {STUDY} ({error.strerror})"
            ) from error
        except (ValueError, msgspec.MsgspecError) as error:
            raise _UnreadableError(
                f"{path} is damaged: run the study again, finished arms are kept"
            ) from error
        if about is None:
            raise UserError(f"{path} has format {written}, not {_FORMAT}")
        return about


def _whole(place: Path) -> Result:
    """An arm's results, or an error that tells what is wrong with them."""
    found = results.read(place)
    evaluations = found.evaluations
    shared = [evaluations.get(name, np.zeros(0)).shape for name in ("steps", "updates", "transitions")]
    scores = evaluations.get(found.measure, np.zeros(0)).shape
    if len({*shared, scores[1:]}) > 1 or scores[:1] != evaluations.get("seeds", np.zeros(0)).shape:
        raise UserError(f"{place} is damaged: its curves do not fit its steps and seeds")
    return found


def _aside(place: Path) -> Path:
    """Move a damaged folder out of the way; nothing is deleted."""
    number = 1
    while (aside := place.with_name(f"{place.name}.damaged-{number}")).exists():
        number += 1
    return place.rename(aside)
