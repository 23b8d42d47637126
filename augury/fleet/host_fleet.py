"""A fleet whose environments run on the host: those of all its agents in one engine, in the agents' order.

The engine is a tool: its state goes with the agents, so a fleet holds no training state here either.

The seed of an engine's row follows from (agent's seed, row), and in an evaluation from (agent's seed, rounds,
row). So what an agent meets depends neither on the fleet around it nor on how often it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from augury.agents import Learner
from augury.envs.base import HostEngine
from augury.fleet.arm import Arm
from augury.fleet.fleet import Fleet, is_cpu, spread
from augury.fleet.host_program import HostProgram
from augury.fleet.program import Agent, Measured, Settings
from augury.transition import Array, Transition

Rows = Any  # a NumPy array; transitions and measurements are annotated for JAX's
_ENGINE = "engine."
_TRAINING, _EVALUATION = 0, 1


class HostFleet(Fleet):
    """Compiled functions over agents, and the engines that simulate their environments."""

    program: HostProgram

    def __init__(self, arms: Sequence[Arm]) -> None:
        super().__init__(arms)
        self._seeds = [seed for arm in arms for seed in arm.seeds]

    def init(self) -> Agent:
        """Agents that have seen the start of their first episodes."""
        agents = super().init()
        seeds = self._row_seeds(_TRAINING, rows=self.program.replay.environments)
        observation, _ = self._training.reset(seed=seeds)
        action = self._next_actions(agents.learner, observation, step=0)
        return agents._replace(environment=self._outside(observation, action))

    def advance(self, agents: Agent, first: int, rounds: int) -> Agent:
        """Train for some rounds; returns when they are done. The agents passed in are used up."""
        outside, collect = agents.environment, self.program.collect
        agents = agents._replace(environment=None)
        observation, action = outside["observation"], outside["action"]
        state = {name: values for name, values in outside.items() if name.startswith(_ENGINE)}
        self._training.load_state({name.removeprefix(_ENGINE): values for name, values in state.items()})
        for round_ in range(first, first + rounds):
            page: list[Rows] = []
            for step in range(round_ * collect, (round_ + 1) * collect):
                if page:
                    action = self._next_actions(agents.learner, observation, step)
                transition, observation = self._step(observation, action)
                page += jax.tree.leaves(transition)
            packed = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in (*page, observation)], 1)
            agents, actions = self._compiled.round(
                agents, self.settings, self._dealt(packed), np.int32(round_)
            )
            action = self._gathered(actions)
        return agents._replace(environment=self._outside(observation, action))

    def evaluate(self, agents: Agent, rounds: int) -> Measured:
        """Measure every agent after that many rounds."""
        success, returns = self._played(agents.learner, rounds)
        agents = agents._replace(environment=None)
        held = self._compiled.look_at(agents, self.settings, np.int32(rounds))
        own: dict[str, Rows] = {name: np.asarray(values)[: self.agents] for name, values in held.items()}
        return Measured(success=success, returns=returns, **own)

    def close(self) -> None:
        """Close the engines; they are made again when needed."""
        for name in ("_training", "_evaluation"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()

    @cached_property
    def _training(self) -> HostEngine:
        return self.program.environment.vector(self.agents * self.program.replay.environments)

    @cached_property
    def _evaluation(self) -> HostEngine:
        rows = self.agents * self.program.evaluation_episodes
        return self.program.evaluation_environment.vector(rows, autoreset=False)

    def _compile(self, mesh: Mesh) -> HostCompiled:
        return compiled_for_host(self.program, mesh)

    def _outside(self, observation: Rows, action: Rows) -> dict[str, Rows]:
        """What training goes on from on the host: the engine, what it shows, and what it is asked next."""
        state = {f"{_ENGINE}{name}": values for name, values in self._training.state().items()}
        return {"observation": observation, "action": action, **state}

    def _step(self, observation: Rows, action: Rows) -> tuple[Transition, Rows]:
        """Step every environment: what that showed, and the observation to act on next."""
        following, reward, terminated, truncated, infos = self._training.step(action)
        final = following
        if "final_obs" in infos:
            final = np.where(infos["_final_obs"][:, None], infos["final_obs"], following)
        extras = {name: infos[name] for name in self.program.extras}
        return Transition(observation, action, reward, final, terminated, truncated, extras), following

    def _played(self, learner: Learner, rounds: int) -> tuple[Rows, Rows]:
        """Share of successes and mean return of every agent's evaluation episodes."""
        engine, episodes = self._evaluation, self.program.evaluation_episodes
        observation, _ = engine.reset(seed=self._row_seeds(_EVALUATION, rounds, rows=episodes))
        running = np.ones(len(observation), bool)
        success, returns = np.zeros_like(running), np.zeros(len(observation))
        while running.any():
            action = self._gathered(self._compiled.play(learner, self._dealt(observation)))
            following, reward, terminated, truncated, _ = engine.step(action)
            seen = Transition(observation, action, reward, following, terminated, truncated, {})
            success |= running & np.asarray(self.program.evaluation_environment.succeeded(seen))
            returns += np.where(running, reward, 0)
            running &= ~(terminated | truncated)
            observation = following
        by_agent = (self.agents, episodes)
        return (
            success.reshape(by_agent).mean(1, dtype=np.float32),
            returns.reshape(by_agent).mean(1).astype(np.float32),
        )

    def _next_actions(self, learner: Learner, observation: Rows, step: int) -> Rows:
        dealt = self._dealt(observation)
        return self._gathered(self._compiled.next_actions(learner, self.settings, dealt, np.int32(step)))

    def _dealt(self, rows: Rows) -> Rows:
        """Rows of the engine as (agents, rows, …), with the surplus agents that fill up the devices."""
        own = rows.astype(np.float32).reshape(self.agents, -1, *rows.shape[1:])
        return np.concatenate([own, np.repeat(own[-1:], self.surplus, 0)]) if self.surplus else own

    def _gathered(self, values: Array) -> Rows:
        """The same back."""
        own = np.asarray(values)[: self.agents]
        return own.reshape(-1, *own.shape[2:])

    def _row_seeds(self, *purpose: int, rows: int) -> list[int]:
        return [
            # 63 bits: enough that no two rows meet, and an int64 holds them.
            int(np.random.SeedSequence(seed, spawn_key=(*purpose, row)).generate_state(1, np.uint64)[0] >> 1)
            for seed in self._seeds
            for row in range(rows)
        ]


