"""One agent's training as a pure function, and a fleet as that function over many agents.

    for every round:
        take `collect` steps in each environment          explore, step, reset
        store them                                        replay.add
        make `updates` gradient steps                     replay.sample, algorithm.update

The number of rounds done is the only clock: steps, updates and random keys all follow from it. It is the
same for every agent, so what depends on it alone (a delayed policy update, say) is computed only where due.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from augury.agents import ActionScale, Algorithm, Hyperparameters, Learner, Noise
from augury.augmentations import Augmentation
from augury.envs.base import JaxEnvironment
from augury.grid import Grid
from augury.replay import Batch, Buffers, Replay, survey
from augury.transition import Array, Key, Observation, Transition


class Agent(NamedTuple):
    """Everything that training changes."""

    learner: Learner
    buffers: Buffers
    environment: Any
    """States of the agent's environments."""
    episode_steps: Array


class Settings(NamedTuple):
    """Everything about an agent that may differ inside one fleet."""

    key: Key
    hyper: Hyperparameters
    ratio: Array
    """m."""
    augmentation: Augmentation | None


class Measured(NamedTuple):
    """What is measured of an agent from time to time."""

    success: Array
    """Share of the evaluation episodes that succeeded."""
    returns: Array
    """Mean undiscounted return of the evaluation episodes."""
    observed_reward_density: Array
    augmented_reward_density: Array
    observed_coverage: Array
    augmented_coverage: Array
    coverage: Array
    augmented_transitions: Array
    """Generated since the start."""
    finite: Array
    """Whether the learner holds finite numbers only."""


@dataclass(frozen=True)
class Program:
    """Everything about training that fixes shapes, and so is shared by a fleet."""

    environment: JaxEnvironment
    evaluation_environment: JaxEnvironment
    algorithm: Algorithm
    replay: Replay
    grid: Grid
    """Over which coverage is measured."""
    collect: int
    """Steps in each environment between updates."""
    updates: int
    """Gradient steps after each collection."""
    random_steps: int
    """Steps with uniform actions before the first update."""
    evaluation_episodes: int

    @property
    def scale(self) -> ActionScale:
        return ActionScale(self.environment.action_low, self.environment.action_high)

    @property
    def first_update_round(self) -> int:
        return self.random_steps // self.collect

    def updates_after(self, rounds: Array) -> Array:
        """Gradient steps made in that many rounds."""
        return jnp.maximum(rounds - self.first_update_round, 0) * self.updates

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
        collect_key, learn_key = jax.random.split(jax.random.fold_in(settings.key, 1 + 2 * round_))
        agent, new = self._collect(collect_key, agent, settings, round_)
        buffers = self.replay.add(
            agent.buffers, new, round_ * self.collect, settings.ratio, settings.augmentation
        )
        agent = agent._replace(buffers=buffers)
        learner = jax.lax.cond(
            round_ >= self.first_update_round,
            lambda: self._learn(learn_key, agent, settings, round_),
            lambda: agent.learner,
        )
        return agent._replace(learner=learner)

    def evaluate(self, agent: Agent, settings: Settings, rounds: Array) -> Measured:
        """Measure an agent. The randomness is the evaluation's own, so training does not notice it."""
        play_key, survey_key = jax.random.split(jax.random.fold_in(settings.key, 2 + 2 * rounds))
        success, returns = self._play(play_key, agent)
        added = rounds * self.collect
        held = survey(
            survey_key,
            self.replay,
            agent.buffers,
            added,
            settings.ratio,
            settings.augmentation,
            self.environment.succeeded,
            self.grid,
        )
        return Measured(
            success=success,
            returns=returns,
            augmented_transitions=self.replay.augmented_total(agent.buffers, added, settings.ratio),
            finite=jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(agent.learner)]).all(),
            **held._asdict(),
        )

    def _play(self, key: Key, agent: Agent) -> tuple[Array, Array]:
        """Success and return of episodes without exploration."""
        environment, episodes = self.evaluation_environment, self.evaluation_episodes
        reset_key, step_key = jax.random.split(key)
        states = jax.vmap(environment.reset)(jax.random.split(reset_key, episodes))

        def step(carry: Any, key: Key) -> tuple[Any, None]:
            states, running, success, returns = carry
            observation = jax.vmap(environment.observe)(states)
            action = self.scale.to_environment(self.algorithm.act(agent.learner, observation))
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
        at_random = round_ * self.collect + jnp.arange(self.collect) < self.random_steps

        def step(carry: Any, drawn: Any) -> tuple[Any, Transition]:
            states, episode_steps = carry
            noise, starts, keys, at_random = drawn
            hyper = settings.hyper._replace(
                random_action_probability=jnp.where(at_random, 1, settings.hyper.random_action_probability)
            )
            observation = self._observe(states)
            unit_action = self.algorithm.explore(noise, agent.learner, observation, hyper)
            action = self.scale.to_environment(unit_action)
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
            step, (agent.environment, agent.episode_steps), (noise, starts, step_keys, at_random)
        )
        new = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), new)
        return agent._replace(environment=states, episode_steps=episode_steps), new

    def _learn(self, key: Key, agent: Agent, settings: Settings, round_: Array) -> Learner:
        added = (round_ + 1) * self.collect
        first = self.updates_after(round_)

        sample_key, noise_key = jax.random.split(key)
        # All batches of the round at once: the buffers do not change meanwhile, and small draws cost more.
        batches = self.replay.sample(
            sample_key, agent.buffers, added, settings.ratio, settings.augmentation, self.updates
        )
        rows = self.replay.batch_size + self.replay.augmented_rows
        noise = jax.random.normal(noise_key, (self.updates, *self.algorithm.noise_shape(rows)))

        def update(learner: Learner, drawn: Any) -> tuple[Learner, None]:
            index, transitions, noise = drawn
            batch = self._scaled(Batch(transitions, self.replay.weights))
            return self.algorithm.update(noise, learner, batch, settings.hyper, first + index), None

        learner, _ = jax.lax.scan(update, agent.learner, (jnp.arange(self.updates), batches, noise))
        return learner

    def _scaled(self, batch: Batch) -> Batch:
        action = self.scale.to_unit(batch.transitions.action)
        return batch._replace(transitions=batch.transitions._replace(action=action))

    def _observe(self, states: Any) -> Observation:
        return jax.vmap(self.environment.observe)(states)


def _rows(mask: Array, like: Array) -> Array:
    """A mask over rows, shaped so that it broadcasts against what the rows hold."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))
