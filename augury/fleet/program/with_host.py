"""Training on environments that run on the host: the compiled half, for the agents of one device.

    for every step:
        the simulator takes the agents' actions           on the host
        at the end of a round:                            one compiled call
            store the round's transitions
            make `updates` gradient steps
        give the next actions

`each` maps over agents, but not over their rings: one write stores a round of every agent, in place, and
learning reads rows through a `Part`. So a call costs the same whatever the rings' size.

Observations arrive as rows of one array; dicts of arrays are put together again here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from augury.agents import Learner, Noise, Parameters
from augury.augmentations import Augmentation
from augury.envs.base import StepsOnHost
from augury.fleet.program.base import Agent, Program, Settings, blank_observation
from augury.replay import Buffers, Layout
from augury.replay.ring import LISTS, RINGS
from augury.transition import Array

Each = Callable[..., Callable[..., Any]]
"""Maps a function of one agent over many, whose arguments have a leading axis over agents."""


class Part:
    """One agent's part of an array that holds many agents', read without being cut out of it."""

    def __init__(self, whole: Array, agent: Array) -> None:
        self.whole, self.agent = whole, agent

    @property
    def shape(self) -> tuple[int, ...]:
        return self.whole.shape[1:]

    def __getitem__(self, places: Any) -> Array:
        places = places if isinstance(places, tuple) else (places,)
        return self.whole[(self.agent, *places)]


@dataclass(frozen=True)
class HostProgram(Program):
    """A program whose environments are stepped between its calls."""

    environment: StepsOnHost
    evaluation_environment: StepsOnHost
    extras: tuple[str, ...] = ()
    """Which of the environment's extras are stored: those that the augmentation needs."""

    @property
    def observations(self) -> Layout:
        """How an observation becomes a row of numbers."""
        return Layout.of(blank_observation(self.environment))

    def init(self, settings: Settings) -> Agent:
        """An agent that has seen nothing."""
        learner_key, buffer_key = jax.random.split(jax.random.fold_in(settings.key, 0))
        return Agent(
            learner=self.algorithm.init(learner_key, blank_observation(self.environment)),
            buffers=self.replay.init(buffer_key),
            environment=None,
            episode_steps=None,
        )

    def store_and_learn(
        self, each: Each, agents: Agent, settings: Settings, packed: Array, round_: Array
    ) -> tuple[Agent, Array]:
        """Store a round's transitions, learn, and give the first actions of the next round.

        `packed` is (agents, environments, …): the rows of `collect` transitions, then the observation now.
        """
        rows, observation = jnp.split(packed, [self.collect * self.replay.layout.width], -1)
        rows = rows.reshape(*rows.shape[:-1], self.collect, -1)
        buffers = self._stored(each, agents.buffers, settings, rows, round_)
        step = (round_ + 1) * self.collect

        def turn(
            agent: Array, learner: Learner, settings: Settings, observation: Array
        ) -> tuple[Learner, Array]:
            _, key = self.keys(settings, round_)
            learner = self.learn(key, learner, _part(buffers, agent), settings, round_)
            return learner, self._explore(learner.actor, settings, observation, step)

        learner, action = jax.lax.cond(
            round_ >= self.first_update_round,
            lambda learner: each(turn)(jnp.arange(len(packed)), learner, settings, observation),
            lambda learner: (learner, self.next_actions(each, learner.actor, settings, observation, step)),
            agents.learner,
        )
        return agents._replace(learner=learner, buffers=buffers), action

    def next_actions(
        self, each: Each, actor: Parameters, settings: Settings, observation: Array, step: Array
    ) -> Array:
        """Every agent's actions after that many steps, (agents, environments, …)."""
        explore = partial(self._explore, step=step)
        return each(explore)(actor, settings, observation)

    def best_actions(self, each: Each, actor: Parameters, observation: Array) -> Array:
        """Every agent's actions without exploration."""

        def turn(actor: Parameters, observation: Array) -> Array:
            return self._numbers(self.act(actor, self.observations.unpack(observation)))

        return each(turn)(actor, observation)

    def look_at(self, each: Each, agents: Agent, settings: Settings, rounds: Array) -> Any:
        """The fields of `Measured` that do not come from episodes, of every agent, by name."""

        def look(agent: Array, learner: Learner, settings: Settings) -> Any:
            _, key = self.evaluation_keys(settings, rounds)
            return self.look(key, learner, _part(agents.buffers, agent), settings, rounds)

        return each(look)(jnp.arange(len(agents.buffers.observed)), agents.learner, settings)

    def _explore(self, actor: Parameters, settings: Settings, observation: Array, step: Array) -> Array:
        collect_key, _ = self.keys(settings, step // self.collect)
        key = jax.random.fold_in(collect_key, step % self.collect)
        noise = Noise.draw(key, observation.shape[:-1], len(self.environment.action_low))
        action = self.explore(noise, actor, self.observations.unpack(observation), settings, step)
        return self._numbers(action)

    def _stored(
        self, each: Each, buffers: Buffers, settings: Settings, rows: Array, round_: Array
    ) -> Buffers:
        """Buffers of every agent with a round added to each."""
        added = round_ * self.collect
        plain = replace(self.replay, copies=0)
        buffers = jax.vmap(lambda own, rows, ratio: plain.add(own, rows, added, ratio, None))(
            buffers, rows, settings.ratio
        )
        if not self.replay.copies:
            return buffers
        # Copies are made one agent at a time, as they are when sampled: on a page that holds just the round.
        page = replace(self.replay, capacity=self.collect, fractional=False)

        def copies(key: Array, rows: Array, ratio: Array, augmentation: Augmentation) -> Array:
            blank = page.init(jax.random.wrap_key_data(key))
            return page.add(blank, rows, added, ratio, augmentation).augmented

        made = each(copies)(buffers.key, rows, settings.ratio, settings.augmentation)
        start = (0, 0, added % self.replay.capacity, 0, 0)
        return buffers._replace(augmented=jax.lax.dynamic_update_slice(buffers.augmented, made, start))

    def _numbers(self, action: Array) -> Array:
        """The action; of a diverged agent, whose actions are not numbers, one that a simulator can take."""
        return jnp.where(jnp.isnan(action), jnp.asarray(self.environment.action_low), action)


def _part(buffers: Buffers, agent: Array) -> Buffers:
    """One agent's buffers, of many agents'."""

    def own(path: Any, leaf: Array) -> Any:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return Part(leaf, agent) if name in RINGS | LISTS else leaf[agent]

    return jax.tree_util.tree_map_with_path(own, buffers)