class HostCompiled:
    """A program over the agents of a mesh of devices, compiled when first called."""

    def __init__(self, program: HostProgram, mesh: Mesh) -> None:
        self.traces = 0
        each = _in_turn if is_cpu(mesh) else jax.vmap

        def round_(agents: Agent, settings: Settings, packed: Array, number: Array) -> tuple[Agent, Array]:
            self.traces += 1
            return program.round(each, agents, settings, packed, number)

        self.init = spread(each(program.init), mesh, own=1)
        self.round = spread(round_, mesh, own=3, common=1, donate_argnums=0)
        self.next_actions = spread(partial(program.next_actions, each), mesh, own=3, common=1)
        self.play = spread(partial(program.play, each), mesh, own=2)
        self.look_at = spread(partial(program.look_at, each), mesh, own=2, common=1)


@lru_cache(maxsize=8)
def compiled_for_host(program: HostProgram, mesh: Mesh) -> HostCompiled:
    """Fleets that share a program share its compilation."""
    return HostCompiled(program, mesh)


def _in_turn(function: Callable[..., Any]) -> Callable[..., Any]:
    """One agent after the other, each to the last bit as if it were alone.

    XLA compiles a loop over one agent otherwise than a loop over many: it drops the loop, and it moves out of
    it what does not change. So every agent's turn is a loop of its own, and its length and inputs are hidden.
    """

    def turn(own: Any) -> Any:
        def body(_: Array, carried: tuple[Any, Any]) -> tuple[Any, Any]:
            own = jax.lax.optimization_barrier(carried[0])
            return own, function(*own)

        shapes = jax.eval_shape(function, *own)
        empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        once = jax.lax.optimization_barrier(jnp.int32(1))
        return jax.lax.fori_loop(0, once, body, (own, empty))[1]

    return lambda *own: jax.lax.map(turn, own)
