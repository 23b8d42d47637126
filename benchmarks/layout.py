"""Why networks keep features first: a TD3 update on 256 rows with either layout, on one core.

    python benchmarks/layout.py

The layouts take turns; compare them within one run.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from augury import Transition
from augury.agents import TD3, Hyperparameters, networks
from augury.replay import Batch

ROWS, UPDATES, REPEATS = 256, 200, 9


class RowsFirst(nn.Module):
    """The usual perceptron, of Flax's own dense layers."""

    hidden: Sequence[int]
    outputs: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(self.outputs)(x)


def updates_with(perceptron: type[nn.Module]) -> Callable[[], float]:
    """A function that makes some updates and returns the microseconds of one."""
    networks.Perceptron = perceptron  # type: ignore[assignment, misc]
    algorithm = TD3(actions=2, hidden=(64, 64))
    learner = algorithm.init(jax.random.key(0), jnp.zeros(4))
    observation, following = jax.random.normal(jax.random.key(1), (2, ROWS, 4))
    none = jnp.zeros(ROWS, bool)
    data = Transition(observation, following[:, :2], observation[:, 0], following, none, none, {})
    batch = Batch(data, np.ones(ROWS, np.float32))
    hyper = Hyperparameters(*map(jnp.float32, (1e-3, 0.99, 0.005, 0.1, 0, 0.2, 0.5)))
    noise = jax.random.normal(jax.random.key(2), algorithm.noise_shape(ROWS))
    many = jax.jit(
        lambda learner: jax.lax.fori_loop(
            0, UPDATES, lambda count, learner: algorithm.update(noise, learner, batch, hyper, count), learner
        )
    )
    jax.block_until_ready(many(learner))

    def timed() -> float:
        began = time.perf_counter()
        jax.block_until_ready(many(learner))
        return (time.perf_counter() - began) / UPDATES * 1e6

    return timed


def main() -> None:
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"  # read when JAX first computes
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    features_first = networks.Perceptron
    layouts = {"rows first": updates_with(RowsFirst), "features first": updates_with(features_first)}
    times: dict[str, list[float]] = {name: [] for name in layouts}
    for _ in range(REPEATS):
        for name, timed in layouts.items():
            times[name].append(timed())
    ratio = statistics.median(a / b for a, b in zip(*times.values(), strict=True))
    for name, values in times.items():
        print(f"{name:16s}{statistics.median(values):8.0f} µs per update")
    print(f"features first is {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
