"""Transitions that somebody recorded, to see whether the augmented copies of these are right.

| data | what it must have |
|---|---|
| a replay buffer of SB3 | filled; its actions are in the environment's units again |
| a dataset of Minari | episodes |
| an .npz file's path, a dict of arrays | the first of each row of `_NAMES`, or another name of it |
| a `Transition` | a row for each |
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from augury.errors import UserError
from augury.transition import Transition
from augury.verify.base import Bounds, Flags, Played, Simulator, joined, rows
from augury.verify.observations import taken
from augury.verify.played import numbered, together

_NAMES = (
    ("observations",),
    ("actions",),
    ("rewards",),
    ("next_observations",),
    ("terminations", "terminals", "terminated", "dones"),
    ("truncations", "timeouts", "truncated"),
)


_UNREADABLE = (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)


def recorded(data: Any, simulator: Simulator) -> Played:
    """What was recorded, in the form in which this simulator shows it."""
    if isinstance(data, str | Path):
        try:
            with Path(data).open("rb") as file:  # which NumPy leaves open where it fails
                data = dict(np.load(file))
        except _UNREADABLE as error:
            raise UserError(f"{data} cannot be read: give the path of an .npz file") from error
    found = _read(data, simulator.action_bounds)
    return found._replace(transition=_fitting(found.transition, simulator))


def _read(data: Any, bounds: Bounds | None) -> Played:
    """`bounds` are those of actions, which SB3 keeps between -1 and 1."""
    if isinstance(data, Transition):
        return _in_a_row(_of_equal_length(jax.tree.map(np.asarray, data)))
    if isinstance(data, Mapping):
        return _in_a_row(_of_arrays(data))
    if hasattr(data, "next_observations") or hasattr(data, "optimize_memory_usage"):
        return _of_buffer(data, bounds)
    if hasattr(data, "iterate_episodes"):
        return together([_in_a_row(_of_episode(episode)) for episode in data.iterate_episodes()])
    raise UserError(
        f"{type(data).__name__} holds no transitions that the verifier can read: give an SB3 buffer, a "
        "dataset of Minari, an .npz file or a Transition"
    )


def _of_arrays(data: Mapping[str, Any]) -> Transition:
    found = [next((data[name] for name in names if name in data), None) for names in _NAMES]
    if found[5] is None and found[4] is not None:
        found[5] = np.zeros(len(found[4]), bool)
    missing = [names[0] for names, values in zip(_NAMES, found, strict=True) if values is None]
    if missing:
        raise UserError(f"the data has no {', '.join(missing)}: it has {', '.join(sorted(data))}")
    return _transition(*found)


def _of_episode(episode: Any) -> Transition:
    observations = jax.tree.map(np.asarray, episode.observations)
    before = jax.tree.map(lambda leaf: leaf[:-1], observations)
    after = jax.tree.map(lambda leaf: leaf[1:], observations)
    outcome = (after, episode.terminations, episode.truncations)
    return _transition(before, episode.actions, episode.rewards, *outcome)


def _of_buffer(buffer: Any, bounds: Bounds | None) -> Played:
    """In the order of time: a full ring goes on behind its newest transition."""
    order = np.arange(buffer.pos)
    if buffer.full:
        # Where observations are stored once, that behind the newest has been written over.
        order = np.roll(np.arange(buffer.buffer_size), -buffer.pos)[int(buffer.optimize_memory_usage) :]
    if not len(order):
        raise UserError("the replay buffer is empty")

    def part(values: Any, at: Any = order) -> Any:
        return jax.tree.map(lambda leaf: leaf[at], values)

    following = (
        part(buffer.observations, (order + 1) % buffer.buffer_size)
        if buffer.optimize_memory_usage
        else part(buffer.next_observations)
    )
    action = part(buffer.actions)
    if bounds is not None and np.issubdtype(action.dtype, np.floating):
        action = bounds.low + (action.astype(np.float64) + 1) / 2 * (bounds.high - bounds.low)
    over, cut = part(buffer.dones).astype(bool), part(buffer.timeouts).astype(bool)
    sides = [part(buffer.observations), action, part(buffer.rewards), following, over & ~cut, over & cut]
    merged = [jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), side) for side in sides]
    return Played(_transition(*merged), *numbered(over))


def _transition(
    observation: Any, action: Any, reward: Any, following: Any, terminated: Any, truncated: Any
) -> Transition:
    action = np.asarray(action)
    try:
        if not np.issubdtype(action.dtype, np.integer):
            action = action.astype(np.float64)
        flags = (np.asarray(flag).astype(bool).reshape(-1) for flag in (terminated, truncated))
        outcome = (np.asarray(reward, np.float64).reshape(-1), taken(following), *flags)
        found = rows(taken(observation), action, *outcome, {})
    except (TypeError, ValueError) as error:
        raise UserError(f"the data holds something else than numbers: {error}") from error
    return _of_equal_length(found)


def _of_equal_length(transition: Transition) -> Transition:
    """Refuse fields with another number of rows than the others, and none at all."""
    lengths = {
        name: {len(leaf) if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(field)}
        for name, field in transition._asdict().items()
    }
    every = set.union(*lengths.values())
    if len(every) > 1:
        told = ", ".join(f"{name} {min(own)}" for name, own in lengths.items() if own)
        raise UserError(f"the data's fields differ in their number of rows: {told}")
    if every == {0}:
        raise UserError("the data holds no transitions")
    return transition


def _fitting(transition: Transition, simulator: Simulator) -> Transition:
    """Whole numbers may have an axis of their own, as SB3 keeps them; all else must have its shape."""

    def shaped(name: str, values: Any, shape: tuple[int, ...]) -> Any:
        if values.size != len(values) * math.prod(shape):
            raise UserError(f"the data's {name} has shape {values.shape[1:]}, but {simulator.name}'s {shape}")
        return values.reshape(-1, *shape)

    observed = {
        name: shaped(name, values, (len(simulator.table),))
        for name, values in transition._asdict().items()
        if name in ("observation", "next_observation") and not isinstance(values, dict)
    }
    return transition._replace(action=shaped("action", transition.action, simulator.action_shape), **observed)


def _in_a_row(transition: Transition) -> Played:
    """One environment's, one after the other."""
    over: Flags = np.asarray(transition.terminated) | np.asarray(transition.truncated)
    return Played(joined([transition]), *numbered(over[:, None]))
