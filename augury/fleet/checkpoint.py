"""Checkpoints: a run's whole state in one file of plain arrays.

Written atomically, so that a run killed at any moment finds the last complete one; without the unused part of
the rings, and for any number of devices.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from augury.errors import UserError
from augury.fleet.fleet import Fleet
from augury.fleet.halves import Halves
from augury.fleet.host_fleet import HostFleet
from augury.fleet.program.base import Agent
from augury.runs import arrays as files
from augury.runs.arrays import Arrays, DamagedError, named, under

NAME = "checkpoint.safetensors"
FORMAT = "2"
_HISTORY, _OUTSIDE = "history.", "outside."


class Checkpoint(NamedTuple):
    """What a run needs to go on."""

    agents: Any
    """As the fleet has them."""
    rounds: int
    history: Arrays
    """Evaluations so far, by name."""
    seconds: float
    """Spent so far."""


def save(path: Path, checkpoint: Checkpoint, fleet: Fleet | Halves, asked: list[dict[str, Any]]) -> None:
    """Write a checkpoint, replacing an older one only when it is complete."""
    arrays = {_HISTORY + name: np.ascontiguousarray(values) for name, values in checkpoint.history.items()}
    pairs = zip(fleet.parts, fleet.split(checkpoint.agents), strict=True)
    for number, (part, agents) in enumerate(pairs):
        own = _plain_arrays(part, agents, checkpoint.rounds)
        arrays |= {f"{number}.{name}": values for name, values in own.items()}
    about = {
        "format": FORMAT,
        "parts": str(len(fleet.parts)),
        "asked": json.dumps(asked),
        "rounds": str(checkpoint.rounds),
        "seconds": repr(checkpoint.seconds),
    }
    files.save(path, arrays, about)


def load(path: Path, fleet: Fleet | Halves, asked: list[dict[str, Any]]) -> Checkpoint:
    """Read a checkpoint back; refuse one that is damaged or belongs to another run."""
    try:
        arrays, about = files.load(path)
        _refuse_other_format(path, about)
        refuse_other_run(path, json.loads(about["asked"]), asked)
        agents = fleet.joined(
            [_restored(part, under(f"{number}.", arrays)) for number, part in enumerate(fleet.parts)]
        )
        rounds, seconds = int(about["rounds"]), float(about["seconds"])
        return Checkpoint(agents, rounds, under(_HISTORY, arrays), seconds)
    except UserError:
        raise
    except (DamagedError, KeyError, ValueError) as error:
        raise _damaged(path, error) from error


def parts_in(path: Path) -> int:
    """Of how many parts the fleet was made that left this checkpoint: its agents go on in as many."""
    try:
        about = files.remarks(path)
        _refuse_other_format(path, about)
        return int(about["parts"])
    except UserError:
        raise
    except (DamagedError, KeyError, ValueError) as error:
        raise _damaged(path, error) from error


def refuse_other_run(path: Path, stored: list[dict[str, Any]], asked: list[dict[str, Any]]) -> None:
    """Raise where what was asked then and now differs, naming the first difference."""
    if len(stored) != len(asked):
        raise UserError(f"{path} holds {len(stored)} arms, not {len(asked)}")
    for then, now in zip(stored, asked, strict=True):
        for name in now:
            if then.get(name) != now[name]:
                raise UserError(f"{path} was made with {name} = {then.get(name)}, not {now[name]}")


def _refuse_other_format(path: Path, about: dict[str, str]) -> None:
    if about["format"] != FORMAT:
        raise UserError(f"checkpoint {path} has format {about['format']}, not {FORMAT}: start again")


def _damaged(path: Path, error: Exception) -> UserError:
    return UserError(f"checkpoint {path} is damaged ({error}): remove it to start from the beginning")


def _plain_arrays(fleet: Fleet, agents: Agent, rounds: int) -> Arrays:
    """The agents of a fleet as named arrays, without what is unused."""
    used = min(rounds * fleet.program.collect, fleet.program.replay.capacity)
    outside: Arrays = {}
    if isinstance(fleet, HostFleet):
        agents, outside = agents._replace(environment=None), agents.environment
    arrays = {
        f"agents.{name}": _plain(_cut(name, leaf[: fleet.agents], used))
        for name, leaf in named(agents).items()
    }
    return arrays | {_OUTSIDE + name: np.array(values, order="C") for name, values in outside.items()}


def _restored(fleet: Fleet, arrays: Arrays) -> Agent:
    """The agents on their devices: rings get their unused part back, and devices their share of agents."""
    shapes = fleet.shapes()

    def leaf(name: str, shape: Any) -> Any:
        stored = arrays[f"agents.{name}"]
        is_key = jnp.issubdtype(shape.dtype, jax.dtypes.prng_key)
        if not is_key:
            grown = np.zeros((len(stored), *shape.shape[1:]), shape.dtype)
            grown[tuple(slice(length) for length in stored.shape)] = stored
            stored = grown
        surplus = shape.shape[0] - len(stored)
        stored = np.concatenate([stored, np.repeat(stored[-1:], surplus, 0)])
        return jax.device_put(
            jax.random.wrap_key_data(jnp.asarray(stored)) if is_key else stored, fleet.sharding
        )

    leaves = [leaf(name, shape) for name, shape in named(shapes).items()]
    agents: Agent = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
    return agents._replace(environment=under(_OUTSIDE, arrays)) if isinstance(fleet, HostFleet) else agents


def _plain(leaf: Any) -> np.ndarray[Any, Any]:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.ascontiguousarray(jax.random.key_data(leaf) if is_key else leaf)


def _cut(name: str, leaf: Any, used: int) -> Any:
    """Only the filled part of a ring of rows, whose axes are (agents, environments, capacity, …)."""
    return leaf[:, :, :used] if name in _RINGS and leaf.size else leaf


_RINGS = {f"buffers.{name}" for name in ("observed", "augmented", "episodes.number", "episodes.last")}
