"""DQN's update, number by number, and how it explores."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from augury import Transition
from augury.agents import DQN, Hyperparameters, Noise
from augury.agents.dqn import ValueLearner
from augury.replay import Batch

ROWS, DISCOUNT, RATE, TAU = 32, 0.9, 3e-3, 0.05
HYPER = Hyperparameters(*map(jnp.float32, (RATE, DISCOUNT, TAU, 0.1, 0.25, 0.2, 0.5)))


def transitions(key):
    """Anything, of three actions."""
    keys = jax.random.split(key, 5)
    return Transition(
        observation=jax.random.normal(keys[0], (ROWS, 2)),
        action=jax.random.randint(keys[1], (ROWS,), 0, 3),
        reward=jax.random.normal(keys[2], (ROWS,)),
        next_observation=jax.random.normal(keys[3], (ROWS, 2)),
        terminated=jax.random.bernoulli(keys[4], 0.3, (ROWS,)),
        truncated=jnp.zeros(ROWS, bool),
        extras={},
    )


def layers(parameters):
    """Weights and biases of the one hidden layer and of the last, as NumPy arrays."""
    return [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(parameters)]  # biases, then weights


def values_of(parameters, observation):
    bias, last_bias, weights, last_weights = layers(parameters)
    hidden = np.maximum(weights @ np.asarray(observation, np.float64).T + bias, 0)
    return (last_weights @ hidden + last_bias).T, hidden


def by_hand(learner, batch):
    """The learner after one update, with the gradient written out; Adam is Optax's."""
    data, rows = batch.transitions, np.arange(ROWS)
    best = values_of(learner.actor, data.next_observation)[0].argmax(1)
    following = values_of(learner.target, data.next_observation)[0][rows, best]
    target = np.asarray(data.reward) + DISCOUNT * np.where(data.terminated, 0, following)

    values, hidden = values_of(learner.actor, data.observation)
    error = values[rows, data.action] - target
    slope = np.zeros_like(values)
    slope[rows, data.action] = 2 * error * batch.weights / batch.weights.sum()
    last_weights = layers(learner.actor)[3]
    back = (last_weights.T @ slope.T) * (hidden > 0)
    gradients = [
        back.sum(1, keepdims=True),
        slope.T.sum(1, keepdims=True),
        back @ np.asarray(data.observation),
        slope.T @ hidden.T,
    ]
    gradients = jax.tree.unflatten(jax.tree.structure(learner.actor), map(jnp.float32, gradients))
    steps, (optimiser, _) = optax.adam(RATE).update(gradients, optax.adam(RATE).init(learner.actor))
    actor = optax.apply_updates(learner.actor, steps)
    target = jax.tree.map(lambda slow, fast: (1 - TAU) * slow + TAU * fast, learner.target, actor)
    return ValueLearner(actor, target, optimiser)


def test_an_update_is_the_one_written_out_by_hand():
    algorithm = DQN(actions=3, hidden=(16,))
    learner = algorithm.init(jax.random.key(0), jnp.zeros(2))
    # A target of its own: so it matters which network chooses and which one values.
    learner = learner._replace(target=algorithm.init(jax.random.key(1), jnp.zeros(2)).actor)
    batch = Batch(transitions(jax.random.key(2)), np.linspace(0.5, 1, ROWS, dtype=np.float32))
    updated = jax.jit(algorithm.update)(jnp.zeros(0), learner, batch, HYPER, jnp.int32(0))
    # The optimiser holds the gradient; Adam's first step alone tells little more than its signs.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), updated, by_hand(learner, batch))


def test_the_policy_takes_the_best_action_of_one_observation_and_of_rows():
    algorithm = DQN(actions=3, hidden=(16,))
    learner = algorithm.init(jax.random.key(0), jnp.zeros(2))
    rows = jax.random.normal(jax.random.key(1), (200, 2))
    actions = algorithm.act(learner.actor, rows)
    assert actions.dtype == jnp.int32
    np.testing.assert_array_equal(actions, values_of(learner.actor, rows)[0].argmax(1))
    assert int(algorithm.act(learner.actor, rows[7])) == int(actions[7])


def test_exploration_is_greedy_but_for_a_share_of_uniform_actions():
    algorithm = DQN(actions=3, hidden=(16,))
    actor = algorithm.init(jax.random.key(0), jnp.zeros(2)).actor
    noise, rows = Noise.draw(jax.random.key(3), (60_000,), 1), jnp.ones((60_000, 2))
    explored = np.asarray(algorithm.explore(noise, actor, rows, HYPER))
    shares = np.bincount(explored, minlength=3) / len(explored)
    expected = np.full(3, 0.25 / 3)
    expected[int(algorithm.act(actor, rows[0]))] += 0.75
    assert shares == pytest.approx(expected, abs=0.01)
