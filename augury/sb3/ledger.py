"""How many copies each observed transition has, and how one of them is drawn on the host."""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import numpy as np

from augury.replay import copies
from augury.replay.episodes import Integers
from augury.sb3.keys import Coins


class Places(NamedTuple):
    """Where augmented transitions come from, one entry each."""

    slot: Integers
    """Position in the ring."""
    environment: Integers
    copy: Integers
    """Which copy of the transition that stands there."""


_whole = jax.jit(copies.whole)  # one program, not one for every operation


class Ledger:
    """How many augmented copies each observed transition has. An infinite m counts as one."""

    def __init__(self, slots: int, environments: int, ratio: float, seed: int, looking_ahead: bool) -> None:
        self.held = 0
        """Copies of what the ring holds now: the size of R̃."""
        self.granted = 0
        """Copies of everything so far."""
        ratio = float(np.float32(ratio))  # as the fleet has it: whole, or a fraction, for both
        self._whole = int(_whole(np.float32(ratio)))
        self._slots = slots
        self._of = np.zeros((slots, environments), np.int64)
        self._has_extra = np.zeros((slots, environments), bool)
        """Which transitions have, or will have, the extra copy of a fractional m."""
        self._coins: Coins | None = None
        if math.isfinite(ratio) and ratio % 1:
            certain = copies.certain_every(slots, looking_ahead)
            self._coins = Coins(seed, ratio, environments, certain)

    @property
    def most(self) -> int:
        """Copies that a transition can have."""
        return self._whole + (self._coins is not None)

    def add(self, number: int) -> None:
        """Every environment adds a transition, which has no copies yet; those it overwrites have no more."""
        slot = number % self._slots
        self.held -= int(self._of[slot].sum())
        self._of[slot] = 0
        if self._coins is not None:
            self._has_extra[slot] = self._coins.at(number)

    def grant(self, slots: Integers, environments: Integers) -> None:
        """Give transitions their copies."""
        granted = self._whole + self._has_extra[slots, environments]
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
