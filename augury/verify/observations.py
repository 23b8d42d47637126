"""Observations as rows of plain numbers: a vector as it is, a dict of vectors with its entries side by side.

Entries stand in the order of their names, as JAX has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from augury.envs.mujoco.quantities import Quantity
from augury.errors import UserError
from augury.transition import Observation

Rows = npt.NDArray[np.float64]
Named = tuple[str, str]
"""A number's name and its unit."""


def taken(observation: Observation) -> Observation:
    """A copy, since an environment may write over its own: vectors in double precision, entries in theirs.

    Goals are judged by the very numbers that are shown. In 64 bits a new goal could be one that an
    environment of 32 bits cannot show, and be reached where that one is not.
    """
    if isinstance(observation, dict):
        return {name: _in_its_precision(np.array(values)) for name, values in observation.items()}
    return np.array(observation, np.float64)


def flat(observation: Observation) -> Rows:
    """Rows of numbers."""
    if not isinstance(observation, dict):
        return np.asarray(observation)
    return np.concatenate([np.asarray(observation[name], np.float64) for name in sorted(observation)], 1)


def unflat(rows: Rows, form: Observation) -> Observation:
    """What `flat` made rows of, in the form of such an observation."""
    if not isinstance(form, dict):
        return rows
    return {name: rows[:, where].astype(form[name].dtype) for name, where in places_of(form).items()}


def places_of(observation: Observation) -> dict[str, list[int]]:
    """Where each entry's numbers stand in a flat row; a vector has no entries."""
    if not isinstance(observation, dict):
        return {}
    sizes = {name: observation[name].shape[-1] for name in sorted(observation)}
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: list(range(end - size, end)) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def in_single_precision(observation: Observation) -> bool:
    """Whether some of its numbers have 32 bits."""
    parts = observation.values() if isinstance(observation, dict) else [observation]
    return any(np.asarray(part).dtype == np.float32 for part in parts)


def table_of(environment: Any) -> tuple[Quantity, ...]:
    """What each number is, in a flat row: what its `table` says, else numbered.

    The table of a dict observation is a dict too, of as many entries as it has something to say about.
    """
    low, own = environment.observation_low, getattr(environment, "table", None)
    parts = low.values() if isinstance(low, Mapping) else [low]
    if any(np.ndim(part) != 1 for part in parts):
        raise UserError(f"{environment.name} must observe a vector or a dict of vectors: flatten it")
    if not isinstance(low, Mapping):
        return tuple(own) if own else numbered(len(low))
    named = {
        entry: [(f"{entry}: {number.name}", number.unit) for number in numbers]
        for entry, numbers in (own or {}).items()
    }
    return entries_table(numbered_entries({name: len(part) for name, part in low.items()}) | named)


def numbered(count: int) -> tuple[Quantity, ...]:
    """The table of a vector of which nothing else is known."""
    return tuple(_reading(place, f"observation {place}") for place in range(count))


def numbered_entries(sizes: Mapping[str, int]) -> dict[str, list[Named]]:
    """The same for a dict's entries."""
    return {entry: [(f"{entry} {place}", "") for place in range(size)] for entry, size in sizes.items()}


def entries_table(entries: Mapping[str, Sequence[Named]]) -> tuple[Quantity, ...]:
    """The table of a flat row, of what its entries hold."""
    numbers = [named for entry in sorted(entries) for named in entries[entry]]
    return tuple(_reading(place, *named) for place, named in enumerate(numbers))


def _reading(place: int, name: str, unit: str = "") -> Quantity:
    return Quantity("reading", place, "", name, unit)


def _in_its_precision(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values if values.dtype == np.float32 else values.astype(np.float64)
