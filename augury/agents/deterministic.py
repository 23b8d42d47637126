"""What algorithms with a deterministic policy share: state, actions, and the steps of an update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

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
class DeterministicActorCritic:
    """A deterministic policy that explores with noise, and one or more critics."""

    actions: int
    hidden: tuple[int, ...] = (256, 256)

    critics: ClassVar[int]
    discrete: ClassVar[bool] = False

    @property
    def actor(self) -> Actor:
        return Actor(self.hidden, self.actions)

    @property
    def critic(self) -> Critics:
        return Critics(self.hidden, self.critics)

    def init(self, key: Key, observation: Observation) -> DeterministicLearner:
        actor_key, critic_key = jax.random.split(key)
        actor = self.actor.init(actor_key, observation)
        critic = self.critic.init(critic_key, observation, jnp.zeros(self.actions))
        return DeterministicLearner(
            actor=actor,
            critic=critic,
            target_actor=actor,
            target_critic=critic,
            actor_optimiser=adam_init(actor),
            critic_optimiser=adam_init(critic),
        )

    def act(self, actor: Parameters, observation: Observation) -> Array:
        return apply(self.actor, actor, observation)

    def explore(
        self, noise: Noise, actor: Parameters, observation: Observation, hyper: Hyperparameters
    ) -> Array:
        return gaussian_exploration(noise, self.act(actor, observation), hyper)


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
    batch: Batch,
    hyper: Hyperparameters,
) -> DeterministicLearner:
    """One step of the policy up the first critic."""
    observation = batch.transitions.observation
    first = Critics(critic.hidden, count=1)
    first_critic = jax.tree.map(lambda p: p[:1], learner.critic)

    def loss(parameters: Parameters) -> Array:
        values = apply(first, first_critic, observation, apply(actor, parameters, observation))
        return losses.deterministic_policy_loss(values[0], jnp.asarray(batch.weights))

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
