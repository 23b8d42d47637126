"""DDPG (Lillicrap et al. 2016).

for every update, with a batch of (s, a, r, s', terminated):
    y = r + γ (1 - terminated) Q̄(s', π̄(s'))
    descend (Q(s, a) - y)² in Q
    ascend Q(s, π(s)) in π
    Q̄, π̄ follow Q, π
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
class DDPG(DeterministicActorCritic):
    """One critic, targets that follow at every update."""

    critics: ClassVar[int] = 1

    def noise_shape(self, rows: int) -> tuple[int, ...]:
        return (0,)

    def update(
        self, noise: Array, learner: DeterministicLearner, batch: Batch, hyper: Hyperparameters, count: Array
    ) -> DeterministicLearner:
        del noise, count  # nothing is random, nothing is delayed
        data = batch.transitions
        next_action = apply(self.actor, learner.target_actor, data.next_observation)
        next_value = apply(self.critic, learner.target_critic, data.next_observation, next_action)[0]
        target = losses.bootstrapped_target(data.reward, data.terminated, hyper.discount, next_value)
        learner = descend_critic(self.critic, learner, batch, target, hyper)
        learner = ascend_actor(self.actor, self.critic, learner, batch, hyper)
        return follow(learner, hyper)
