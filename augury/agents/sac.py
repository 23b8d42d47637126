"""SAC with a learned temperature (Haarnoja et al. 2018b).

for every update, with a batch of (s, a, r, s', terminated):
    a' ~ π(s')
    y  = r + γ (1 - terminated) (min(Q̄₁, Q̄₂)(s', a') - α log π(a'|s'))
    descend (Q₁(s, a) - y)² + (Q₂(s, a) - y)²
    descend α log π(ã|s) - min(Q₁, Q₂)(s, ã) in π, with ã ~ π(s)
    descend -α (log π(ã|s) + H̄) in log α, with H̄ = -(number of actions)
    Q̄ follows Q
"""

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
from augury.agents.networks import Critics, GaussianActor, apply
from augury.replay import Batch
from augury.transition import Array, Key, Observation


class SoftLearner(NamedTuple):
    """The state of SAC."""

    actor: Parameters
    critic: Parameters
    target_critic: Parameters
    log_temperature: Array
    actor_optimiser: optax.OptState
    critic_optimiser: optax.OptState
    temperature_optimiser: optax.OptState


@dataclass(frozen=True)
class SAC:
    """Two critics, a stochastic policy, a temperature that keeps its entropy."""

    actions: int
    hidden: tuple[int, ...] = (256, 256)

    discrete: ClassVar[bool] = False

    @property
    def actor(self) -> GaussianActor:
        return GaussianActor(self.hidden, self.actions)

    @property
    def critic(self) -> Critics:
        return Critics(self.hidden, count=2)

    @property
    def target_entropy(self) -> float:
        return -float(self.actions)

    def noise_shape(self, rows: int) -> tuple[int, ...]:
        return (2, rows, self.actions)

    def init(self, key: Key, observation: Observation) -> SoftLearner:
        actor_key, critic_key = jax.random.split(key)
        actor = self.actor.init(actor_key, observation)
        critic = self.critic.init(critic_key, observation, jnp.zeros(self.actions))
        log_temperature = jnp.float32(0)
        return SoftLearner(
            actor=actor,
            critic=critic,
            target_critic=critic,
            log_temperature=log_temperature,
            actor_optimiser=adam_init(actor),
            critic_optimiser=adam_init(critic),
            temperature_optimiser=adam_init(log_temperature),
        )

    def act(self, actor: Parameters, observation: Observation) -> Array:
        return jnp.tanh(apply(self.actor, actor, observation)[0])

    def explore(
        self, noise: Noise, actor: Parameters, observation: Observation, hyper: Hyperparameters
    ) -> Array:
        action, _ = self.sample(noise.policy, actor, observation)
        return gaussian_exploration(noise, action, hyper)

    def sample(self, noise: Array, actor: Parameters, observation: Observation) -> tuple[Array, Array]:
        """The action that standard Gaussian noise picks, and the logarithm of its probability density."""
        mean, log_std = apply(self.actor, actor, observation)
        before_tanh = mean + jnp.exp(log_std) * noise
        gaussian = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
        # log(1 - tanh²(u)) in a form that does not underflow.
        jacobian = 2 * (jnp.log(2.0) - before_tanh - jax.nn.softplus(-2 * before_tanh))
        return jnp.tanh(before_tanh), (gaussian - jacobian).sum(-1)

    def update(
        self, noise: Array, learner: SoftLearner, batch: Batch, hyper: Hyperparameters, count: Array
    ) -> SoftLearner:
        del count  # nothing is delayed
        data, weights = batch.transitions, jnp.asarray(batch.weights)
        temperature = jnp.exp(learner.log_temperature)
        rate = hyper.learning_rate

        next_action, next_log_probability = self.sample(noise[0], learner.actor, data.next_observation)
        next_values = apply(self.critic, learner.target_critic, data.next_observation, next_action)
        soft_value = next_values.min(0) - temperature * next_log_probability
        target = losses.bootstrapped_target(data.reward, data.terminated, hyper.discount, soft_value)

        def critic_loss(parameters: Parameters) -> Array:
            values = apply(self.critic, parameters, data.observation, data.action)
            return losses.critic_loss(values, target, weights)

        critic, critic_optimiser = adam_step(
            jax.grad(critic_loss)(learner.critic), learner.critic_optimiser, learner.critic, rate
        )

        def policy_loss(parameters: Parameters) -> tuple[Array, Array]:
            action, log_probability = self.sample(noise[1], parameters, data.observation)
            values = apply(self.critic, critic, data.observation, action)
            return losses.soft_policy_loss(log_probability, values, temperature, weights), log_probability

        gradients, log_probability = jax.grad(policy_loss, has_aux=True)(learner.actor)
        actor, actor_optimiser = adam_step(gradients, learner.actor_optimiser, learner.actor, rate)

        gradient = jax.grad(losses.temperature_loss)(
            learner.log_temperature, log_probability, self.target_entropy, weights
        )
        log_temperature, temperature_optimiser = adam_step(
            gradient, learner.temperature_optimiser, learner.log_temperature, rate
        )
        return SoftLearner(
            actor=actor,
            critic=critic,
            target_critic=track(learner.target_critic, critic, hyper.target_rate),
            log_temperature=log_temperature,
            actor_optimiser=actor_optimiser,
            critic_optimiser=critic_optimiser,
            temperature_optimiser=temperature_optimiser,
        )
