"""A fleet whose environments run on the host. One engine steps those of all agents, in the agents' order.

The engine's state is saved with the agents, so this trainer holds no training state either.

The seed of an engine's row follows from (agent's seed, row), and in an evaluation from (agent's seed, rounds,
row). So an agent's experience depends neither on the fleet around it nor on how often it is evaluated.

A step is one call of the engine and one of the compiled program, which returns before the devices are done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from augury.agents import Parameters
from augury.envs.base import HostEngine, StepsOnHost
from augury.envs.checks import checked_engine
from augury.fleet.arm import Arm
from augury.fleet.program import every
from augury.fleet.program.base import Agent, Measured, Settings
from augury.fleet.program.sheet import Rows, Sheet, write
from augury.fleet.program.with_host import HostProgram
from augury.fleet.trainer import OnDevices, is_cpu, spread
from augury.runs.arrays import Arrays, under
from augury.transition import Array, Transition

HOST_CALL_SECONDS = 0.2
"""Length of one call of `advance`: nothing is copied, so an interrupt can be noticed soon."""
_ENGINE = "engine."
_RESTARTS = "restarts"
_TRAINING, _EVALUATION, _PLAYING = 0, 1, 2


class HostTrainer(OnDevices[HostProgram]):
    """A `Trainer`: compiled functions over agents, and the engines that simulate their environments."""

    def __init__(self, arms: Sequence[Arm], number: int = 0) -> None:
        super().__init__(arms, number)
        self._seeds = [seed for arm in arms for seed in arm.seeds]
        self._width = self.program.replay.layout.width
        self._observation_width = self.program.observations.width
        before = self._observation_width + self.program.action_width + 1
        self._next_observation = slice(before, before + self._observation_width)
        """Its columns in the row of a transition: after observation, action and reward."""

    def shapes(self) -> Agent:
        return jax.eval_shape(self.compiled.init, self.settings)

    def init(self) -> Agent:
        """New agents, at the start of their first episodes."""
        agents: Agent = self.compiled.init(self.settings)
        seeds = self._row_seeds(_TRAINING, rows=self.program.replay.environments)
        observation = self._rows_of(self._training.reset(seed=seeds)[0])
        action = self._next_actions(agents.learner.actor, observation, step=0)
        return agents._replace(environment=self._outside(observation, action))

    def advance(self, agents: Agent, first: int, rounds: int) -> Agent:
        """Train for some rounds; returns when they are done. The agents passed in must not be used again."""
        outside, collect, width = agents.environment, self.program.collect, self._width
        agents = agents._replace(environment=None)
        observation, action = self._rows_of(outside["observation"]), outside["action"]
        restarts = {name: values for name, values in outside.items() if name == _RESTARTS}
        if (starts := self._training.load_state(under(_ENGINE, outside))) is not None:
            observation = self._rows_of(starts)
            action = self._next_actions(agents.learner.actor, observation, first * collect)
            restarts = {_RESTARTS: np.append(restarts.get(_RESTARTS, np.zeros(0, np.int64)), first)}
        for round_ in range(first, first + rounds):
            page = self._sheet(collect * width + self._observation_width)
            for turn in range(collect):
                if turn:
                    action = self._next_actions(agents.learner.actor, observation, round_ * collect + turn)
                row = page.rows[:, turn * width : (turn + 1) * width]
                observation = self._step(observation, action, row)
            page.rows[:, collect * width :] = observation.rows
            agents, actions = self.compiled.round(agents, self.settings, page.ready(), np.int32(round_))
            action = self._gathered(actions)
        return agents._replace(environment=self._outside(observation, action) | restarts)

    def evaluate(self, agents: Agent, rounds: int) -> Measured:
        """Measure every agent after that many rounds."""
        success, returns = self._played(agents.learner.actor, _EVALUATION, rounds)
        held = self.compiled.look_at(agents._replace(environment=None), self.settings, np.int32(rounds))
        return Measured(success=success, returns=returns, **self.own(held))

    def play(self, actors: Parameters, seed: int) -> tuple[Rows, Rows]:
        """Share of successes and mean return of every policy, in episodes that start by the seed."""
        return self._played(self.dealt(actors), _PLAYING, seed)

    def save(self, agents: Agent, rounds: int) -> Arrays:
        outside = {f"{self._outside_name}{name}": values for name, values in agents.environment.items()}
        arrays = self.saved(agents._replace(environment=None), rounds)
        return arrays | {name: np.array(values, order="C") for name, values in outside.items()}

    def load(self, arrays: Arrays) -> Agent:
        agents = self.restored(self.shapes(), arrays)
        return agents._replace(environment=under(self._outside_name, arrays))

    def restarts(self, agents: Agent) -> list[int]:
        return [int(rounds) for rounds in agents.environment.get(_RESTARTS, ())]

    def call_seconds(self, agents: Agent) -> float:
        return HOST_CALL_SECONDS

    def close(self) -> None:
        """Close the engines; they are made again when needed."""
        for name in ("_training", "_evaluation"):
            if name in self.__dict__:
                self.__dict__.pop(name).close()

    @cached_property
    def _training(self) -> HostEngine:
        return _engine(self.program.environment, self.agents * self.program.replay.environments)

    @cached_property
    def _evaluation(self) -> HostEngine:
        rows = self.agents * self.program.evaluation_episodes
        return _engine(self.program.evaluation_environment, rows, autoreset=False)

    @cached_property
    def compiled(self) -> HostCompiled:
        """The program's functions."""
        return compiled_for_host(self.program, self.mesh)

    @property
    def _outside_name(self) -> str:
        return f"{self.number}.outside."

    def _outside(self, observation: Sheet, action: Rows) -> dict[str, Rows]:
        """The host's part of the training state: the engine's, its last observation and the next actions."""
        state = {f"{_ENGINE}{name}": values for name, values in self._training.state().items()}
        return {"observation": observation.rows, "action": action, **state}

    def _step(self, observation: Sheet, action: Rows, row: Rows) -> Sheet:
        """Step every environment, record the transitions, and return the observation to act on next."""
        shown, reward, terminated, truncated, infos = self._training.step(action)
        following = self._rows_of(shown)
        extras = {name: infos[name] for name in self.program.extras}
        write(row, observation.rows, action, reward, following.rows, terminated, truncated, extras)
        if "final_obs" in infos:
            write(row[:, self._next_observation], infos["final_obs"], only=infos["_final_obs"])
        return following

    def _played(self, actor: Parameters, *purpose: int) -> tuple[Rows, Rows]:
        """Share of successes and mean return of every agent's episodes without exploration."""
        engine, episodes = self._evaluation, self.program.evaluation_episodes
        observation, _ = engine.reset(seed=self._row_seeds(*purpose, rows=episodes))
        running = np.ones(engine.num_envs, bool)
        success, returns = np.zeros_like(running), np.zeros(engine.num_envs)
        while running.any():
            action = self._gathered(self.compiled.best_actions(actor, self._rows_of(observation).ready()))
            following, reward, terminated, truncated, _ = engine.step(action)
            shown = Transition(observation, action, reward, following, terminated, truncated, {})
            success |= running & np.asarray(self.program.evaluation_environment.succeeded(shown))
            returns += np.where(running, reward, 0)
            running &= ~(terminated | truncated)
            observation = following
        by_agent = (self.agents, episodes)
        return (
            success.reshape(by_agent).mean(1, dtype=np.float32),
            returns.reshape(by_agent).mean(1).astype(np.float32),
        )

    def _next_actions(self, actor: Parameters, observation: Sheet, step: int) -> Rows:
        shown = observation.ready()
        return self._gathered(self.compiled.next_actions(actor, self.settings, shown, np.int32(step)))

    def _rows_of(self, observation: Rows) -> Sheet:
        """Observations of an engine's rows, side by side."""
        rows = len(jax.tree.leaves(observation)[0])
        sheet = Sheet(self.agents, self.surplus, rows // self.agents, self._observation_width)
        write(sheet.rows, observation)
        return sheet

    def _sheet(self, width: int) -> Sheet:
        return Sheet(self.agents, self.surplus, self.program.replay.environments, width)

    def _gathered(self, values: Array) -> Rows:
        """What the devices computed for every agent, as rows of the engine; waits for it."""
        own = np.asarray(values)[: self.agents]
        return own.reshape(-1, *own.shape[2:])

    def _row_seeds(self, *purpose: int, rows: int) -> list[int]:
        return [
            # 63 bits: enough that no two rows meet, and an int64 holds them.
            int(np.random.SeedSequence(seed, spawn_key=(*purpose, row)).generate_state(1, np.uint64)[0] >> 1)
            for seed in self._seeds
            for row in range(rows)
        ]


def _engine(environment: StepsOnHost, rows: int, *, autoreset: bool = True) -> HostEngine:
    engine: HostEngine = checked_engine(environment.vector(rows, autoreset=autoreset), environment)
    return engine


class HostCompiled:
    """A program over the agents of a mesh of devices, compiled when first called."""

    def __init__(self, program: HostProgram, mesh: Mesh) -> None:
        self.traces = 0
        each = _in_turn if is_cpu(mesh) else jax.vmap

        def round_(agents: Agent, settings: Settings, packed: Array, number: Array) -> tuple[Agent, Array]:
            self.traces += 1
            return program.store_and_learn(each, agents, settings, packed, number)

        self.init = spread(each(program.init), mesh, own=1)
        self.round = spread(round_, mesh, own=3, common=1, donate_argnums=0)
        self.next_actions = spread(partial(program.next_actions, each), mesh, own=3, common=1)
        self.best_actions = spread(partial(program.best_actions, each), mesh, own=2)
        self.look_at = spread(partial(every.looked_at, program, each), mesh, own=2, common=1)


@lru_cache(maxsize=8)
def compiled_for_host(program: HostProgram, mesh: Mesh) -> HostCompiled:
    """Fleets that share a program share its compilation."""
    return HostCompiled(program, mesh)


def _in_turn(function: Callable[..., Any]) -> Callable[..., Any]:
    """One agent after the other, each to the last bit as if it were alone.

    XLA compiles a loop over one agent differently from a loop over many: it drops the loop, and it moves out
    of it what does not change. So every agent gets a loop of its own, whose length and inputs XLA cannot see.
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
