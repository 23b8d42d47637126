"""What training one agent is made of, wherever its environments run: explore, learn, look at the buffers.

    for every round:
        take `collect` steps in each environment          explore, step, reset
        store them                                        replay.add
        make `updates` gradient steps                     replay.sample, algorithm.update

Where an agent has k environments, a round is k times as long in steps and in updates, so ratios stay as they
are. Policy data adds further environments, whose steps do not count as the agent's.

The number of rounds done is the only clock: steps, updates and random keys all follow from it. It is the
same for every agent, so what depends on it alone (a delayed policy update, say) is computed only where due.

`JaxProgram` does all of that inside one compiled function; `HostProgram` leaves `step` and `reset` to a
simulator on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from augury.agents import ActionScale, Algorithm, Hyperparameters, Learner, Noise, Parameters, Unscaled
from augury.augmentations import Augmentation
from augury.envs import Environment
from augury.envs.actions import blank_action
from augury.replay import Batch, Buffers, Replay, survey
from augury.replay.coverage import Grid
from augury.transition import Array, Key, Observation


class Agent(NamedTuple):
    """Everything that training changes."""

    learner: Learner
    buffers: Buffers
    environment: Any
    """States of the agent's environments; where these run on the host, those of all agents together."""
    episode_steps: Array | None
    """Counted here for environments written in JAX only."""


class Settings(NamedTuple):
    """Everything about an agent that may differ inside one fleet."""

    key: Key
    hyper: Hyperparameters
    ratio: Array
    """m."""
    augmentation: Augmentation | None
    environment: Any = None
    """The agent's own, where environments differ in their numbers."""
    evaluation_environment: Any = None


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

    environment: Any
    """`StepsInJax` or `StepsOnHost`, as the subclass says."""
    evaluation_environment: Any
    algorithm: Algorithm
    replay: Replay
    grid: Grid
    """Over which coverage is measured."""
    counted: int
    """Environments of an agent whose steps are counted."""
    collect: int
    """Steps in each environment between updates."""
    updates: int
    """Gradient steps after each collection."""
    random_steps: int
    """Steps with uniform actions before the first update."""
    evaluation_episodes: int

    @property
    def scale(self) -> ActionScale | Unscaled:
        if self.algorithm.discrete:
            return Unscaled()
        return ActionScale(self.environment.action_low, self.environment.action_high)

    @property
    def action_width(self) -> int:
        """Numbers in an action."""
        return blank_action(self.environment).size

    @property
    def round_steps(self) -> int:
        """Steps of an agent in a round, as they are counted."""
        return self.collect * self.counted

    @property
    def first_update_round(self) -> int:
        return self.random_steps // self.round_steps

    def updates_after(self, rounds: Array) -> Array:
        """Gradient steps made in that many rounds."""
        return jnp.maximum(rounds - self.first_update_round, 0) * self.updates

    def keys(self, settings: Settings, round_: Array) -> tuple[Key, Key]:
        """The keys of a round: for collecting and for learning."""
        collect_key, learn_key = jax.random.split(jax.random.fold_in(settings.key, 1 + 2 * round_))
        return collect_key, learn_key

    def evaluation_keys(self, settings: Settings, rounds: Array) -> tuple[Key, Key]:
        """The keys of an evaluation's episodes and survey: its own, so that it does not affect training."""
        play_key, survey_key = jax.random.split(jax.random.fold_in(settings.key, 2 + 2 * rounds))
        return play_key, survey_key

    def explore(
        self, noise: Noise, actor: Parameters, observation: Observation, settings: Settings, steps: Array
    ) -> Array:
        """Actions after so many steps in each environment, in the environment's units; at first uniform."""
        at_random = steps * self.counted < self.random_steps
        hyper = settings.hyper._replace(
            random_action_probability=jnp.where(at_random, 1, settings.hyper.random_action_probability)
        )
        return self.scale.to_environment(self.algorithm.explore(noise, actor, observation, hyper))

    def act(self, actor: Parameters, observation: Observation) -> Array:
        """Actions without exploration, as evaluated, in the environment's units."""
        return self.scale.to_environment(self.algorithm.act(actor, observation))

    def learn(
        self, key: Key, learner: Learner, buffers: Buffers, settings: Settings, round_: Array
    ) -> Learner:
        """The updates of a round."""
        added = (round_ + 1) * self.collect
        first = self.updates_after(round_)

        sample_key, noise_key = jax.random.split(key)
        # All batches of the round at once: the buffers do not change meanwhile, and small draws cost more.
        batches = self.replay.sample(
            sample_key, buffers, added, settings.ratio, settings.augmentation, self.updates
        )
        rows = self.replay.batch_size + self.replay.augmented_rows
        noise = jax.random.normal(noise_key, (self.updates, *self.algorithm.noise_shape(rows)))

        def update(learner: Learner, drawn: Any) -> tuple[Learner, None]:
            index, transitions, noise = drawn
            batch = self._scaled(Batch(transitions, self.replay.weights))
            return self.algorithm.update(noise, learner, batch, settings.hyper, first + index), None

        learner, _ = jax.lax.scan(update, learner, (jnp.arange(self.updates), batches, noise))
        return learner

    def look(self, key: Key, learner: Learner, buffers: Buffers, settings: Settings, rounds: Array) -> Any:
        """The fields of `Measured` that do not come from episodes, by name."""
        added = rounds * self.collect
        held = survey(
            key,
            self.replay,
            buffers,
            added,
            settings.ratio,
            settings.augmentation,
            self.environment.succeeded,
            self.grid,
        )
        return {
            "augmented_transitions": self.replay.augmented_total(buffers, added, settings.ratio),
            "finite": jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(learner)]).all(),
            **held._asdict(),
        }

    def _scaled(self, batch: Batch) -> Batch:
        action = self.scale.to_unit(batch.transitions.action)
        return batch._replace(transitions=batch.transitions._replace(action=action))


def blank_observation(environment: Environment) -> Observation:
    """What an observation of the environment looks like: an array, or a dict of arrays."""
    return jax.tree.map(jnp.zeros_like, environment.observation_low)
