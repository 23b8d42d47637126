"""Two half-fleets side by side: while the devices learn for one, the host simulates for the other.

Nothing about an agent changes: agents are independent, and each half is a fleet of its own. A thread for each
half is enough, since Python is free for one while the other simulates or waits for the devices. Cores have
nothing to gain: there simulation and learning share them.
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

from augury.fleet.arm import Arm
from augury.fleet.fleet import Fleet
from augury.fleet.host_fleet import HostFleet
from augury.fleet.program.base import Agent, Measured
from augury.fleet.program.with_host import HostProgram

Agents = tuple[Agent, Agent]
Value = TypeVar("Value")


class Halves:
    """A fleet like `HostFleet`, of two. Its agents are those of both, apart."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.agents = sum(arm.agents for arm in arms)
        self.parts = [HostFleet(half) for half in cut(arms, (self.agents + 1) // 2)]
        self.program: HostProgram = self.parts[0].program

    def init(self) -> Agents:
        """Agents that have seen the start of their first episodes."""
        return self.joined([half.init() for half in self.parts])

    def advance(self, agents: Agents, first: int, rounds: int) -> Agents:
        """Train for some rounds; returns when they are done. The agents passed in are used up."""
        pairs = zip(self.parts, agents, strict=True)
        return self.joined(at_once(*(partial(half.advance, own, first, rounds) for half, own in pairs)))

    def evaluate(self, agents: Agents, rounds: int) -> Measured:
        """Measure every agent after that many rounds."""
        pairs = zip(self.parts, agents, strict=True)
        return _together(at_once(*(partial(half.evaluate, own, rounds) for half, own in pairs)))

    def actors(self, agents: Agents) -> Any:
        """The parameters of every agent's policy, as NumPy arrays."""
        return _together([half.actors(own) for half, own in zip(self.parts, agents, strict=True)])

    def play(self, actors: Any, seed: int) -> tuple[Any, Any]:
        """Share of successes and mean return of every policy, in episodes that start as the seed says."""
        middle = self.parts[0].agents
        cuts = [
            jax.tree.map(operator.itemgetter(place), actors) for place in (slice(middle), slice(middle, None))
        ]
        pairs = zip(self.parts, cuts, strict=True)
        return _together(at_once(*(partial(half.play, own, seed) for half, own in pairs)))

    def close(self) -> None:
        """Close the engines; they are made again when needed."""
        for half in self.parts:
            half.close()

    def split(self, agents: Agents) -> Sequence[Agent]:
        """The agents of each part."""
        return agents

    def joined(self, agents: Sequence[Agent]) -> Agents:
        """The same back."""
        first, second = agents
        return first, second


def at_once(*work: Callable[[], Value]) -> list[Value]:
    """Do all of it at the same time; what each returns, in their order."""
    with ThreadPoolExecutor(len(work)) as threads:
        return [done.result() for done in [threads.submit(one) for one in work]]


def fleet_for(arms: Sequence[Arm], parts: int | None = None) -> Fleet | Halves:
    """The fleet of arms that share a program; in so many parts, or in as many as make it fast here."""
    if not isinstance(arms[0].program(), HostProgram):
        return Fleet(arms)
    if parts is None:
        devices = jax.local_devices()
        enough = sum(arm.agents for arm in arms) >= 2 * len(devices)
        parts = 2 if devices[0].platform != "cpu" and enough else 1
    return Halves(arms) if parts == 2 else HostFleet(arms)


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
