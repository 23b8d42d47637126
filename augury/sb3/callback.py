"""Logs what augmentation does to the data, beside SB3's own figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from gymnasium import Space, spaces
from stable_baselines3.common.callbacks import BaseCallback

from augury.errors import UserError
from augury.replay.coverage import LOOKED_AT, Grid
from augury.replay.survey import Held, held, points, summary
from augury.sb3.buffer import AugmentedReplayBuffer
from augury.sb3.cpu import on_cpu
from augury.sb3.samples import Rows
from augury.sb3.teaching import teaching
from augury.transition import Transition, seen

MOST_NUMBERS = 2**24
"""Fewer transitions are looked at where observations are so large that they would hold more numbers."""
ENDLESS = 1e30
"""Bounds beyond this stand for none."""

Success = Callable[[Transition], Rows]
Bounds = tuple[Rows, Rows]


class Counts(NamedTuple):
    """What has happened since the start of the run."""

    steps: float
    updates: float
    generated: float
    drawn_observed: float
    drawn_augmented: float


class AugmentationCallback(BaseCallback):
    """Logs what buffers hold, β, α and whether copies still teach, as `augmentation/…` (docs/metrics.md).

    - `every`: steps between two looks at the buffers
    - `succeeded`: which of many transitions carry the success reward. By default those with more than the
      smallest reward in the buffers, which is right where rewards are sparse
    - `bounds`: low and high of the coverage grid, flat: of what a policy sees, and of the action. By default
      those of the spaces; where a space has none, the range of what was observed by the first look. Of a
      goal observation a policy sees `observation` and `desired_goal`, in this order
    """

    def __init__(
        self,
        every: int = 10_000,
        succeeded: Success | None = None,
        bounds: Bounds | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if not isinstance(every, int) or every < 1:
            raise UserError(f"AugmentationCallback: every must be 1 step or more, not {every!r}")
        self.every = every
        self._succeeded = succeeded
        self._grid = None if bounds is None else Grid.over(bounds)
        self._next: int | None = None

    def _init_callback(self) -> None:
        first = self.model.num_timesteps + self.every
        if self._next is None or first < self._next:  # not where a run continues
            self._next, self._before = first, self._counts()

    def _on_step(self) -> bool:
        assert self._next is not None
        if self.num_timesteps >= self._next and self._buffer.size():
            self._next = self.num_timesteps + self.every
            for name, value in (
                self._contents() | self._rates() | teaching(self.model, self._buffer)
            ).items():
                self.logger.record(f"augmentation/{name}", value)
        return True

    @property
    def _buffer(self) -> AugmentedReplayBuffer:
        buffer = getattr(self.model, "replay_buffer", None)
        if not isinstance(buffer, AugmentedReplayBuffer):
            raise UserError(
                "AugmentationCallback needs replay_buffer_class=AugmentedReplayBuffer, "
                f"not {type(buffer).__name__}"
            )
        return buffer

    def _contents(self) -> dict[str, float]:
        """What the buffers hold."""
        dimensions = points(self._buffer.observed_transitions(1)).shape[1]
        most = min(LOOKED_AT, max(MOST_NUMBERS // dimensions, 1))
        observed, augmented = (
            look(most) for look in (self._buffer.observed_transitions, self._buffer.augmented_transitions)
        )
        if self._grid is None:
            self._grid = Grid.over(_bounds(self._buffer, points(observed)))
        if len(self._grid.low) != dimensions:
            given = len(self._grid.low)
            raise UserError(f"AugmentationCallback: bounds for {given} numbers, but there are {dimensions}")
        smallest = min(rewards.min() for rewards in (observed.reward, augmented.reward) if rewards.size)
        succeeded: Success = self._succeeded or (lambda transitions: transitions.reward > smallest)
        with on_cpu():
            found = summary(*(_held(self._grid, one, succeeded, most) for one in (observed, augmented)))
        return {name: float(value) for name, value in found._asdict().items()}

    def _rates(self) -> dict[str, float]:
        """What happened since the last look."""
        now = self._counts()
        since = Counts(*(a if math.isinf(a) else a - b for a, b in zip(now, self._before, strict=True)))
        self._before = now
        rates = {
            "replay_ratio": _ratio(since.updates, since.steps),
            "augmented_replay_ratio": _ratio(since.updates, since.generated),
            "update_ratio": _ratio(since.drawn_augmented, since.drawn_observed),
        }
        return {name: rate for name, rate in rates.items() if not math.isnan(rate)}

    def _counts(self) -> Counts:
        buffer = self._buffer
        return Counts(
            self.model.num_timesteps,
            self.model._n_updates,
            buffer.generated,
            buffer.drawn_observed,
            buffer.drawn_augmented,
        )


def _ratio(number: float, per: float) -> float:
    return number / per if per else math.nan


def _held(grid: Grid, transitions: Transition, succeeded: Success, most: int) -> Held:
    """What a buffer holds; padded to one length, so that one program is compiled."""
    count = len(transitions.reward)

    def padded(rows: Rows) -> Rows:
        return np.concatenate([rows, np.zeros((most - count, *rows.shape[1:]), rows.dtype)])

    successes = np.asarray(succeeded(transitions), bool) if count else np.zeros(0, bool)
    return _jitted_held(grid, padded(points(transitions)), padded(successes), np.arange(most) < count)


_jitted_held = jax.jit(held, static_argnums=0)


def _bounds(buffer: AugmentedReplayBuffer, points: Rows) -> Bounds:
    """Of what coverage looks at: what a policy sees, and the action."""
    space = buffer.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    ranges = {name: _range(part) for name, part in parts.items()}, _range(buffer.action_space)
    low, high = (
        np.concatenate([seen({name: bounds[side] for name, bounds in ranges[0].items()}), ranges[1][side]])
        for side in (0, 1)
    )
    lowest, highest = points.min(0), points.max(0)
    endless = (np.abs(low) > ENDLESS) | (np.abs(high) > ENDLESS)
    return np.where(endless, lowest, low), np.where(endless, np.maximum(highest, lowest + 1e-6), high)


def _range(space: Space[Any]) -> Bounds:
    """The bounds of a space's numbers, flat."""
    match space:
        case spaces.Box():
            return space.low.ravel(), space.high.ravel()
        case spaces.Discrete():
            return np.array([space.start]), np.array([space.start + space.n])
        case spaces.MultiDiscrete():
            return space.start.ravel(), (space.start + space.nvec).ravel()
        case _:
            count = int(np.prod(space.shape or (1,)))
            return np.zeros(count), np.ones(count)
