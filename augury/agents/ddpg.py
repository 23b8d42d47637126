"""DDPG (Lillicrap et al. 2016).

for every update, with a batch of (s, a, r, s', terminated):
    y = r + γ (1 - terminated) Q̄(s', π̄(s'))
    descend (Q(s, a) - y)² in Q
    ascend Q(s, π(s)) in π
    Q̄, π̄ follow Q, π
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from augury.agents import losses
from augury.agents.base import (
    Hyperparameters,
    Noise,
    Parameters,
    adam_init,
    adam_step,
    gaussian_exploration,
    track,
)
from augury.agents.networks import Actor, Critics, apply
from augury.replay import Batch
from augury.transition import Array, Key, Observation


class DeterministicLearner(NamedTuple):
    """The state of an actor-critic with a deterministic policy."""

    actor: Parameters
    critic: Parameters
    target_actor: Parameters
    target_critic: Parameters
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState


@dataclass(frozen=True)
class DDPG:
    """One critic, targets that follow at every update."""

    actions: int
    hidden: tuple[int, ...] = (256, 256, 256)

    @property
    def actor(self) -> Actor:
        return Actor(self.hidden, self.actions)

    @property
    def critic(self) -> Critics:
        return Critics(self.hidden, count=1)

    def noise_shape(self, rows: int) -> tuple[int, ...]:
        return (0,)

    def init(self, key: Key, observation: Observation) -> DeterministicLearner:
        return deterministic_learner(self.actor, self.critic, key, observation)

    def act(self, learner: DeterministicLearner, observation: Observation) -> Array:
        return apply(self.actor, learner.actor, observation)

    def explore(
        self, noise: Noise, learner: DeterministicLearner, observation: Observation, hyper: Hyperparameters
    ) -> Array:
        return gaussian_exploration(noise, self.act(learner, observation), hyper)

    def update(
        self, noise: Array, learner: DeterministicLearner, batch: Batch, hyper: Hyperparameters, count: Array
    ) -> DeterministicLearner:
        del noise, count  # nothing is random, nothing is delayed
        data, weights = batch.transitions, jnp.asarray(batch.weights)
        next_action = apply(self.actor, learner.target_actor, data.next_observation)
        next_value = apply(self.critic, learner.target_critic, data.next_observation, next_action)[0]
        target = losses.bootstrapped_target(data.reward, data.terminated, hyper.discount, next_value)
        learner = descend_critic(self.critic, learner, batch, target, hyper)
        learner = ascend_actor(self.actor, self.critic, learner, data.observation, weights, hyper)
        return follow(learner, hyper)


def deterministic_learner(
    actor: Actor, critic: Critics, key: Key, observation: Observation
) -> DeterministicLearner:
    """A fresh learner; its targets start as copies."""
    actor_key, critic_key = jax.random.split(key)
    actor_parameters = actor.init(actor_key, observation)
    critic_parameters = critic.init(critic_key, observation, jnp.zeros(actor.actions))
    return DeterministicLearner(
        actor=actor_parameters,
        critic=critic_parameters,
        target_actor=actor_parameters,
        target_critic=critic_parameters,
        actor_optimiser=adam_init(actor_parameters),
        critic_optimiser=adam_init(critic_parameters),
    )


def descend_critic(
    critic: Critics, learner: DeterministicLearner, batch: Batch, target: Array, hyper: Hyperparameters
) -> DeterministicLearner:
    """One step of every critic towards the same target."""

    def loss(parameters: Parameters) -> Array:
        values = apply(critic, parameters, batch.transitions.observation, batch.transitions.action)
        return losses.critic_loss(values, target, jnp.asarray(batch.weights))

    parameters, optimiser = adam_step(
        jax.grad(loss)(learner.critic), learner.critic_optimiser, learner.critic, hyper.learning_rate
    )
    return learner._replace(critic=parameters, critic_optimiser=optimiser)


def ascend_actor(
    actor: Actor,
    critic: Critics,
    learner: DeterministicLearner,
    observation: Observation,
    weights: Array,
    hyper: Hyperparameters,
) -> DeterministicLearner:
    """One step of the policy up the first critic."""
    first = Critics(critic.hidden, count=1)
    first_critic = jax.tree.map(lambda p: p[:1], learner.critic)

    def loss(parameters: Parameters) -> Array:
        values = apply(first, first_critic, observation, apply(actor, parameters, observation))
        return losses.deterministic_policy_loss(values[0], weights)

    parameters, optimiser = adam_step(
        jax.grad(loss)(learner.actor), learner.actor_optimiser, learner.actor, hyper.learning_rate
    )
    return learner._replace(actor=parameters, actor_optimiser=optimiser)


def follow(learner: DeterministicLearner, hyper: Hyperparameters) -> DeterministicLearner:
    """Move both targets."""
    return learner._replace(
        target_actor=track(learner.target_actor, learner.actor, hyper.target_rate),
        target_critic=track(learner.target_critic, learner.critic, hyper.target_rate),
    )
