"""Files that are whole or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from augury.errors import UserError

PARTIAL = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well, and is removed otherwise."""
    temporary = path.with_name(f".{path.name}{PARTIAL}")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
