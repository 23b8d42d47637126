"""Checks of what callers give to a vector environment: seeds, reset masks, actions and saved states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from augury.errors import UserError


def seed_list(seed: Any, count: int) -> Sequence[int | None]:
    """A seed for every environment. A single seed is the first environment's, and increases from there."""
    if seed is None:
        return [None] * count
    seeds = range(int(seed), int(seed) + count) if isinstance(seed, int | np.integer) else list(seed)
    if len(seeds) != count:
        raise UserError(f"{len(seeds)} seeds for {count} environments")
    for own in seeds:
        if own is not None and not 0 <= own < 2**64:
            raise UserError(f"a seed must be at least 0 and below 2^64, not {own}")
    return seeds


def checked_mask(options: Mapping[str, Any] | None, count: int) -> npt.NDArray[np.bool_]:
    """Which environments `reset` starts anew: those of Gymnasium's option "reset_mask", or all."""
    mask = (options or {}).get("reset_mask")
    mask = np.ones(count, bool) if mask is None else np.asarray(mask)
    if mask.shape != (count,) or mask.dtype != bool:
        raise UserError(f"reset_mask must be {count} booleans, not {mask.dtype} of {mask.shape}")
    return mask


def checked_actions(actions: npt.NDArray[Any], space: gymnasium.Space[Any]) -> npt.NDArray[Any]:
    """The actions, if they have the space's shape and are finite; they may be outside of its bounds."""
    if actions.shape != space.shape:
        raise UserError(f"actions must have shape {space.shape}, not {actions.shape}")
    if not np.isfinite(actions).all():
        raise UserError("actions must be finite numbers")
    return actions


def refuse_other_state(state: Mapping[str, npt.NDArray[Any]], own: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise an error unless a saved state has all parts of the environment's own, in the same shapes."""
    for name, values in own.items():
        if name not in state or state[name].shape != values.shape:
            count = len(values)
            raise UserError(f"this is not a state of {count} such environments: see its '{name}'")
