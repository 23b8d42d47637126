"""What commands print to."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console

console = Console()


def say(message: str, code: int) -> int:
    """One line for the user; returns the exit code that goes with it."""
    print(f"augury: {message}", file=sys.stderr)
    return code


def by_number(path: Path) -> list[str | int]:
    """To sort by: figure 2 before figure 10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]
