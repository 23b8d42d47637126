"""Checkpoints: a run's whole state in one file of plain arrays.

Written atomically, so that a run killed at any moment finds the last complete one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from augury.errors import UserError
from augury.runs import arrays as files
from augury.runs.arrays import Arrays, DamagedError, under

NAME = "checkpoint.safetensors"
FORMAT = "2"
_HISTORY = "history."


class Checkpoint(NamedTuple):
    """What a run needs to go on."""

    agents: Arrays
    """As their trainer saves them."""
    parts: int
    """Into how many fleets the trainer had cut them."""
    rounds: int
    history: Arrays
    """Evaluations so far, by name."""
    seconds: float
    """Spent so far."""


def save(path: Path, checkpoint: Checkpoint, asked: list[dict[str, Any]]) -> None:
    """Write a checkpoint, replacing an older one only when it is complete."""
    history = {_HISTORY + name: np.ascontiguousarray(own) for name, own in checkpoint.history.items()}
    about = {
        "format": FORMAT,
        "parts": str(checkpoint.parts),
        "asked": json.dumps(asked),
        "rounds": str(checkpoint.rounds),
        "seconds": repr(checkpoint.seconds),
    }
    files.save(path, checkpoint.agents | history, about)


def load(path: Path, asked: list[dict[str, Any]]) -> Checkpoint:
    """Read a checkpoint back; refuse one that is damaged or belongs to another run."""
    try:
        arrays, about = files.load(path)
        if about["format"] != FORMAT:
            raise UserError(f"checkpoint {path} has format {about['format']}, not {FORMAT}: start again")
        refuse_other_run(path, json.loads(about["asked"]), asked)
        history = under(_HISTORY, arrays)
        agents = {name: own for name, own in arrays.items() if not name.startswith(_HISTORY)}
        return Checkpoint(agents, int(about["parts"]), int(about["rounds"]), history, float(about["seconds"]))
    except UserError:
        raise
    except (DamagedError, KeyError, ValueError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> UserError:
    """The error about a damaged checkpoint."""
    return UserError(f"checkpoint {path} is damaged ({error}): remove it to start from the beginning")


def refuse_other_run(path: Path, stored: list[dict[str, Any]], asked: list[dict[str, Any]]) -> None:
    """Refuse settings other than those stored; the error names the first difference."""
    if len(stored) != len(asked):
        raise UserError(f"{path} holds {len(stored)} arms, not {len(asked)}")
    for then, now in zip(stored, asked, strict=True):
        for name in now:
            if then.get(name) != now[name]:
                raise UserError(f"{path} was made with {name} = {then.get(name)}, not {now[name]}")
