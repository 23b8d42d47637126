"""Reading TOML files that people write."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from augury.errors import UserError


def read_toml(path: Path) -> dict[str, Any]:
    """What a file says, or one line that says why it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from error
