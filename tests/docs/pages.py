"""The code blocks of a page, and how they are carried out.

    ```python title="puck.py"       a file of that name is written
    ```python                       a script is run
    ```console                      lines after `$ ` are commands; other lines must occur in their output.
                                    They end with exit code 0, unless a comment says `# exit code 1`
    ```diff title="augury/…"        lines after `-` are replaced by lines after `+`

Blocks of other kinds are left alone.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """One code block of a page."""

    kind: str
    title: str
    """The file that it is; empty for scripts and commands."""
    text: str


class Command(NamedTuple):
    """A command, the exit code that it must end with, and lines that its output must hold."""

    text: str
    arguments: list[str]
    code: int
    shown: list[str]


def blocks(page: str) -> list[Block]:
    """The code blocks of a page, in order."""
    return [Block(*found) for found in _BLOCK.findall((DOCS / page).read_text())]


def commands(text: str) -> list[Command]:
    """The commands of a console block."""
    found: list[Command] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            code = re.search(r"# exit code (\d)$", line)
            arguments = shlex.split(line[2:], comments=True)
            found.append(Command(line[2:], arguments, int(code[1]) if code else 0, []))
        elif line.strip() and line.strip() != "…":
            found[-1].shown.append(line.strip())
    return found


def changed(source: str, diff: str) -> str:
    """A file after a block of `-` and `+` lines, each `-` line being replaced by the `+` lines behind it."""
    for old, new in re.findall(r"^-(.*\n)((?:^\+.*\n)+)", diff, re.MULTILINE):
        assert source.count(old) == 1, f"{old!r} is not in the file, or more than once"
        source = source.replace(old, "".join(line[1:] for line in new.splitlines(keepends=True)))
    return source
