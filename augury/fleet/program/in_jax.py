"""Training on environments written in JAX: rounds and evaluations are pure functions of one agent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from augury.agents import Noise, Parameters
from augury.envs.base import StepsInJax
from augury.fleet.program.base import Agent, Measured, Program, Settings
from augury.transition import Array, Key, Observation, Transition

_PLAYING = np.uint32(2**32 - 1)
"""Folded in place of a round's number."""


Stepped = tuple[Any, Array, Array]
"""What a step gives: states, rewards, and whether the task terminated."""


class Running(NamedTuple):
    """Where the episodes of an agent are."""

    states: Any
    episode_steps: Array


class Draw(NamedTuple):
    """Whatever is random in a step of an agent."""

    noise: Noise
    starts: Any
    """Where environments begin anew whose episodes are over."""
    keys: Key
    steps: Array
    """Taken before it in each environment."""


@dataclass(frozen=True)
class JaxProgram(Program):
    """A program whose environments are part of it."""

    environment: StepsInJax
    evaluation_environment: StepsInJax

    def for_agent(self, settings: Settings) -> JaxProgram:
        """The program with an agent's own environments, where they differ in their numbers."""
        named = {name: getattr(settings, name) for name in ("environment", "evaluation_environment")}
        return replace(self, **{name: own for name, own in named.items() if own is not None})

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

        def step(running: Running, draw: Draw) -> tuple[Running, Transition]:
            observation, action = self.choose(agent.learner.actor, running, settings, draw)
            stepped = jax.vmap(self.environment.step)(draw.keys, running.states, action)
            return self.settle(running, draw, observation, action, stepped)

        running, new = jax.lax.scan(step, self.running(agent), self.draws(settings, round_))
        rows = self.packed(new)
        buffers = self.replay.add(
            agent.buffers, rows, round_ * self.collect, settings.ratio, settings.augmentation
        )
        _, learn_key = self.keys(settings, round_)
        learner = jax.lax.cond(
            round_ >= self.first_update_round,
            lambda: self.learn(learn_key, agent.learner, buffers, settings, round_),
            lambda: agent.learner,
        )
        return Agent(learner, buffers, running.states, running.episode_steps)

    def running(self, agent: Agent) -> Running:
        """Where an agent's episodes are."""
        assert agent.episode_steps is not None, "environments in JAX count their steps here"
        return Running(agent.environment, agent.episode_steps)

    def draws(self, settings: Settings, round_: Array) -> Draw:
        """Whatever is random in the steps of a round; the first axis is over steps."""
        shape = (self.collect, self.replay.environments)
        collect_key, _ = self.keys(settings, round_)
        noise_key, reset_key, step_key = jax.random.split(collect_key, 3)
        return Draw(
            noise=Noise.draw(noise_key, shape, self.action_width),
            starts=jax.vmap(jax.vmap(self.environment.reset))(jax.random.split(reset_key, shape)),
            keys=jax.random.split(step_key, shape),
            steps=round_ * self.collect + jnp.arange(self.collect),
        )

    def choose(
        self, actor: Parameters, running: Running, settings: Settings, draw: Draw
    ) -> tuple[Observation, Array]:
        """What an agent observes in its environments, and how it acts."""
        observation = self._observe(running.states)
        return observation, self.explore(draw.noise, actor, observation, settings, draw.steps)

    def settle(
        self, running: Running, draw: Draw, observation: Observation, action: Array, stepped: Stepped
    ) -> tuple[Running, Transition]:
        """The transitions of a step, and where episodes are then: at a new start where they were over."""
        states, reward, terminated = stepped
        truncated = ~terminated & (running.episode_steps + 1 >= self.environment.horizon)
        transition = Transition(observation, action, reward, self._observe(states), terminated, truncated, {})
        over = terminated | truncated
        states = jax.tree.map(
            lambda start, state: jnp.where(_rows(over, state), start, state), draw.starts, states
        )
        return Running(states, jnp.where(over, 0, running.episode_steps + 1)), transition

    def evaluate(self, agent: Agent, settings: Settings, rounds: Array) -> Measured:
        """Measure an agent."""
        success, returns = self.episodes(agent.learner.actor, settings, rounds)
        _, survey_key = self.evaluation_keys(settings, rounds)
        held = self.look(survey_key, agent.learner, agent.buffers, settings, rounds)
        return Measured(success=success, returns=returns, **held)

    def packed(self, new: Transition) -> Array:
        """Transitions (steps, environments, …) as rows of a ring: (environments, steps, width)."""
        return self.replay.layout.pack(jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), new))

    def episodes(self, actor: Parameters, settings: Settings, rounds: Array) -> tuple[Array, Array]:
        """Success and return of an evaluation's episodes."""
        play_key, _ = self.evaluation_keys(settings, rounds)
        return self._play(play_key, actor)

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

    def _observe(self, states: Any) -> Observation:
        return jax.vmap(self.environment.observe)(states)


def _rows(mask: Array, like: Array) -> Array:
    """A mask over rows, shaped so that it broadcasts against what the rows hold."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))
