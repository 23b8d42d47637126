"""Equal arms are trained once: a study takes the results of the studies in the folders beside its own.

Only arms of environments and augmentations that have names are shared: a `module:name` may mean something
else since its file was edited.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from augury.errors import UserError
from augury.references import is_reference
from augury.runs import results
from augury.study.arms import StudyArm
from augury.study.store import STUDY, Store

_NAMED = ("environment", "evaluation_environment", "augmentation")


def identity(asked: dict[str, Any]) -> str | None:
    """The same for arms that were asked to do the same, agent by agent; None where that cannot be known."""
    if any(is_reference((asked.get(name) or "").partition("(")[0]) for name in _NAMED):
        return None
    return json.dumps(asked, sort_keys=True)


def identities(arms: Sequence[StudyArm]) -> set[str]:
    """Of all arms that have one."""
    return {known for one in arms if (known := identity(one.arm.described())) is not None}


def take_equal(store: Store, arms: Collection[StudyArm]) -> list[str]:
    """Copy the results of unfinished arms that another study has finished; returns remarks for the user."""
    waiting = [one for one in arms if not store.is_finished(one)]
    beside = _finished_beside(store) if waiting else {}
    said = []
    for one in waiting:
        found = beside.get(identity(one.arm.described()) or "")
        if found is not None and _copied(found, store.place(one)):
            when = results.read_run(found).get("finished", "at an unknown time")
            said.append(
                f"{one.task}: {one.name} is that of {found}, finished {when}: it is not trained again"
            )
    return said


def _finished_beside(store: Store) -> dict[str, Path]:
    """Where other studies keep the results of finished arms, by identity."""
    found: dict[str, Path] = {}
    for path in sorted(store.folder.parent.glob(f"*/{STUDY}")):
        if path.parent == store.folder:
            continue
        with suppress(UserError):  # a damaged study says so itself
            for place, result in Store(path.parent).finished().items():
                if (known := identity(result.asked)) is not None:
                    found.setdefault(known, place)
    return found


def _copied(source: Path, place: Path) -> bool:
    """Copy a folder so that it is either whole or not there; whether it could be done."""
    unfinished = place.with_name(f".{place.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        shutil.copytree(source, unfinished)
        unfinished.rename(place)
    except OSError:  # a full disk, say: the arm is trained instead
        shutil.rmtree(unfinished, ignore_errors=True)
        return False
    return True
