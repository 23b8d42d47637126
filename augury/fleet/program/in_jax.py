"""Training on environments written in JAX: rounds and evaluations are pure functions of one agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from augury.agents import Noise, Parameters
from augury.envs.base import StepsInJax
from augury.fleet.program.base import Agent, Measured, Program, Settings
from augury.transition import Array, Key, Observation, Transition

_PLAYING = np.uint32(2**32 - 1)
"""Folded in place of a round's number."""


@dataclass(frozen=True)
class JaxProgram(Program):
    """A program whose environments are part of it."""

    environment: StepsInJax
    evaluation_environment: StepsInJax

    def init(self, settings: Settings) -> Agent:
        """An agent that has seen nothing."""
        learner_key, buffer_key, reset_key = jax.random.split(jax.random.fold_in(settings.key, 0), 3)
        states = jax.vmap(self.environment.reset)(jax.random.split(reset_key, self.replay.environments))
        observation = jax.tree.map(lambda leaf: leaf[0], self._observe(states))
        return Agent(
            learner=self.algorithm.init(learner_key, observation),
            buffers=self.replay.init(buffer_key),
            environment=states,
            episode_steps=jnp.zeros(self.replay.environments, jnp.int32),
        )

    def round(self, agent: Agent, settings: Settings, round_: Array) -> Agent:
        """Collect, store, learn."""
        collect_key, learn_key = self.keys(settings, round_)
        agent, new = self._collect(collect_key, agent, settings, round_)
        rows = self.replay.layout.pack(new)
        buffers = self.replay.add(
            agent.buffers, rows, round_ * self.collect, settings.ratio, settings.augmentation
        )
        learner = jax.lax.cond(
            round_ >= self.first_update_round,
            lambda: self.learn(learn_key, agent.learner, buffers, settings, round_),
            lambda: agent.learner,
        )
        return agent._replace(learner=learner, buffers=buffers)

    def evaluate(self, agent: Agent, settings: Settings, rounds: Array) -> Measured:
        """Measure an agent."""
        play_key, survey_key = self.evaluation_keys(settings, rounds)
        success, returns = self._play(play_key, agent.learner.actor)
        held = self.look(survey_key, agent.learner, agent.buffers, settings, rounds)
        return Measured(success=success, returns=returns, **held)

    def play(self, actor: Parameters, settings: Settings, seed: Array) -> tuple[Array, Array]:
        """Success and return of episodes whose starts follow from the seed alone."""
        return self._play(jax.random.fold_in(jax.random.fold_in(settings.key, _PLAYING), seed), actor)

    def _play(self, key: Key, actor: Parameters) -> tuple[Array, Array]:
        """Success and return of episodes without exploration."""
        environment, episodes = self.evaluation_environment, self.evaluation_episodes
        reset_key, step_key = jax.random.split(key)
        states = jax.vmap(environment.reset)(jax.random.split(reset_key, episodes))

        def step(carry: Any, key: Key) -> tuple[Any, None]:
            states, running, success, returns = carry
            observation = jax.vmap(environment.observe)(states)
            action = self.act(actor, observation)
            keys = jax.random.split(key, episodes)
            states, reward, terminated = jax.vmap(environment.step)(keys, states, action)
            next_observation = jax.vmap(environment.observe)(states)
            truncated = jnp.zeros_like(terminated)
            seen = Transition(observation, action, reward, next_observation, terminated, truncated, {})
            success |= running & environment.succeeded(seen)
            returns += jnp.where(running, reward, 0)
            return (states, running & ~terminated, success, returns), None

        start = (states, jnp.ones(episodes, bool), jnp.zeros(episodes, bool), jnp.zeros(episodes))
        (_, _, success, returns), _ = jax.lax.scan(
            step, start, jax.random.split(step_key, environment.horizon)
        )
        return success.mean(dtype=jnp.float32), returns.mean()

    def _collect(self, key: Key, agent: Agent, settings: Settings, round_: Array) -> tuple[Agent, Transition]:
        """Steps in every environment; the transitions come as (environments, steps)."""
        shape = (self.collect, self.replay.environments)
        noise_key, reset_key, step_key = jax.random.split(key, 3)
        noise = Noise.draw(noise_key, shape, len(self.environment.action_low))
        starts = jax.vmap(jax.vmap(self.environment.reset))(jax.random.split(reset_key, shape))
        step_keys = jax.random.split(step_key, shape)
        steps = round_ * self.collect + jnp.arange(self.collect)

        def step(carry: Any, drawn: Any) -> tuple[Any, Transition]:
            states, episode_steps = carry
            noise, starts, keys, steps = drawn
            observation = self._observe(states)
            action = self.explore(noise, agent.learner.actor, observation, settings, steps)
            states, reward, terminated = jax.vmap(self.environment.step)(keys, states, action)
            truncated = ~terminated & (episode_steps + 1 >= self.environment.horizon)
            transition = Transition(
                observation, action, reward, self._observe(states), terminated, truncated, {}
            )
            over = terminated | truncated
            states = jax.tree.map(
                lambda start, state: jnp.where(_rows(over, state), start, state), starts, states
            )
            return (states, jnp.where(over, 0, episode_steps + 1)), transition

        (states, episode_steps), new = jax.lax.scan(
            step, (agent.environment, agent.episode_steps), (noise, starts, step_keys, steps)
        )
        new = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), new)
        return agent._replace(environment=states, episode_steps=episode_steps), new

    def _observe(self, states: Any) -> Observation:
        return jax.vmap(self.environment.observe)(states)


def _rows(mask: Array, like: Array) -> Array:
    """A mask over rows, shaped so that it broadcasts against what the rows hold."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))
