"""Double DQN (Mnih et al. 2015; van Hasselt et al. 2016): for discrete actions.

for every update, with a batch of (s, a, r, s', terminated):
    a* = argmax Q(s', ·)                                      chosen by the online network
    y  = r + γ (1 - terminated) Q̄(s', a*)                    valued by its target
    descend (Q(s, a) - y)² in Q
    Q̄ follows Q
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import optax

from augury.agents import losses
from augury.agents.base import Hyperparameters, Noise, Parameters, adam_init, adam_step, track
from augury.agents.networks import ActionValues, apply
from augury.replay import Batch
from augury.transition import Array, Key, Observation


class ValueLearner(NamedTuple):
    """The state of DQN."""

    actor: Parameters
    """Of Q: to act is to take its best action."""
    target: Parameters
    """Of Q̄."""
    optimiser: optax.OptState


@dataclass(frozen=True)
class DQN:
    """One network values all actions; the policy is greedy, and ε-greedy while it explores."""

    actions: int
    hidden: tuple[int, ...] = (256, 256)

    discrete: ClassVar[bool] = True

    @property
    def values(self) -> ActionValues:
        return ActionValues(self.hidden, self.actions)

    def noise_shape(self, rows: int) -> tuple[int, ...]:
        return (0,)

    def init(self, key: Key, observation: Observation) -> ValueLearner:
        values = self.values.init(key, observation)
        return ValueLearner(actor=values, target=values, optimiser=adam_init(values))

    def act(self, actor: Parameters, observation: Observation) -> Array:
        return apply(self.values, actor, observation).argmax(-1).astype(jnp.int32)

    def explore(
        self, noise: Noise, actor: Parameters, observation: Observation, hyper: Hyperparameters
    ) -> Array:
        at_random = noise.coin[..., 0] < hyper.random_action_probability
        return jnp.where(at_random, self._uniform(noise), self.act(actor, observation))

    def update(
        self, noise: Array, learner: ValueLearner, batch: Batch, hyper: Hyperparameters, count: Array
    ) -> ValueLearner:
        del noise, count  # nothing is random, nothing is delayed
        data, weights = batch.transitions, jnp.asarray(batch.weights)
        best = self.act(learner.actor, data.next_observation)
        next_value = _of(apply(self.values, learner.target, data.next_observation), best)
        target = losses.bootstrapped_target(data.reward, data.terminated, hyper.discount, next_value)

        def loss(parameters: Parameters) -> Array:
            values = _of(apply(self.values, parameters, data.observation), data.action)
            return losses.action_value_loss(values, target, weights)

        values, optimiser = adam_step(
            jax.grad(loss)(learner.actor), learner.optimiser, learner.actor, hyper.learning_rate
        )
        return ValueLearner(values, track(learner.target, values, hyper.target_rate), optimiser)

    def _uniform(self, noise: Noise) -> Array:
        """Any action, from a number that is uniform in [-1, 1)."""
        action = jnp.floor((noise.uniform[..., 0] + 1) / 2 * self.actions).astype(jnp.int32)
        return jnp.minimum(action, self.actions - 1)  # should the product be rounded up


def _of(values: Array, action: Array) -> Array:
    """The value of each row's action."""
    return jnp.take_along_axis(values, action[:, None], axis=-1)[:, 0]
