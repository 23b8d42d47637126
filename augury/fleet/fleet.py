"""A fleet: the agents of one or several arms, trained by one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from augury.agents import Parameters
from augury.fleet.arm import Arm
from augury.fleet.devices import AGENTS, mesh_for, split_over
from augury.fleet.program.base import Agent, Measured, Settings
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
    """Compiled functions over the agents of arms that share a program. Holds no training state.

    Its environments are written in JAX, and so part of the program: see `HostFleet` for others.
    """

    def __init__(self, arms: Sequence[Arm]) -> None:
        programs = [arm.program() for arm in arms]
        fractional = any(program.replay.fractional for program in programs)
        self.program: Any = replace(programs[0], replay=replace(programs[0].replay, fractional=fractional))
        self.agents = sum(arm.agents for arm in arms)
        mesh = mesh_for(self.agents)
        self.sharding = split_over(mesh)
        # Every device gets equally many agents: the last is repeated, and the copies are not looked at.
        self.surplus = -self.agents % mesh.size
        members = [arm.settings() for arm in arms]
        last = jax.tree.map(lambda leaf: leaf[-1:], members[-1])
        self.settings: Settings = jax.device_put(
            jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *members, *[last] * self.surplus),
            self.sharding,
        )
        self.devices = mesh.size
        self.copies_buffers = is_cpu(mesh)
        """Whether every call of `advance` copies the agents it is given."""
        self._compiled = self._compile(mesh)

    def _compile(self, mesh: Mesh) -> Any:
        return compiled(self.program, mesh)

    def init(self) -> Agent:
        """Agents that have seen nothing."""
        return self._compiled.init(self.settings)

    def shapes(self) -> Agent:
        """What agents look like on their devices."""
        return jax.eval_shape(self._compiled.init, self.settings)

    def advance(self, agents: Agent, first: int, rounds: int) -> Agent:
        """Train for some rounds; returns when they are done. The agents passed in are used up."""
        advanced = self._compiled.advance(agents, self.settings, jnp.int32(first), jnp.int32(rounds))
        return jax.block_until_ready(advanced)

    def evaluate(self, agents: Agent, rounds: int) -> Measured:
        """Measure every agent after that many rounds."""
        measured = self._compiled.evaluate(agents, self.settings, jnp.int32(rounds))
        return jax.tree.map(lambda values: np.asarray(values)[: self.agents], measured)

    def actors(self, agents: Agent) -> Parameters:
        """The parameters of every agent's policy, as NumPy arrays."""
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: self.agents], agents.learner.actor)

    def play(self, actors: Parameters, seed: int) -> tuple[Any, Any]:
        """Share of successes and mean return of every policy, in episodes that start as the seed says."""
        played = self._compiled.play(self._on_devices(actors), self.settings, jnp.uint32(seed))
        success, returns = (np.asarray(values)[: self.agents] for values in played)
        return success, returns

    def close(self) -> None:
        """Let go of what is not memory."""

    def _on_devices(self, actors: Parameters) -> Parameters:
        """Policies dealt out like their agents, surplus ones too."""
        every = np.minimum(np.arange(self.agents + self.surplus), self.agents - 1)
        return jax.device_put(jax.tree.map(lambda leaf: leaf[every], actors), self.sharding)

    @property
    def parts(self) -> Sequence[Fleet]:
        """The fleets that it is made of: itself alone."""
        return (self,)

    def split(self, agents: Any) -> Sequence[Any]:
        """The agents of each part."""
        return (agents,)

    def joined(self, agents: Sequence[Any]) -> Any:
        """The same back."""
        return agents[0]

    @property
    def traces(self) -> int:
        """How often the training program was traced: once, however the rounds are split."""
        return self._compiled.traces


class Compiled:
    """A program over the agents of a mesh of devices, compiled when first called."""

    def __init__(self, program: Any, mesh: Mesh) -> None:
        self.traces = 0

        def rounds(agent: Agent, settings: Settings, first: Array, count: Array) -> Agent:
            # The count is an argument, so that no count needs a new compilation.
            self.traces += 1
            return jax.lax.fori_loop(
                first, first + count, lambda round_, agent: program.round(agent, settings, round_), agent
            )

        each = over_agents(mesh)
        self.init = spread(each(program.init), mesh, own=1)
        self.advance = spread(each(rounds, 2), mesh, own=2, common=2, donate_argnums=0)
        self.evaluate = spread(each(program.evaluate, 1), mesh, own=2, common=1)
        self.play = spread(each(program.play, 1), mesh, own=2, common=1)


@lru_cache(maxsize=8)
def compiled(program: Any, mesh: Mesh) -> Compiled:
    """Fleets that share a program share its compilation."""
    return Compiled(program, mesh)


def spread(function: Callable[..., Any], mesh: Mesh, own: int, common: int = 0, **options: Any) -> Any:
    """Compile a function of agents for a mesh: `own` arguments are dealt out, `common` ones go to all."""
    split, shared = PartitionSpec(AGENTS), PartitionSpec()
    specs = (split,) * own + (shared,) * common
    mapped = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=split, check_vma=False)
    # Empty arrays would come out as if not dealt out, unlike those of a checkpoint: a second compilation.
    return jax.jit(mapped, out_shardings=NamedSharding(mesh, split), **options)


def is_cpu(mesh: Mesh) -> bool:
    """Whether the devices are cores."""
    return mesh.devices.flat[0].platform == "cpu"


def over_agents(mesh: Mesh) -> Callable[..., Callable[..., Any]]:
    """How a function of one agent becomes one of many; its last `shared` arguments are theirs in common."""
    return _one_by_one if is_cpu(mesh) else _all_at_once


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
