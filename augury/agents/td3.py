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
from typing import ClassVar

import jax
import jax.numpy as jnp

from augury.agents import losses
from augury.agents.base import Hyperparameters
from augury.agents.deterministic import (
    DeterministicActorCritic,
    DeterministicLearner,
    ascend_actor,
    descend_critic,
    follow,
)
from augury.agents.networks import apply
from augury.replay import Batch
from augury.transition import Array


@dataclass(frozen=True)
class TD3(DeterministicActorCritic):
    """Two critics, smoothed targets, a delayed policy."""

    policy_delay: int = 2

    critics: ClassVar[int] = 2

    def noise_shape(self, rows: int) -> tuple[int, ...]:
        return (rows, self.actions)

    def update(
        self, noise: Array, learner: DeterministicLearner, batch: Batch, hyper: Hyperparameters, count: Array
    ) -> DeterministicLearner:
        data = batch.transitions
        noise = jnp.clip(hyper.smoothing_noise * noise, -hyper.smoothing_clip, hyper.smoothing_clip)
        next_action = jnp.clip(apply(self.actor, learner.target_actor, data.next_observation) + noise, -1, 1)
        next_values = apply(self.critic, learner.target_critic, data.next_observation, next_action)
        target = losses.bootstrapped_target(data.reward, data.terminated, hyper.discount, next_values.min(0))
        learner = descend_critic(self.critic, learner, batch, target, hyper)

        def delayed(learner: DeterministicLearner) -> DeterministicLearner:
            learner = ascend_actor(self.actor, self.critic, learner, batch, hyper)
            return follow(learner, hyper)

        due = (count + 1) % self.policy_delay == 0
        updated: DeterministicLearner = jax.lax.cond(due, delayed, lambda unchanged: unchanged, learner)
        return updated
