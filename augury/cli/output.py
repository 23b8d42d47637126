"""What commands have in common: where they print to, what they refuse."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from rich.console import Console

from augury.errors import UserError

console = Console()


def say(message: str, code: int) -> int:
    """One line for the user; returns the exit code that goes with it."""
    print(f"augury: {message}", file=sys.stderr)
    return code


def check_seconds(checkpoint_every: float) -> None:
    """Whether there will be checkpoints."""
    if not 0 <= checkpoint_every < math.inf:
        raise UserError(f"checkpoint_every must be 0 or more, not {checkpoint_every:g}")


def by_number(path: Path) -> list[str | int]:
    """To sort by: figure 2 before figure 10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]
