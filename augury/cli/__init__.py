"""The command line: a command is a dataclass of its options that can `run`.

A command's module is imported when the command is given. What `augury --help` says of each is read from the
source, so that help comes at once.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import make_dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tyro

from augury import __version__
from augury.cli.output import say
from augury.errors import UserError, unknown_name

COMMANDS = {
    "train": "training.Train",
    "evaluate": "training.Evaluate",
    "study": "studies.Studies",
    "verify": "proof.Verify",
    "symmetry": "symmetry.Symmetry",
    "advise": "advising.Advise",
    "show": "proof.Show",
    "report": "reporting.Report",
    "list": "listing.List",
}
"""Commands, and where each is."""
STUDY_COMMANDS = {
    "run": "study_run.Run",
    "status": "studies.Status",
    "list": "studies.ListStudies",
    "export": "studies.Export",
}
_COMPUTING = tuple(f"{__name__}.{module}" for module in ("training", "proof", "symmetry", "advising"))
"""Modules of commands that run programs in this process."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input is one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"augury {__version__}")
        return
    try:
        command = _parsed(arguments)
        if type(command).__module__ in _COMPUTING:
            prepare()
        command.run()
    except UserError as error:
        raise SystemExit(say(str(error), code=2)) from None
    except (RuntimeError, MemoryError) as error:
        if not (isinstance(error, MemoryError) or _is_jaxs(error)):
            raise
        raise SystemExit(say((str(error) or "out of memory").splitlines()[0], code=1)) from error
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(say("interrupted", code=130)) from None


def prepare() -> None:
    """Let JAX use the machine, and keep what it compiles."""
    from augury import fleet

    fleet.use_all_cores()
    fleet.keep_compiled()


def _parsed(arguments: list[str]) -> Any:
    """The command asked for."""
    if arguments[:1] == ["study"]:
        return _of(STUDY_COMMANDS, "augury study", arguments[1:] or ["--help"])
    return _of(COMMANDS, "augury", arguments)


def _of(commands: Mapping[str, str], program: str, arguments: list[str]) -> Any:
    """One of these commands. What tyro says in a box of several lines becomes one."""
    name = arguments[0] if arguments else ""
    if name and not name.startswith("-") and name not in commands:
        raise unknown_name("command", name, commands)
    config = (tyro.conf.FlagCreatePairsOff,)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            if name in commands:
                command = _loaded(commands[name])
                return tyro.cli(command, prog=f"{program} {name}", args=arguments[1:], config=config)
            outlines = {one: _outline(place) for one, place in commands.items()}
            return tyro.extras.subcommand_cli_from_dict(
                outlines,
                prog=program,
                description=f"This is version {__version__}, as `augury --version` tells.",
                args=arguments,
                config=config,
            )
    except SystemExit as leaving:
        if leaving.code != 2:
            raise
        raise UserError(_one_line(said.getvalue())) from None


def _loaded(place: str) -> Any:
    """A command, from its module."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), name)


def _outline(place: str) -> Any:
    """What help tells of a command, without its module: its name and its docstring."""
    module, _, name = place.partition(".")
    spec = find_spec(f"{__name__}.{module}")
    assert spec is not None
    assert spec.origin is not None
    body = ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body
    command = next(one for one in body if isinstance(one, ast.ClassDef) and one.name == name)
    return make_dataclass(name, (), namespace={"__doc__": ast.get_docstring(command)})


def _is_jaxs(error: Exception) -> bool:
    """Whether it is JAX's own error: out of memory, most of all."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(error, jax.errors.JaxRuntimeError)


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
