"""TD3 as PureJaxRL would write it: environment, replay buffer and updates in one scanned function of a key.

`benchmarks/peers.py` compares a fleet with it. It has no evaluation, no checkpoints and no augmentation. Many
runs are this function under `jax.vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from augury.envs.base import StepsInJax
from augury.transition import Array, Key

DISCOUNT, TARGET_RATE, LEARNING_RATE = 0.99, 0.005, 1e-3
EXPLORATION_NOISE, SMOOTHING_NOISE, SMOOTHING_CLIP, POLICY_DELAY = 0.1, 0.2, 0.5, 2


class Network(nn.Module):
    """A policy or a critic."""

    hidden: Sequence[int]
    outputs: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(self.outputs)(x)


class Buffer(NamedTuple):
    """Transitions, newest over oldest."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array


class Run(NamedTuple):
    """Everything that a run carries from one iteration to the next."""

    key: Key
    states: Any
    steps: Array
    buffer: Buffer
    actor: TrainState
    critics: TrainState
    targets: tuple[Any, Any]


def training(
    environment: StepsInJax,
    *,
    environments: int,
    steps: int,
    random_steps: int,
    batch_size: int,
    hidden: Sequence[int],
) -> Callable[[Key], Run]:
    """A whole run as a function of a key; actions are scaled to [-1, 1]."""
    low, high = jnp.asarray(environment.action_low), jnp.asarray(environment.action_high)
    size = len(environment.action_low)
    policy: Any = Network(hidden, size)
    critic: Any = Network(hidden, 1)
    pair = jax.vmap(critic.apply, in_axes=(0, None))
    observe = jax.vmap(environment.observe)
    reset = jax.vmap(environment.reset)

    def act(parameters: Any, observation: Array) -> Array:
        return jnp.tanh(policy.apply(parameters, observation))

    def values(parameters: Any, observation: Array, action: Array) -> Array:
        return pair(parameters, jnp.concatenate([observation, action], -1))[..., 0]

    def init(key: Key) -> Run:
        key, actor_key, critic_key, reset_key = jax.random.split(key, 4)
        states = reset(jax.random.split(reset_key, environments))
        seen = observe(states)
        actor = policy.init(actor_key, seen)
        both = jnp.concatenate([seen, jnp.zeros((environments, size))], -1)
        critics = jax.vmap(critic.init, in_axes=(0, None))(jax.random.split(critic_key), both)
        numbers = jnp.zeros((steps, seen.shape[-1]))
        buffer = Buffer(numbers, jnp.zeros((steps, size)), jnp.zeros(steps), numbers, jnp.zeros(steps, bool))
        tx = optax.adam(LEARNING_RATE)
        return Run(
            key,
            states,
            jnp.zeros(environments, jnp.int32),
            buffer,
            TrainState.create(apply_fn=policy.apply, params=actor, tx=tx),
            TrainState.create(apply_fn=critic.apply, params=critics, tx=tx),
            (actor, critics),
        )

    def collect(run: Run, count: Array) -> Run:
        key, noise_key, uniform_key, step_key, reset_key = jax.random.split(run.key, 5)
        seen = observe(run.states)
        noise = EXPLORATION_NOISE * jax.random.normal(noise_key, (environments, size))
        uniform = jax.random.uniform(uniform_key, (environments, size), minval=-1.0)
        chosen = jnp.clip(act(run.actor.params, seen) + noise, -1, 1)
        action = jnp.where(count * environments < random_steps, uniform, chosen)
        keys = jax.random.split(step_key, environments)
        states, reward, ended = jax.vmap(environment.step)(
            keys, run.states, low + (action + 1) / 2 * (high - low)
        )
        new = Buffer(seen, action, reward, observe(states), ended)
        at = count * environments % steps
        buffer = jax.tree.map(
            lambda old, row: jax.lax.dynamic_update_slice_in_dim(old, row, at, 0), run.buffer, new
        )
        over = ended | (run.steps + 1 >= environment.horizon)
        starts = reset(jax.random.split(reset_key, environments))
        states = jax.tree.map(
            lambda a, b: jnp.where(over.reshape(-1, *[1] * (b.ndim - 1)), a, b), starts, states
        )
        return run._replace(key=key, states=states, steps=jnp.where(over, 0, run.steps + 1), buffer=buffer)

    def update(run: Run, number: Array, filled: Array) -> Run:
        key, sample_key, noise_key = jax.random.split(run.key, 3)
        rows = jax.random.randint(sample_key, (batch_size,), 0, filled)
        batch = jax.tree.map(lambda values: values[rows], run.buffer)
        noise = SMOOTHING_NOISE * jax.random.normal(noise_key, (batch_size, size))
        noise = jnp.clip(noise, -SMOOTHING_CLIP, SMOOTHING_CLIP)
        following = jnp.clip(act(run.targets[0], batch.next_observation) + noise, -1, 1)
        bootstrap = values(run.targets[1], batch.next_observation, following).min(0)
        target = batch.reward + DISCOUNT * (1 - batch.terminated) * bootstrap

        def critic_loss(parameters: Any) -> Array:
            return ((values(parameters, batch.observation, batch.action) - target) ** 2).mean(-1).sum()

        critics = run.critics.apply_gradients(grads=jax.grad(critic_loss)(run.critics.params))

        def actor_loss(parameters: Any) -> Array:
            return -values(critics.params, batch.observation, act(parameters, batch.observation))[0].mean()

        def delayed() -> tuple[TrainState, tuple[Any, Any]]:
            actor = run.actor.apply_gradients(grads=jax.grad(actor_loss)(run.actor.params))
            targets = optax.incremental_update((actor.params, critics.params), run.targets, TARGET_RATE)
            return actor, targets

        due = number % POLICY_DELAY == POLICY_DELAY - 1
        actor, targets = jax.lax.cond(due, delayed, lambda: (run.actor, run.targets))
        return run._replace(key=key, actor=actor, critics=critics, targets=targets)

    def iteration(run: Run, count: Array) -> tuple[Run, None]:
        run = collect(run, count)
        filled = jnp.minimum((count + 1) * environments, steps)
        learned = jax.lax.cond(
            count * environments >= random_steps,
            lambda: jax.lax.fori_loop(
                0, environments, lambda number, run: update(run, count * environments + number, filled), run
            ),
            lambda: run,
        )
        return learned, None

    return lambda key: jax.lax.scan(iteration, init(key), jnp.arange(steps // environments))[0]
