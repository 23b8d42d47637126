"""Where a run keeps its files: names as parts of paths, and folders that one run has for itself."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from augury.errors import UserError

LOCK = ".lock"


def slug(name: str) -> str:
    """A name as part of a path. Numbers below 0 stay apart from those above."""
    signed = re.sub(r"(?<![a-z0-9.])-(?=[0-9.])", "minus", name.lower())
    return re.sub(r"[^a-z0-9.]+", "-", signed).strip("-")


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Take a folder for a run, so that nobody else does meanwhile; it is made if there is none."""
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = path.open("w")
    except OSError as error:
        raise UserError(f"cannot use {folder}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have removed the file that is locked here: then it locks nothing.
            ours = path.stat().st_ino == os.fstat(lock.fileno()).st_ino
        except OSError:
            ours = False
        if not ours:
            raise UserError(f"{folder} is in use by another run")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
