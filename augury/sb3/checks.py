"""What cannot work is refused in one clear line that names the augmentation and the field."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium import Space, spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from augury import envs
from augury.augmentations import parse
from augury.augmentations.base import describe
from augury.augmentations.goals import LATER_GOALS
from augury.errors import UserError, unknown_name
from augury.sb3.samples import parts_of
from augury.transition import Transition

INSTEAD = {
    "n_sampled_goal": "use update_ratio; n_sampled_goal=4 is update_ratio=4",
    "goal_selection_strategy": "use augmentation=hindsight(compute_reward, strategy) of augury.augmentations",
}
"""Arguments of SB3's other buffers, and what to do instead."""

ARGUMENTS = (
    "augmentation",
    "ratio",
    "update_ratio",
    "batch_size_counts",
    "n_steps",
    "gamma",
    "handle_timeout_termination",
)

COUNTS = ("observed", "all")
"""The rows that `batch_size` may count."""

TOLERANCE = 1e-4
"""How far an action may lie outside its bounds, in widths: rounding, not a mistake."""


def check_arguments(unsupported: Iterable[str]) -> None:
    """Refuse what SB3's other buffers take, with the reason, and misspelt names."""
    for name in unsupported:
        if name in INSTEAD:
            raise UserError(f"AugmentedReplayBuffer takes no {name}: {INSTEAD[name]}")
        raise unknown_name("argument of AugmentedReplayBuffer", name, ARGUMENTS)


def check_augmentation(augmentation: Any) -> None:
    """A name, an augmentation, or a function of two arguments."""
    if augmentation is None or isinstance(augmentation, str):
        return
    if isinstance(augmentation, type):
        raise UserError(f"augmentation: give an instance, {augmentation.__name__}(…), not the class")
    if isinstance(augmentation, list | tuple):
        raise UserError("augmentation: put several together with compose or choose of augury.augmentations")
    if not callable(augmentation):
        raise UserError(f"augmentation must be a name, an augmentation or a function, not {augmentation!r}")
    try:
        inspect.signature(augmentation).bind(None, None)
    except TypeError:
        raise UserError(
            f"{describe(augmentation)} must take a key (or a generator) and a transition"
        ) from None


def checked_ratio(name: str | None, field: str, value: Any) -> float:
    """A number from 0 on; m may be infinite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UserError(f"{name or 'AugmentedReplayBuffer'}: {field} must be a number, not {value!r}")
    if name is None and value:
        raise UserError(f"{field} {value:g} needs an augmentation: name one or leave {field} out")
    if math.isnan(value) or value < 0:
        raise UserError(f"{name}: {field} must be 0 or more, not {value:g}")
    if field == "update_ratio" and math.isinf(value):
        raise UserError(f"{name}: update_ratio must be finite")
    return float(value)


def check_counts(value: Any) -> None:
    """What `batch_size` counts."""
    if value not in (None, *COUNTS):
        raise UserError(f"batch_size_counts must be {' or '.join(map(repr, COUNTS))}, not {value!r}")


def check_buffer(
    name: str, observation_space: Space[Any], action_space: Space[Any], memory: bool, timeouts: bool
) -> None:
    """Refuse buffers and spaces that cannot be augmented."""
    if memory:
        raise UserError(
            f"{name}: optimize_memory_usage=True keeps no next observation to augment; leave it out"
        )
    if not timeouts:
        raise UserError(
            f"{name}: handle_timeout_termination=False takes a time limit for the end of the task, "
            "which a recomputed termination contradicts; leave it out"
        )
    if not isinstance(action_space, spaces.Box | spaces.Discrete):
        raise UserError(f"{name}: actions must be Box or Discrete, not {type(action_space).__name__}")
    if isinstance(action_space, spaces.Box) and not action_space.is_bounded():
        raise UserError(f"{name}: actions need finite bounds, not {action_space}")
    for part in parts_of(observation_space):
        if not isinstance(part, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
            raise UserError(f"{name}: observations must be arrays or a dict of them, not {observation_space}")


def check_environment(name: str, observation_space: Space[Any], action_space: Space[Any]) -> None:
    """An augmentation of the catalogue belongs to one environment; the spaces must be that one's."""
    home = parse(name)[0].environment
    if home not in envs.ENVIRONMENTS:
        return
    environment = envs.make(home)
    for field, space, bounds in (
        ("observation", observation_space, environment.observation_low),
        ("action", action_space, environment.action_low),
    ):
        if not isinstance(space, spaces.Box) or space.shape != bounds.shape:
            raise UserError(f"{name}: {field} must be {home}'s, a Box of shape {bounds.shape}, not {space}")


def check_needs(name: str, needs: tuple[str, ...], observation_space: Space[Any]) -> None:
    """Later goals are read off observations that hold achieved and desired ones."""
    if not any(extra in LATER_GOALS for extra in needs):
        return
    keys = set(observation_space.spaces) if isinstance(observation_space, spaces.Dict) else set()
    missing = {"achieved_goal", "desired_goal"} - keys
    if missing:
        raise UserError(
            f"{name}: the observation has no {', '.join(sorted(missing))}, but {observation_space}"
        )


