"""The command line: a command is a dataclass of its options that can `run`."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import tyro

from augury.cli import listing, proof, reporting, studies, training
from augury.cli.output import say
from augury.errors import UserError, unknown_name
from augury.fleet import use_all_cores


@dataclass(frozen=True)
class Study:
    """Studies from files: `augury study run`, `status`, `list`, `export`.

    Example: augury study run studies/paper/figure-1.toml --quick
    """


COMMANDS: dict[str, Callable[..., Any]] = {
    "train": training.Train,
    "evaluate": training.Evaluate,
    "study": Study,
    "verify": proof.Verify,
    "symmetry": proof.Symmetry,
    "show": proof.Show,
    "report": reporting.Report,
    "list": listing.List,
}
STUDY_COMMANDS: dict[str, Callable[..., Any]] = {
    "run": studies.Run,
    "status": studies.Status,
    "list": studies.List,
    "export": studies.Export,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input is one line and exit code 2."""
    use_all_cores()
    try:
        _parsed(arguments).run()
    except UserError as error:
        raise SystemExit(say(str(error), code=2)) from None
    except (jax.errors.JaxRuntimeError, MemoryError) as error:  # the first is out of memory, most of all
        raise SystemExit(say((str(error) or "out of memory").splitlines()[0], code=1)) from error
    except BrokenPipeError:  # whoever was reading has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(say("interrupted", code=130)) from None


def _parsed(arguments: list[str] | None) -> Any:
    """The command asked for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["study"]:
        return _of(STUDY_COMMANDS, "augury study", arguments[1:] or ["--help"])
    return _of(COMMANDS, "augury", arguments)


def _of(commands: dict[str, Callable[..., Any]], program: str, arguments: list[str]) -> Any:
    """One of these commands. What tyro says in a box of several lines becomes one."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands:
        raise unknown_name("command", arguments[0], commands)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.extras.subcommand_cli_from_dict(
                commands, prog=program, args=arguments, config=(tyro.conf.FlagCreatePairsOff,)
            )
    except SystemExit as leaving:
        if leaving.code != 2:
            raise
        raise UserError(_one_line(said.getvalue())) from None


def _one_line(box: str) -> str:
    """The gist of tyro's complaint, whose first line is a title and whose rules are dashes."""
    lines = [line.strip("│╰╯ ") for line in box.splitlines()[1:]]
    text = " ".join(line for line in lines if line.strip("─-"))
    text = re.sub(r"\s*(Argument helptext|For full helptext).*", "", text)
    if unknown := re.match(r"Unrecognized options: ([^\s,]+)", text):
        near = re.search(r"Perhaps you meant: (--[\w-]+)", text)
        hint = f": did you mean '{near.group(1)}'?" if near else ""
        return f"unknown option '{unknown.group(1)}'{hint}"
    if wrong := re.match(r"Error parsing ([^\s:]+): .*?('[^']*')", text):
        return f"{wrong.group(1)} cannot be {wrong.group(2)}: see --help for what it takes"
    if missing := re.match(r"Missing from (augury [\w ]+): (\S+)", text):
        return f"{missing.group(1)} needs {missing.group(2)}: see --help"
    return text
