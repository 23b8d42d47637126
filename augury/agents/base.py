"""What every algorithm is made of: its numbers, its interface, and the steps all of them take."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from augury.replay import Batch
from augury.transition import Array, Key, Observation

Parameters = Any
"""The parameters of networks: any pytree of arrays."""
Learner = Any
"""An algorithm's whole state: parameters, targets, optimisers. Its `actor` is what acts."""


class Hyperparameters(NamedTuple):
    """Numbers that may differ from agent to agent of one fleet. A shape never depends on them."""

    learning_rate: Array
    discount: Array
    target_rate: Array
    """τ of θ̄ ← (1 - τ) θ̄ + τ θ."""
    exploration_noise: Array
    """Standard deviation of Gaussian noise on actions scaled to [-1, 1]."""
    random_action_probability: Array
    """Chance that a step's action is uniform instead: DQN's ε."""
    smoothing_noise: Array
    """TD3: standard deviation of the noise on target actions."""
    smoothing_clip: Array
    """TD3: largest such noise."""


class Noise(NamedTuple):
    """The randomness of exploration, drawn ahead for many steps at once."""

    gaussian: Array
    """Added to the policy's action."""
    policy: Array
    """Moves a stochastic policy's own action."""
    uniform: Array
    """The action taken at random instead."""
    coin: Array
    """Decides whether it is."""

    @classmethod
    def draw(cls, key: Key, shape: tuple[int, ...], actions: int) -> Noise:
        gaussian_key, policy_key, uniform_key, coin_key = jax.random.split(key, 4)
        return cls(
            gaussian=jax.random.normal(gaussian_key, (*shape, actions)),
            policy=jax.random.normal(policy_key, (*shape, actions)),
            uniform=jax.random.uniform(uniform_key, (*shape, actions), minval=-1),
            coin=jax.random.uniform(coin_key, (*shape, 1)),
        )


class Algorithm(Protocol):
    """Pure functions of a learner's state.

    On this side of the interface continuous actions are scaled to [-1, 1], and discrete ones are int32.
    """

    discrete: ClassVar[bool]
    """Which of both it acts with."""

    def init(self, key: Key, observation: Observation) -> Learner: ...

    def act(self, actor: Parameters, observation: Observation) -> Array:
        """The action without exploration, as evaluated; `actor` is the learner's."""

    def explore(
        self, noise: Noise, actor: Parameters, observation: Observation, hyper: Hyperparameters
    ) -> Array:
        """The action taken while collecting experience."""

    def noise_shape(self, rows: int) -> tuple[int, ...]:
        """How many standard Gaussian numbers one update on that many rows consumes."""

    def update(
        self, noise: Array, learner: Learner, batch: Batch, hyper: Hyperparameters, count: Array
    ) -> Learner:
        """One gradient step; `count` updates were made before. Actions of the batch are scaled."""


class ActionScale(NamedTuple):
    """Between the environment's units and [-1, 1]."""

    low: npt.NDArray[np.float32]
    high: npt.NDArray[np.float32]

    def to_unit(self, action: Array) -> Array:
        return 2 * (action - self.low) / (self.high - self.low) - 1

    def to_environment(self, action: Array) -> Array:
        return (action + 1) * (0.5 * (self.high - self.low)) + self.low


class Unscaled(NamedTuple):
    """Discrete actions are the same numbers on both sides."""

    def to_unit(self, action: Array) -> Array:
        return action

    def to_environment(self, action: Array) -> Array:
        return action


def gaussian_exploration(noise: Noise, action: Array, hyper: Hyperparameters) -> Array:
    """Add Gaussian noise, or with the given probability take a uniform action instead."""
    noisy = jnp.clip(action + hyper.exploration_noise * noise.gaussian, -1, 1)
    return jnp.where(noise.coin < hyper.random_action_probability, noise.uniform, noisy)


def adam_init(parameters: Parameters) -> optax.OptState:
    """The state of a fresh Adam."""
    return _ADAM.init(parameters)


def adam_step(
    gradients: Parameters, state: optax.OptState, parameters: Parameters, learning_rate: Array
) -> tuple[Parameters, optax.OptState]:
    """θ ← θ - lr · Adam(∇)."""
    directions, state = _ADAM.update(gradients, state)
    return optax.apply_updates(parameters, jax.tree.map(lambda d: -learning_rate * d, directions)), state


def track(target: Parameters, online: Parameters, rate: Array) -> Parameters:
    """θ̄ ← (1 - τ) θ̄ + τ θ."""
    return optax.incremental_update(online, target, rate)


_ADAM = optax.scale_by_adam()