def check_n_steps(n_steps: Any, gamma: Any, observation_space: Space[Any]) -> None:
    """A whole number and a discount; SB3 has returns of several steps for arrays only."""
    if isinstance(n_steps, bool) or not isinstance(n_steps, int | np.integer) or n_steps < 1:
        raise UserError(f"AugmentedReplayBuffer: n_steps must be 1 or more, not {n_steps!r}")
    if gamma is not None and not (isinstance(gamma, numbers.Real) and 0 <= float(gamma) <= 1):
        raise UserError(f"AugmentedReplayBuffer: gamma must lie in [0, 1], not {gamma!r}")
    if n_steps > 1 and isinstance(observation_space, spaces.Dict):
        raise UserError(
            "AugmentedReplayBuffer: SB3 has no n-step returns for Dict observations; use n_steps=1"
        )


def check_algorithm(name: str, algorithm: OffPolicyAlgorithm, n_steps: int) -> None:
    """SB3 itself would only warn that it ignores n_steps, and look up categories under wrong numbers."""
    if algorithm.n_steps not in (1, n_steps):
        raise UserError(
            f"{name}: SB3 hands n_steps={algorithm.n_steps} to no buffer class that it is given; "
            f"use replay_buffer_kwargs=dict(n_steps={algorithm.n_steps}, …)"
        )
    for space in (*parts_of(algorithm.observation_space), algorithm.action_space):
        if np.any(getattr(space, "start", 0)):
            raise UserError(f"{name}: SB3 counts from 0, not as {space} does: wrap the environment")


def checked_extra(name: str, extra: str, infos: list[dict[str, Any]], ring: Any) -> Any:
    """An extra of every environment, from the infos; like those already in its ring, where it has one."""
    for info in infos:
        if extra not in info:
            given = ", ".join(sorted(map(str, info))) or "nothing"
            raise UserError(f"{name}: needs '{extra}' in the info of every step, which gives {given}")
    values = np.stack([np.asarray(info[extra]) for info in infos])
    if values.dtype.kind not in "biuf":
        raise UserError(f"{name}: '{extra}' in the info must hold numbers, not {infos[0][extra]!r}")
    if ring is not None and not (
        values.shape == ring.shape[1:] and np.can_cast(values.dtype, ring.dtype, "same_kind")
    ):
        before, now = (f"{rows.dtype} of shape {rows.shape[1:]}" for rows in (ring[0], values))
        raise UserError(f"{name}: '{extra}' in the info was {before} and is now {now}; keep to one")
    return values


class Limits(NamedTuple):
    """The smallest and the largest value of a field, or of one entry of its dict."""

    field: str
    entry: str | None
    low: Any
    high: Any
    space: Space[Any] | None = None

    def respected(self, transition: Transition) -> Any:
        """Which of its numbers lie inside."""
        rows = self.rows(transition)
        return (rows >= self.low) & (rows <= self.high)

    def rows(self, transition: Transition) -> Any:
        rows = getattr(transition, self.field)
        return rows if self.entry is None else rows[self.entry]

    def __str__(self) -> str:
        return self.field if self.entry is None else f"{self.field}['{self.entry}']"


def limits_of(observation_space: Space[Any], action_space: Space[Any]) -> list[Limits]:
    """What actions can be taken, and which observations are categories that SB3 looks up by their number.

    Continuous observations are free: many environments leave the bounds that they declare.
    """
    parts: dict[str | None, Space[Any]] = {None: observation_space}
    if isinstance(observation_space, spaces.Dict):
        parts = dict(observation_space.items())
    return [
        Limits("action", None, *_range(action_space), action_space),
        *(
            Limits(field, entry, *_range(space), space)
            for field in ("observation", "next_observation")
            for entry, space in parts.items()
            if not isinstance(space, spaces.Box)
        ),
    ]


def _range(space: Space[Any]) -> tuple[Any, Any]:
    """The smallest and the largest value, with room for rounding."""
    match space:
        case spaces.Box():
            slack = TOLERANCE * (space.high - space.low)
            return space.low - slack, space.high + slack
        case spaces.Discrete() | spaces.MultiDiscrete():
            count = space.n if isinstance(space, spaces.Discrete) else space.nvec
            return space.start, space.start + count - 1
        case _:
            return 0, 1


def check_made(name: str, made: Transition, limits: list[Limits]) -> None:
    """What an augmentation returned is finite, and within its limits."""
    for path, rows in jax.tree_util.tree_leaves_with_path(made):
        finite = np.isfinite(rows)
        if not finite.all():
            field = jax.tree_util.keystr(path).lstrip(".")
            raise UserError(f"{name}: {field} is not finite, but {rows[~finite][0]}")
    for limit in limits:
        inside = limit.respected(made)
        if not inside.all():
            outside = limit.rows(made)[~inside][0]
            raise UserError(f"{name}: {limit} {outside:g} lies outside {limit.space}")
