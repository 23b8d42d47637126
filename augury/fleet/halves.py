"""Two half-fleets side by side: while the devices learn for one, the host simulates for the other.

Nothing about an agent changes: agents are independent, and each half is a fleet of its own. A thread for each
half is enough, since Python is free for one while the other simulates or waits for the devices. On a CPU
there is nothing to gain: simulation and learning share its cores.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np

from augury.agents import Parameters
from augury.fleet.arm import Arm
from augury.fleet.host_trainer import HostTrainer
from augury.fleet.program.base import Agent, Measured
from augury.runs.arrays import Arrays

Agents = tuple[Agent, Agent]
Value = TypeVar("Value")


class Halves:
    """A `Trainer` that runs two others. Its agents are a pair: those of each half."""

    parts = 2

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.agents = sum(arm.agents for arm in arms)
        cuts = cut(arms, (self.agents + 1) // 2)
        self.halves = [HostTrainer(half, number) for number, half in enumerate(cuts)]
        self.devices = self.halves[0].devices
        self.first_update_round = self.halves[0].first_update_round

    def shapes(self) -> Agents:
        return _pair([half.shapes() for half in self.halves])

    def init(self) -> Agents:
        return _pair([half.init() for half in self.halves])

    def advance(self, agents: Agents, first: int, rounds: int) -> Agents:
        work = [partial(half.advance, own, first, rounds) for half, own in self._with(agents)]
        return _pair(at_once(*work))

    def evaluate(self, agents: Agents, rounds: int) -> Measured:
        measured: Measured = _together(
            at_once(*(partial(half.evaluate, own, rounds) for half, own in self._with(agents)))
        )
        return measured

    def save(self, agents: Agents, rounds: int) -> Arrays:
        first, second = (half.save(own, rounds) for half, own in self._with(agents))
        return first | second

    def load(self, arrays: Arrays) -> Agents:
        return _pair([half.load(arrays) for half in self.halves])

    def actors(self, agents: Agents) -> Parameters:
        return _together([half.actors(own) for half, own in self._with(agents)])

    def play(self, actors: Parameters, seed: int) -> tuple[Any, Any]:
        middle = self.halves[0].agents
        cuts = [
            jax.tree.map(operator.itemgetter(part), actors) for part in (slice(middle), slice(middle, None))
        ]
        pairs = zip(self.halves, cuts, strict=True)
        success, returns = _together(at_once(*(partial(half.play, own, seed) for half, own in pairs)))
        return success, returns

    def restarts(self, agents: Agents) -> list[int]:
        return sorted({rounds for half, own in self._with(agents) for rounds in half.restarts(own)})

    def call_seconds(self, agents: Agents) -> float:
        return self.halves[0].call_seconds(agents[0])

    def close(self) -> None:
        """Close the engines; they are made again when needed."""
        for half in self.halves:
            half.close()

    def _with(self, agents: Agents) -> zip[tuple[HostTrainer, Agent]]:
        return zip(self.halves, agents, strict=True)


def at_once(*work: Callable[[], Value]) -> list[Value]:
    """Call all functions at the same time; return their results in order."""
    with ThreadPoolExecutor(len(work)) as threads:
        return [done.result() for done in [threads.submit(one) for one in work]]


def cut(arms: Sequence[Arm], count: int) -> tuple[list[Arm], list[Arm]]:
    """The arms of the first `count` agents, and those of the others."""
    first, others = [], []
    for arm in arms:
        own = min(count, arm.agents)
        count -= own
        if own:
            first.append(replace(arm, agents=own))
        if own < arm.agents:
            others.append(replace(arm, agents=arm.agents - own, seed=arm.seed + own))
    return first, others


def _together(parts: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _pair(halves: Sequence[Agent]) -> Agents:
    first, second = halves
    return first, second
