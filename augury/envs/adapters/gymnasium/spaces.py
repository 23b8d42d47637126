"""What Gymnasium's spaces mean for agents, and whether what an environment gave lies in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.spaces import Box, Dict, Discrete

from augury.errors import UserError

Bounds = Any  # an array of float32, or a dict of them
UNKNOWN_BOUND = 10.0
"""Stands for a bound that is infinite, so that coverage can be measured; observations may lie outside."""
LARGEST_BOUND = 1e6
"""A space that allows more than this does not tell what is observed: the bound counts as infinite."""


def parts_of(space: Space[Any]) -> dict[str, Box]:
    """The vectors that are observed, by name; a single one has an empty name."""
    return dict(space.spaces) if isinstance(space, Dict) else {"": space}  # type: ignore[dict-item, arg-type]


def check_spaces(called: str, observation: Space[Any], action: Space[Any]) -> None:
    """Refuse spaces that agents cannot see or act in."""
    for name, part in parts_of(observation).items():
        if not isinstance(part, Box) or len(part.shape) != 1:
            raise UserError(
                f"{called} observes {_entry(name, part)}, but agents see vectors and dicts of vectors: wrap "
                "it in gymnasium.wrappers.FlattenObservation"
            )
    if isinstance(action, Discrete):
        return
    if not isinstance(action, Box) or not np.issubdtype(action.dtype, np.floating):
        raise UserError(
            f"{called} has the action space {action}, which is not supported: it must be a Box of "
            "floating-point numbers, or Discrete"
        )
    if not (np.isfinite(action.low).all() and np.isfinite(action.high).all()):
        raise UserError(
            f"{called} has actions without bounds, {action}: give its action space finite ones, with "
            "gymnasium.wrappers.TransformAction for example"
        )


def bounds(space: Space[Any]) -> tuple[Bounds, Bounds]:
    """Finite bounds of observations, between which coverage is measured."""
    each = {name: _finite(part) for name, part in parts_of(space).items()}
    if not isinstance(space, Dict):
        return each[""]
    low, high = ({name: ends[end] for name, ends in each.items()} for end in (0, 1))
    return low, high


def as_action(space: Box, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Agents' numbers of 32 bits as one of a space, or rows of them; rounding may have led outside."""
    return np.clip(values.astype(space.dtype).reshape(-1, *space.shape), space.low, space.high)


def misfit(name: str, space: Box, value: Any) -> str | None:
    """How an observed vector, or rows of them, differ from their space in shape or kind of number."""
    try:
        given = np.asarray(value)
    except ValueError:
        return f"{field(name)} is no array"
    if given.shape != space.shape:
        return f"{field(name)} has shape {given.shape}, not {space.shape}"
    if given.dtype != space.dtype and not np.can_cast(given.dtype, space.dtype, "same_kind"):
        return f"{field(name)} has dtype {given.dtype}, not {space.dtype}"
    return None


def not_finite(name: str, values: npt.NDArray[Any]) -> tuple[int, str] | None:
    """The first row of a field that holds something else than finite numbers, and what that is."""
    with np.errstate(over="ignore"):
        finite = np.isfinite(np.asarray(values, np.float32))
    if finite.all():
        return None
    row, *place = np.argwhere(~finite)[0].tolist()
    where = "".join(f"[{index}]" for index in place)
    what = "beyond 32 bits" if np.isfinite(values[row, *place]) else "not a finite number"
    return row, f"{name}{where} is {values[row, *place]}, which is {what}"


def outside(name: str, space: Box, value: npt.NDArray[Any]) -> str | None:
    """Which number of some observations lies outside of its space; None if none does."""
    beyond = (value < space.low) | (value > space.high)
    if not beyond.any():
        return None
    row, place = np.argwhere(beyond)[0]
    low, high = space.low[place], space.high[place]
    return f"{field(name)}[{place}] is {value[row, place]:g}, outside of its space, [{low:g}, {high:g}]"


def lacking(space: Space[Any], observation: Any) -> str | None:
    """Which entries a dict observation lacks or has too many; None if it has those of its space."""
    if not isinstance(space, Dict):
        return None
    if not isinstance(observation, Mapping):
        return f"observation is {type(observation).__name__}, not a dict"
    if observation.keys() != space.spaces.keys():
        return f"observation has the entries {sorted(observation)}, not {sorted(space.spaces)}"
    return None


def _finite(space: Box) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    low = np.where(space.low < -LARGEST_BOUND, np.minimum(-UNKNOWN_BOUND, space.high - 1), space.low)
    high = np.where(space.high > LARGEST_BOUND, np.maximum(UNKNOWN_BOUND, low + 1), space.high)
    return low.astype(np.float32), np.where(high <= low, low + 1, high).astype(np.float32)


def field(name: str) -> str:
    """What an observed vector is called."""
    return f"observation['{name}']" if name else "observation"


def _entry(name: str, space: Any) -> str:
    return f"{space} as '{name}'" if name else f"{space}"
