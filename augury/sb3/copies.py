"""What is kept of R̃ and of episodes: how many copies a transition has, and how far it may look ahead."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

# Random streams beside those of the copies, (seed, transition, copy): the fourth word keeps them apart.
DRAWS, COINS = (0, 0, 1), (0, 0, 2)


class Places(NamedTuple):
    """Where augmented transitions come from, one entry each."""

    slot: Integers
    """Position in the ring."""
    environment: Integers
    copy: Integers
    """Which copy of the transition that stands there."""


class Copies:
    """How many augmented copies each observed transition has. An infinite m counts as one."""

    def __init__(self, slots: int, environments: int, ratio: float, seed: int) -> None:
        self.whole = 1 if math.isinf(ratio) else math.floor(ratio)
        self.fraction = 0.0 if math.isinf(ratio) else ratio % 1
        self.most = self.whole + (self.fraction > 0)
        """Copies that a transition can have."""
        self.held = 0
        """Copies of what the ring holds now: the size of R̃."""
        self.granted = 0
        """Copies of everything so far."""
        self._of = np.zeros((slots, environments), np.int64)
        self._coins = np.random.default_rng((seed, *COINS))

    def forget(self, slot: int) -> None:
        """The transitions in this slot are overwritten."""
        self.held -= int(self._of[slot].sum())
        self._of[slot] = 0

    def grant(self, slots: Integers, environments: Integers) -> None:
        """Give transitions their copies; a fraction is the chance of one more."""
        granted = np.full(len(slots), self.whole)
        if self.fraction:
            granted += self._coins.random(len(slots)) < self.fraction
            if not self.held and not granted.any():
                granted[0] = 1  # so that R̃ is not empty once there is something to augment
        self._of[slots, environments] = granted
        total = int(granted.sum())
        self.held += total
        self.granted += total

    def draw(self, generator: np.random.Generator, count: int, filled: int) -> Places:
        """Copies drawn uniformly and with replacement, from the ring's first `filled` slots."""
        cells = filled * self._of.shape[1] * self.most
        share = self.held / cells
        if share < 0.2:
            return self.numbered(generator.integers(self.held, size=count))
        drawn: list[Integers] = []
        missing = count
        while missing > 0:
            trial = generator.integers(cells, size=math.ceil(missing / share))
            transition, copy = np.divmod(trial, self.most)
            drawn.append(trial[copy < self._of.reshape(-1)[transition]])
            missing -= len(drawn[-1])
        transition, copy = np.divmod(np.concatenate(drawn)[:count], self.most)
        return Places(*np.divmod(transition, self._of.shape[1]), copy)

    def numbered(self, index: Integers) -> Places:
        """The copies with these numbers, counted from 0 to the size of R̃ over slots and environments."""
        until = np.cumsum(self._of.reshape(-1))
        transition = np.searchsorted(until, index, side="right")
        copy = index - until[transition] + self._of.reshape(-1)[transition]
        return Places(*np.divmod(transition, self._of.shape[1]), copy)


class Episodes:
    """Which finished episode each transition belongs to, by the number of the episode's last transition."""

    def __init__(self, slots: int, environments: int) -> None:
        self._slots = slots
        self._first = np.zeros(environments, np.int64)
        self._last = np.full((slots, environments), -1, np.int64)

    def running(self, number: int) -> npt.NDArray[np.bool_]:
        """In which environments the transition before `number` left its episode unfinished."""
        return self._first < number

    def finish(self, environment: int, number: int) -> Integers:
        """Transition `number` is its episode's last; return the slots that the episode fills."""
        first = max(int(self._first[environment]), number + 1 - self._slots)
        slots = np.arange(first, number + 1) % self._slots
        self._last[slots, environment] = number
        self._first[environment] = number + 1
        return slots

    def last(self, slot: Integers, environment: Integers) -> Integers:
        """The number of the last transition of the episode that the transition here belongs to."""
        return self._last[slot, environment]
