"""A fleet of several programs whose environments share one simulation on the device.

A simulator such as MuJoCo Warp is fast only with thousands of worlds. So the agents of all arms on one task
step together, even where their learners are different programs (another augmentation, α or batch size):

    for every step of a round:
        every program chooses its agents' actions
        one call simulates the worlds of all agents
    every program stores and learns

Nothing about an agent changes: its random numbers are those that it would have alone.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury.agents import Parameters
from augury.fleet.arm import Arm
from augury.fleet.building import by_program
from augury.fleet.jax_trainer import JaxTrainer
from augury.fleet.program import every
from augury.fleet.program.base import Agent, Measured, Settings
from augury.fleet.program.in_jax import Draw, JaxProgram, Running, Stepped
from augury.fleet.trainer import CALL_SECONDS
from augury.runs.arrays import Arrays
from augury.transition import Array, Transition

Agents = tuple[Agent, ...]


class SharedTrainer:
    """A `Trainer` of several others, one for each program. Its agents are a tuple: those of each."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        groups = by_program(arms)
        # On one device, which the simulation is on.
        self.members = [
            JaxTrainer([arms[at] for at in group], number, devices=1) for number, group in enumerate(groups)
        ]
        self.devices = self.members[0].devices
        self.parts = len(self.members)
        self.agents = sum(arm.agents for arm in arms)
        self.first_update_round = min(member.first_update_round for member in self.members)
        self._order = _order(arms, groups)
        """Where the agents, in the order of their arms, stand among the members' agents."""

    def shapes(self) -> Agents:
        return tuple(member.shapes() for member in self.members)

    def init(self) -> Agents:
        return tuple(member.init() for member in self.members)

    def advance(self, agents: Agents, first: int, rounds: int) -> Agents:
        # A loop inside the program would lay out rings anew, and copy them: they fill most of the memory.
        for number in range(first, first + rounds):
            agents = self._round(agents, self._settings, np.int32(number))
        return jax.block_until_ready(agents)

    def evaluate(self, agents: Agents, rounds: int) -> Measured:
        measured: Measured = self._joined(
            [
                member.own(evaluate(own, member.settings, jnp.int32(rounds)))
                for evaluate, (member, own) in zip(self._evaluate, self._with(agents), strict=True)
            ]
        )
        return measured

    def save(self, agents: Agents, rounds: int) -> Arrays:
        return {
            name: values
            for member, own in self._with(agents)
            for name, values in member.save(own, rounds).items()
        }

    def load(self, arrays: Arrays) -> Agents:
        return tuple(member.load(arrays) for member in self.members)

    def actors(self, agents: Agents) -> Parameters:
        return self._joined([member.actors(own) for member, own in self._with(agents)])

    def play(self, actors: Parameters, seed: int) -> tuple[Any, Any]:
        dealt = jax.tree.map(operator.itemgetter(np.argsort(self._order)), actors)
        played, first = [], 0
        for member in self.members:
            own = jax.tree.map(operator.itemgetter(slice(first, first + member.agents)), dealt)
            played.append(member.play(own, seed))
            first += member.agents
        success, returns = self._joined(played)
        return success, returns

    def restarts(self, agents: Agents) -> list[int]:
        return []

    def call_seconds(self, agents: Agents) -> float:
        return CALL_SECONDS

    def close(self) -> None:
        """There is nothing to release but memory."""

    @property
    def _settings(self) -> tuple[Settings, ...]:
        return tuple(member.settings for member in self.members)

    @cached_property
    def _round(self) -> Any:
        programs = [member.program for member in self.members]
        return jax.jit(partial(_round, programs), donate_argnums=0)

    @cached_property
    def _evaluate(self) -> list[Any]:
        return [jax.jit(partial(_measured, member.program)) for member in self.members]

    def _with(self, agents: Agents) -> zip[tuple[JaxTrainer, Agent]]:
        return zip(self.members, agents, strict=True)

    def _joined(self, parts: Sequence[Any]) -> Any:
        """What the members gave for their agents, in the order of the arms."""
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[self._order], *parts)


def _round(programs: Sequence[JaxProgram], agents: Agents, settings: Any, number: Array) -> Agents:
    """A round of every agent of every program."""
    step_environment = programs[0].environment.step
    members = list(zip(programs, agents, settings, strict=True))
    # Steps first, then agents.
    draws = [
        jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), jax.vmap(program.draws, (0, None))(own, number))
        for program, _, own in members
    ]

    def step(running: list[Running], drawn: list[Draw]) -> tuple[list[Running], list[Transition]]:
        chosen = [
            jax.vmap(program.choose)(agent.learner.actor, here, own, draw)
            for (program, agent, own), here, draw in zip(members, running, drawn, strict=True)
        ]
        worlds = [
            (draw.keys, here.states, action)
            for draw, here, (_, action) in zip(drawn, running, chosen, strict=True)
        ]
        settled = [
            jax.vmap(program.settle)(here, draw, *choice, after)
            for program, here, draw, choice, after in zip(
                programs, running, drawn, chosen, _stepped(step_environment, worlds), strict=True
            )
        ]
        return [here for here, _ in settled], [transition for _, transition in settled]

    start = [program.running(agent) for program, agent, _ in members]
    running, new = jax.lax.scan(step, start, draws)

    def learned(program: JaxProgram, agent: Agent, own: Settings, here: Running, new: Transition) -> Agent:
        rows = jax.vmap(program.packed, 1)(new)
        buffers = every.stored(program, jax.vmap, agent.buffers, own, rows, number)
        learner = every.learned(program, jax.vmap, agent.learner, buffers, own, number)
        return Agent(learner, buffers, here.states, here.episode_steps)

    return tuple(
        learned(*own, here, transitions) for own, here, transitions in zip(members, running, new, strict=True)
    )


def _measured(program: JaxProgram, agents: Agent, settings: Settings, rounds: Array) -> Measured:
    success, returns = jax.vmap(program.episodes, (0, 0, None))(agents.learner.actor, settings, rounds)
    held = every.looked_at(program, jax.vmap, agents, settings, rounds)
    return Measured(success=success, returns=returns, **held)


def _stepped(step: Any, worlds: Sequence[Any]) -> list[Stepped]:
    """Step the environments, (agents, environments, …), of all programs as one long list of worlds."""
    shapes = [action.shape[:2] for _, _, action in worlds]
    flat = [jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), own) for own in worlds]
    stepped = jax.vmap(step)(*jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *flat))
    ends = np.cumsum([agents * environments for agents, environments in shapes])

    def cut(shape: tuple[int, int], end: int) -> Stepped:
        begin = end - shape[0] * shape[1]
        return jax.tree.map(lambda leaf: leaf[begin:end].reshape(*shape, *leaf.shape[1:]), stepped)

    return [cut(shape, end) for shape, end in zip(shapes, ends, strict=True)]


def _order(arms: Sequence[Arm], groups: Sequence[Sequence[int]]) -> np.ndarray[Any, Any]:
    """For every agent, in the order of the arms, its position among the agents in the order of the groups."""
    firsts: dict[int, int] = {}
    total = 0
    for at in (at for group in groups for at in group):
        firsts[at], total = total, total + arms[at].agents
    return np.concatenate([firsts[at] + np.arange(arm.agents) for at, arm in enumerate(arms)])
