"""TD3 (Fujimoto et al. 2018).

for every update, with a batch of (s, a, r, s', terminated):
    a' = π̄(s') + clipped Gaussian noise                       smoothing
    y  = r + γ (1 - terminated) min(Q̄₁, Q̄₂)(s', a')          clipped double Q
    descend (Q₁(s, a) - y)² + (Q₂(s, a) - y)²
    at every second update:                                   delay
        ascend Q₁(s, π(s)) in π
        Q̄, π̄ follow Q, π
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from augury.agents import losses
from augury.agents.base import Hyperparameters, Noise, gaussian_exploration
from augury.agents.ddpg import (
    DeterministicLearner,
    ascend_actor,
    descend_critic,
    deterministic_learner,
    follow,
)
from augury.agents.networks import Actor, Critics, apply
from augury.replay import Batch
from augury.transition import Array, Key, Observation


@dataclass(frozen=True)
class TD3:
    """Two critics, smoothed targets, a delayed policy."""

    actions: int
    hidden: tuple[int, ...] = (256, 256)
    policy_delay: int = 2

    @property
    def actor(self) -> Actor:
        return Actor(self.hidden, self.actions)

    @property
    def critic(self) -> Critics:
        return Critics(self.hidden, count=2)

    def noise_shape(self, rows: int) -> tuple[int, ...]:
        return (rows, self.actions)

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
        data, weights = batch.transitions, jnp.asarray(batch.weights)
        noise = jnp.clip(hyper.smoothing_noise * noise, -hyper.smoothing_clip, hyper.smoothing_clip)
        next_action = jnp.clip(apply(self.actor, learner.target_actor, data.next_observation) + noise, -1, 1)
        next_values = apply(self.critic, learner.target_critic, data.next_observation, next_action)
        target = losses.bootstrapped_target(data.reward, data.terminated, hyper.discount, next_values.min(0))
        learner = descend_critic(self.critic, learner, batch, target, hyper)

        def delayed(learner: DeterministicLearner) -> DeterministicLearner:
            learner = ascend_actor(self.actor, self.critic, learner, data.observation, weights, hyper)
            return follow(learner, hyper)

        due = (count + 1) % self.policy_delay == 0
        updated: DeterministicLearner = jax.lax.cond(due, delayed, lambda unchanged: unchanged, learner)
        return updated
