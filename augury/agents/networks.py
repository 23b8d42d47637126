"""Networks: multilayer perceptrons with ReLU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from flax import linen as nn

from augury.transition import Array, Observation, seen

_INITIAL_WEIGHTS = nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform", in_axis=-1, out_axis=-2)
"""Uniform in ±1/√(inputs), PyTorch's default and so the paper's: larger weights learn Goal2D later."""


def apply(network: nn.Module, parameters: Any, *inputs: Any) -> Any:
    """What a network makes of its inputs; Flax's own `apply` cannot say of what type that is."""
    return network.apply(parameters, *inputs)


class Perceptron(nn.Module):
    """Hidden ReLU layers and a linear one, of a vector or of rows of vectors.

    Inside, features come first and rows last: on a CPU that makes a TD3 update 1.06 times as fast
    (benchmarks/layout.py).
    """

    hidden: Sequence[int]
    outputs: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        columns = x.T if x.ndim == 2 else x[:, None]
        for index, width in enumerate((*self.hidden, self.outputs)):
            columns = nn.relu(columns) if index else columns
            weights = self.param(f"weights_{index}", _INITIAL_WEIGHTS, (width, columns.shape[0]))
            bias = self.param(f"bias_{index}", nn.initializers.zeros, (width, 1))
            columns = weights @ columns + bias
        return columns.T if x.ndim == 2 else columns[:, 0]


class Actor(nn.Module):
    """A deterministic policy: the action of an observation, in [-1, 1]."""

    hidden: Sequence[int]
    actions: int

    @nn.compact
    def __call__(self, observation: Observation) -> Array:
        return nn.tanh(Perceptron(self.hidden, self.actions)(seen(observation)))


class GaussianActor(nn.Module):
    """A stochastic policy: mean and log standard deviation of the action before tanh."""

    hidden: Sequence[int]
    actions: int
    log_std_range: tuple[float, float] = (-20.0, 2.0)

    @nn.compact
    def __call__(self, observation: Observation) -> tuple[Array, Array]:
        outputs = Perceptron(self.hidden, 2 * self.actions)(seen(observation))
        mean, log_std = jnp.split(outputs, 2, -1)
        return mean, jnp.clip(log_std, *self.log_std_range)


class ActionValues(nn.Module):
    """The value of every discrete action."""

    hidden: Sequence[int]
    actions: int

    @nn.compact
    def __call__(self, observation: Observation) -> Array:
        values: Array = Perceptron(self.hidden, self.actions)(seen(observation))
        return values


class Critics(nn.Module):
    """Several action values at once; their axis comes first."""

    hidden: Sequence[int]
    count: int

    @nn.compact
    def __call__(self, observation: Observation, action: Array) -> Array:
        ensemble = nn.vmap(
            Perceptron,
            in_axes=None,
            out_axes=0,
            axis_size=self.count,
            variable_axes={"params": 0},
            split_rngs={"params": True},
        )
        values: Array = ensemble(self.hidden, 1)(jnp.concatenate([seen(observation), action], -1))
        return values[..., 0]
