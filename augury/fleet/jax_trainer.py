"""A fleet whose environments are written in JAX: whole rounds of every agent are one compiled call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from augury.agents import Parameters
from augury.fleet.program.base import Agent, Measured, Settings
from augury.fleet.program.in_jax import JaxProgram
from augury.fleet.trainer import CALL_SECONDS, CALL_SECONDS_PER_BYTE, OnDevices, is_cpu, spread
from augury.runs.arrays import Arrays
from augury.transition import Array


class JaxTrainer(OnDevices[JaxProgram]):
    """A `Trainer` of agents whose environments are part of the program."""

    @cached_property
    def compiled(self) -> Compiled:
        """The program's functions."""
        return compiled(self.program, self.mesh)

    def shapes(self) -> Agent:
        return jax.eval_shape(self.compiled.init, self.settings)

    def init(self) -> Agent:
        return self.compiled.init(self.settings)

    def advance(self, agents: Agent, first: int, rounds: int) -> Agent:
        advanced = self.compiled.advance(agents, self.settings, jnp.int32(first), jnp.int32(rounds))
        return jax.block_until_ready(advanced)

    def evaluate(self, agents: Agent, rounds: int) -> Measured:
        measured: Measured = self.own(self.compiled.evaluate(agents, self.settings, jnp.int32(rounds)))
        return measured

    def save(self, agents: Agent, rounds: int) -> Arrays:
        return self.saved(agents, rounds)

    def load(self, arrays: Arrays) -> Agent:
        return self.restored(self.shapes(), arrays)

    def play(self, actors: Parameters, seed: int) -> tuple[Any, Any]:
        success, returns = self.own(self.compiled.play(self.dealt(actors), self.settings, jnp.uint32(seed)))
        return success, returns

    def call_seconds(self, agents: Agent) -> float:
        copied = agents.buffers.observed.nbytes / self.mesh.size if is_cpu(self.mesh) else 0
        return CALL_SECONDS + CALL_SECONDS_PER_BYTE * copied

    def close(self) -> None:
        """There is nothing to release but memory."""


class Compiled:
    """A program over the agents of a mesh of devices, compiled when first called."""

    def __init__(self, program: JaxProgram, mesh: Mesh) -> None:
        self.traces = 0
        """How often the training program was traced: once, however the rounds are split."""

        def rounds(agent: Agent, settings: Settings, first: Array, count: Array) -> Agent:
            # The count is an argument, so that no count needs a new compilation.
            self.traces += 1
            own = program.for_agent(settings)
            return jax.lax.fori_loop(
                first, first + count, lambda round_, agent: own.round(agent, settings, round_), agent
            )

        def init(settings: Settings) -> Agent:
            return program.for_agent(settings).init(settings)

        def evaluate(agent: Agent, settings: Settings, rounds: Array) -> Measured:
            return program.for_agent(settings).evaluate(agent, settings, rounds)

        def play(actor: Parameters, settings: Settings, seed: Array) -> tuple[Array, Array]:
            return program.for_agent(settings).play(actor, settings, seed)

        each = _one_by_one if is_cpu(mesh) else _all_at_once
        self.init = spread(each(init), mesh, own=1)
        self.advance = spread(each(rounds, 2), mesh, own=2, common=2, donate_argnums=0)
        self.evaluate = spread(each(evaluate, 1), mesh, own=2, common=1)
        self.play = spread(each(play, 1), mesh, own=2, common=1)


@lru_cache(maxsize=8)
def compiled(program: JaxProgram, mesh: Mesh) -> Compiled:
    """Fleets that share a program share its compilation."""
    return Compiled(program, mesh)


def _one_by_one(function: Callable[..., Any], shared: int = 0) -> Callable[..., Any]:
    """One agent after the other, so that its numbers stay in the core's cache: the fastest on a CPU.

    It also makes an agent's results independent of the fleet around it, to the last bit. The last `shared`
    arguments are all agents' in common.
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
