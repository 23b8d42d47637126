"""What commands print to."""

from __future__ import annotations

import sys

from rich.console import Console

console = Console()


def say(message: str, code: int) -> int:
    """One line for the user; returns the exit code that goes with it."""
    print(f"augury: {message}", file=sys.stderr)
    return code
