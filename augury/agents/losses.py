"""The losses, each for a batch and naming its equation. `weights` is the share of each row in the mean."""

from __future__ import annotations

import jax.numpy as jnp

from augury.transition import Array


def weighted_mean(values: Array, weights: Array) -> Array:
    """Mean over the rows (last axis) of a batch."""
    return (values * weights).sum(-1) / weights.sum()


def bootstrapped_target(reward: Array, terminated: Array, discount: Array, next_value: Array) -> Array:
    """The target r + γ (1 - terminated) V(s'): truncated transitions bootstrap, terminated ones do not."""
    return reward + discount * jnp.where(terminated, 0, next_value)


def critic_loss(values: Array, target: Array, weights: Array) -> Array:
    """Σ over critics of E[(Q(s, a) - y)²] (Lillicrap et al. 2016, eq. 4); values are (critics, rows)."""
    return weighted_mean((values - target) ** 2, weights).sum()


def action_value_loss(values: Array, target: Array, weights: Array) -> Array:
    """E[(Q(s, a) - y)²] (Mnih et al. 2015, Methods), without their clipping of the error.

    Clipped, the few terminated transitions, whose errors are large, count no more than the many others:
    where nothing else bounds the values, as on CartPole, they grow without end.
    """
    return weighted_mean((values - target) ** 2, weights)


def deterministic_policy_loss(values: Array, weights: Array) -> Array:
    """-E[Q(s, π(s))], whose gradient is the deterministic policy gradient (Silver et al. 2014, eq. 9)."""
    return -weighted_mean(values, weights)


def soft_policy_loss(log_probability: Array, values: Array, temperature: Array, weights: Array) -> Array:
    """E[α log π(a|s) - min Q(s, a)] (Haarnoja et al. 2018b, eq. 7); values are (critics, rows)."""
    return weighted_mean(temperature * log_probability - values.min(0), weights)


def temperature_loss(
    log_temperature: Array, log_probability: Array, target_entropy: float, weights: Array
) -> Array:
    """-α E[log π(a|s) + H̄] (Haarnoja et al. 2018b, eq. 18): α grows while the entropy is below H̄."""
    return -jnp.exp(log_temperature) * weighted_mean(log_probability + target_entropy, weights)
