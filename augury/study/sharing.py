"""Equal arms are trained once: a study takes the results of the studies in the folders beside its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from augury.errors import UserError
from augury.runs import results
from augury.study.arms import StudyArm
from augury.study.store import ARMS, Store


def identity(asked: dict[str, Any]) -> str:
    """The same for arms that were asked to do the same, agent by agent."""
    return json.dumps(asked, sort_keys=True)


def take_equal(store: Store, arms: Sequence[StudyArm]) -> list[str]:
    """Copy the results of unfinished arms that another study has finished; returns remarks for the user."""
    waiting = [one for one in arms if not store.is_finished(one)]
    beside = _finished_beside(store) if waiting else {}
    said = []
    for one in waiting:
        if (found := beside.get(identity(one.arm.described()))) is not None:
            _copy(found, store.place(one))
            said.append(f"{one.task}: {one.name} is that of {found}, and not trained again")
    return said


def _finished_beside(store: Store) -> dict[str, Path]:
    """Where other studies keep the results of finished arms, by identity."""
    found: dict[str, Path] = {}
    for path in sorted(store.folder.parent.glob(f"*/{ARMS}/*/*/{results.EVALUATIONS}")):
        if store.folder in path.parents:
            continue
        try:
            found.setdefault(identity(results.read(path.parent).asked), path.parent)
        except UserError:  # damaged: that study will say so
            continue
    return found


def _copy(source: Path, place: Path) -> None:
    """Copy a folder so that it is either whole or not there."""
    unfinished = place.with_name(f".{place.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        shutil.copytree(source, unfinished)
        unfinished.rename(place)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise UserError(f"cannot copy {source} to {place}: {error.strerror}") from error
