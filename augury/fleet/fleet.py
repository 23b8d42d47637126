"""A fleet: the agents of one or several arms, trained by one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from augury.fleet.arm import Arm
from augury.fleet.devices import AGENTS, mesh_for, split_over
from augury.fleet.program import Agent, Measured, Program, Settings
from augury.transition import Array


def fleets_of(arms: Sequence[Arm]) -> list[list[int]]:
    """Group the arms (by their place) that can train together: same program, same schedule."""
    groups: dict[Any, list[int]] = {}
    for place, arm in enumerate(arms):
        program = arm.program()
        shared = replace(program, replay=replace(program.replay, fractional=False))
        signature = (shared, jax.tree.structure(arm.function()), arm.rounds, tuple(arm.evaluation_rounds))
        groups.setdefault(signature, []).append(place)
    return list(groups.values())


class Fleet:
    """Compiled functions over the agents of arms that share a program. Holds no training state."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        programs = [arm.program() for arm in arms]
        fractional = any(program.replay.fractional for program in programs)
        self.program: Program = replace(
            programs[0], replay=replace(programs[0].replay, fractional=fractional)
        )
        members = [settings for arm in arms for settings in arm.settings()]
        self.agents = len(members)
        mesh = mesh_for(self.agents)
        # Every device gets equally many agents: repeat the last ones, whose results are not looked at.
        members += members[-1:] * (-self.agents % mesh.size)
        self.sharding = split_over(mesh)
        self.settings: Settings = jax.device_put(
            jax.tree.map(lambda *leaves: jnp.stack(leaves), *members), self.sharding
        )
        split, shared = PartitionSpec(AGENTS), PartitionSpec()

        def compiled(
            function: Callable[..., Any], arguments: tuple[PartitionSpec, ...], **options: Any
        ) -> Any:
            spread = jax.shard_map(function, mesh=mesh, in_specs=arguments, out_specs=split, check_vma=False)
            return jax.jit(spread, **options)

        over_agents = _one_by_one if mesh.devices.flat[0].platform == "cpu" else _all_at_once
        self._init = compiled(over_agents(self.program.init), (split,))
        self._advance = compiled(
            over_agents(_rounds(self.program), shared=2), (split, split, shared, shared), donate_argnums=0
        )
        self._evaluate = compiled(over_agents(self.program.evaluate, shared=1), (split, split, shared))

    def init(self) -> Agent:
        """Agents that have seen nothing."""
        agents: Agent = self._init(self.settings)
        return agents

    def advance(self, agents: Agent, first: int, rounds: int) -> Agent:
        """Train for some rounds; returns when they are done. The agents passed in are used up."""
        advanced: Agent = self._advance(agents, self.settings, jnp.int32(first), jnp.int32(rounds))
        return jax.block_until_ready(advanced)

    def evaluate(self, agents: Agent, rounds: int) -> Measured:
        """Measure every agent after that many rounds."""
        measured: Measured = self._evaluate(agents, self.settings, jnp.int32(rounds))
        return Measured(*(np.asarray(values)[: self.agents] for values in measured))

    @property
    def compilations(self) -> int:
        """How often the training program was compiled: once, however the rounds are split."""
        return int(self._advance._cache_size())


def _one_by_one(function: Callable[..., Any], shared: int = 0) -> Callable[..., Any]:
    """One agent after the other, so that its numbers stay in the core's cache: the fastest on a CPU.

    It also makes an agent's results independent of the fleet around it, to the last bit.
    """

    def mapped(*arguments: Any) -> Any:
        own, common = arguments[: len(arguments) - shared], arguments[len(arguments) - shared :]
        return jax.lax.map(lambda agent: function(*agent, *common), own)

    return mapped


def _all_at_once(function: Callable[..., Any], shared: int = 0) -> Callable[..., Any]:
    """Every agent in the same instruction, as an accelerator wants it."""

    def mapped(*arguments: Any) -> Any:
        axes = (0,) * (len(arguments) - shared) + (None,) * shared
        return jax.vmap(function, in_axes=axes)(*arguments)

    return mapped


def _rounds(program: Program) -> Callable[..., Agent]:
    """One agent's training for a number of rounds that is an argument: no number needs a new compilation."""

    def advance(agent: Agent, settings: Settings, first: Array, rounds: Array) -> Agent:
        return jax.lax.fori_loop(
            first, first + rounds, lambda round_, agent: program.round(agent, settings, round_), agent
        )

    return advance
