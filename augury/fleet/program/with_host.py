"""Training on environments that run on the host: the compiled half, for the agents of one device.

    for every step:
        the simulator takes the agents' actions           on the host
        at the end of a round:                            one compiled call
            store the round's transitions
            make `updates` gradient steps
        give the next actions

Observations arrive as rows of one array; dicts of arrays are put together again here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from augury.agents import Learner, Noise, Parameters
from augury.envs.base import StepsOnHost
from augury.fleet.program import every
from augury.fleet.program.base import Agent, Program, Settings, blank_observation
from augury.fleet.program.every import Each
from augury.replay import Layout
from augury.transition import Array


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
        buffers = every.stored(self, each, agents.buffers, settings, rows, round_)
        step = (round_ + 1) * self.collect

        def turn(
            agent: Array, learner: Learner, settings: Settings, observation: Array
        ) -> tuple[Learner, Array]:
            _, key = self.keys(settings, round_)
            learner = self.learn(key, learner, every.part(buffers, agent), settings, round_)
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

    def _explore(self, actor: Parameters, settings: Settings, observation: Array, step: Array) -> Array:
        collect_key, _ = self.keys(settings, step // self.collect)
        key = jax.random.fold_in(collect_key, step % self.collect)
        noise = Noise.draw(key, observation.shape[:-1], self.action_width)
        action = self.explore(noise, actor, self.observations.unpack(observation), settings, step)
        return self._numbers(action)

    def _numbers(self, action: Array) -> Array:
        """The action; of a diverged agent, whose actions are not numbers, one that a simulator can take."""
        if self.algorithm.discrete:  # the best of values that are not numbers is still one of the actions
            return action
        return jnp.where(jnp.isnan(action), jnp.asarray(self.environment.action_low), action)
