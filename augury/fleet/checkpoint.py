"""Checkpoints: a run's whole state in one file of plain arrays. Nothing is unpickled.

Written atomically, so that a run killed at any moment finds the last complete one; with a checksum of every
array, so that a damaged one is noticed; without the unused part of the rings, and for any number of devices.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from augury.errors import UserError
from augury.fleet.files import replacing
from augury.fleet.fleet import Fleet
from augury.fleet.host_fleet import HostFleet
from augury.fleet.program import Agent
from augury.fleet.results import Arrays

NAME = "checkpoint.safetensors"
FORMAT = "1"
_HISTORY, _OUTSIDE = "history.", "outside."


class Checkpoint(NamedTuple):
    """What a run needs to go on."""

    agents: Agent
    rounds: int
    history: Arrays
    """Evaluations so far, by name."""
    seconds: float
    """Spent so far."""


def save(path: Path, checkpoint: Checkpoint, fleet: Fleet, asked: list[dict[str, Any]]) -> None:
    """Write a checkpoint, replacing an older one only when it is complete."""
    used = min(checkpoint.rounds * fleet.program.collect, fleet.program.replay.capacity)
    agents, outside = checkpoint.agents, {}
    if isinstance(fleet, HostFleet):
        agents, outside = agents._replace(environment=None), agents.environment
    arrays = {
        f"agents{name}": _plain(_cut(name, leaf[: fleet.agents], used))
        for name, leaf in _named(agents).items()
    }
    arrays |= {_OUTSIDE + name: np.array(values, order="C") for name, values in outside.items()}
    arrays |= {_HISTORY + name: np.ascontiguousarray(values) for name, values in checkpoint.history.items()}
    about = {
        "format": FORMAT,
        "asked": json.dumps(asked),
        "rounds": str(checkpoint.rounds),
        "seconds": repr(checkpoint.seconds),
    }
    about["checksums"] = json.dumps(_checksums(arrays, about))
    with replacing(path) as temporary:
        try:
            save_file(arrays, temporary, about)
        except SafetensorError as error:  # how safetensors reports a full disk
            raise OSError(str(error)) from error


def load(path: Path, fleet: Fleet, asked: list[dict[str, Any]]) -> Checkpoint:
    """Read a checkpoint back; refuse one that is damaged or belongs to another run."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = file.metadata() or {}
            arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if json.loads(about.pop("checksums")) != _checksums(arrays, about):
            raise ValueError("checksums differ")
        if about["format"] != FORMAT:
            raise UserError(f"checkpoint {path} has format {about['format']}, not {FORMAT}: start again")
        refuse_other_run(path, json.loads(about["asked"]), asked)
        agents = _restored(arrays, fleet)
        if isinstance(fleet, HostFleet):
            agents = agents._replace(environment=_under(_OUTSIDE, arrays))
        rounds, seconds = int(about["rounds"]), float(about["seconds"])
        return Checkpoint(agents, rounds, _under(_HISTORY, arrays), seconds)
    except UserError:
        raise
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise UserError(
            f"checkpoint {path} is damaged ({error}): remove it to start from the beginning"
        ) from error


def refuse_other_run(path: Path, stored: list[dict[str, Any]], asked: list[dict[str, Any]]) -> None:
    """Raise where what was asked then and now differs, naming the first difference."""
    if len(stored) != len(asked):
        raise UserError(f"{path} holds {len(stored)} arms, not {len(asked)}")
    for then, now in zip(stored, asked, strict=True):
        for name in now:
            if then.get(name) != now[name]:
                raise UserError(f"{path} was made with {name} = {then.get(name)}, not {now[name]}")


def _checksums(arrays: Arrays, about: dict[str, str]) -> dict[str, int]:
    """A number for every array and every remark that changes when they do."""
    remarks = {name: zlib.crc32(text.encode()) for name, text in about.items()}
    return remarks | {name: zlib.crc32(np.ascontiguousarray(values).data) for name, values in arrays.items()}


def _restored(arrays: Arrays, fleet: Fleet) -> Agent:
    """The agents on their devices: rings get their unused part back, and devices their share of agents."""
    shapes = fleet.shapes()

    def leaf(name: str, shape: Any) -> Any:
        stored = arrays[f"agents{name}"]
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

    leaves, structure = jax.tree.flatten(shapes)
    named = zip(_named(shapes), leaves, strict=True)
    return jax.tree.unflatten(structure, [leaf(name, shape) for name, shape in named])


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


def _named(tree: Any) -> dict[str, Any]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _plain(leaf: Any) -> np.ndarray[Any, Any]:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.ascontiguousarray(jax.random.key_data(leaf) if is_key else leaf)


def _cut(name: str, leaf: Any, used: int) -> Any:
    """Only the filled part of a ring of rows, whose axes are (agents, environments, capacity, …)."""
    is_ring = name in (".buffers.observed", ".buffers.augmented") and leaf.size
    return leaf[:, :, :used] if is_ring else leaf
