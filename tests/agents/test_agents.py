"""Each algorithm's update on small problems whose values are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury import Transition
from augury.agents import ALGORITHMS, SAC, TD3, ActionScale, Hyperparameters, Noise, losses
from augury.agents.base import gaussian_exploration
from augury.agents.networks import apply
from augury.replay import Batch
from tests.marks import slowly

ROWS, DISCOUNT = 64, 0.9
HYPER = Hyperparameters(*map(jnp.float32, (3e-3, DISCOUNT, 0.05, 0.1, 0.0, 0.2, 0.5)))


def trained(algorithm, make_batch, updates=1_500, weights=None, hyper=HYPER):
    """A learner after updates on batches that `make_batch` draws."""
    weights = np.ones(ROWS, np.float32) if weights is None else weights
    learner = algorithm.init(jax.random.key(0), jnp.zeros(1))

    def update(learner, count):
        batch_key, noise_key = jax.random.split(jax.random.fold_in(jax.random.key(1), count))
        noise = jax.random.normal(noise_key, algorithm.noise_shape(ROWS))
        return algorithm.update(noise, learner, Batch(make_batch(batch_key), weights), hyper, count), None

    return jax.jit(lambda learner: jax.lax.scan(update, learner, jnp.arange(updates))[0])(learner)


def values(algorithm, learner, observation, action):
    """What every critic thinks of one state and action."""
    arguments = jnp.float32([[observation]]), jnp.float32([[action]])
    return np.asarray(apply(algorithm.critic, learner.critic, *arguments))[:, 0]


def batch(key, reward, following, terminated, truncated=False):
    """Transitions with the given functions of (state, action), both uniform in [-1, 1]."""
    state, action = jax.random.uniform(key, (2, ROWS, 1), minval=-1)
    fill = jnp.full(ROWS, False)
    return Transition(
        state,
        action,
        reward(state, action)[:, 0],
        following(state, action),
        fill | terminated,
        fill | truncated,
        {},
    )


@pytest.fixture(params=["td3", "sac", *slowly("ddpg")])
def algorithm(request):
    return ALGORITHMS[request.param](actions=1, hidden=(32, 32))


def test_a_terminated_transition_is_worth_its_reward(algorithm):
    learner = trained(
        algorithm, lambda key: batch(key, lambda s, a: 2 * jnp.ones_like(s), lambda s, a: s, terminated=True)
    )
    np.testing.assert_allclose(values(algorithm, learner, 0.3, -0.5), 2, atol=0.05)


def test_the_value_sees_the_action(algorithm):
    learner = trained(algorithm, lambda key: batch(key, lambda s, a: s * a, lambda s, a: s, terminated=True))
    for state, action in ((0.8, 0.8), (-0.8, 0.8), (0.5, 0.0)):
        np.testing.assert_allclose(values(algorithm, learner, state, action), state * action, atol=0.12)


@pytest.mark.parametrize("truncated", [False, True])
def test_what_is_not_terminated_bootstraps(truncated):
    # A reward of 1 forever is worth 1 / (1 - γ) = 10; a time limit does not change that.
    for algorithm in (ALGORITHMS[name](actions=1, hidden=(32, 32)) for name in ("ddpg", "td3")):
        learner = trained(
            algorithm,
            lambda key: batch(key, lambda s, a: jnp.ones_like(s), lambda s, a: -s, False, truncated),
            updates=4_000,
        )
        np.testing.assert_allclose(values(algorithm, learner, 0.2, 0.2), 10, atol=0.4)


def test_the_discount_carries_a_reward_one_step_back(algorithm):
    # States below 0 pay nothing and lead to states above, which pay 1 and end.
    def make(key):
        made = batch(key, lambda s, a: (s > 0).astype(jnp.float32), lambda s, a: jnp.abs(s) + 0.2, False)
        return made._replace(terminated=made.observation[:, 0] > 0)

    learner = trained(algorithm, make, updates=3_000)
    entropy = 0.0
    if isinstance(algorithm, SAC):  # its value also counts the entropy of the next action
        keys = jax.random.split(jax.random.key(3), 2_000)
        sample = jax.vmap(lambda k: algorithm.sample(jax.random.normal(k, (1,)), learner.actor, jnp.ones(1)))
        entropy = -float(jnp.exp(learner.log_temperature)) * float(sample(keys)[1].mean())
    np.testing.assert_allclose(values(algorithm, learner, 0.6, 0.1), 1, atol=0.1)
    np.testing.assert_allclose(values(algorithm, learner, -0.6, 0.1), DISCOUNT * (1 + entropy), atol=0.12)


def test_the_policy_climbs_to_the_best_action(algorithm):
    # The reward is best at an action that depends on the state: a = s / 2.
    learner = trained(
        algorithm,
        lambda key: batch(key, lambda s, a: -((a - s / 2) ** 2), lambda s, a: s, terminated=True),
        updates=3_000,
    )
    states = jnp.linspace(-0.9, 0.9, 7)[:, None]
    np.testing.assert_allclose(algorithm.act(learner.actor, states), states / 2, atol=0.12)


def test_rows_count_with_their_weight(algorithm):
    # Half the rows say 0, half say 4; with weights 3 : 1 the mean is 1.
    weights = np.repeat(np.float32([1.5, 0.5]), ROWS // 2)
    rewards = jnp.repeat(jnp.float32([0, 4]), ROWS // 2)

    def make(key):
        return batch(key, lambda s, a: s, lambda s, a: s, terminated=True)._replace(reward=rewards)

    learner = trained(algorithm, make, updates=3_000, weights=weights)
    np.testing.assert_allclose(values(algorithm, learner, 0.1, 0.1), 1, atol=0.15)


@pytest.mark.slow
def test_td3_updates_policy_and_targets_only_when_due():
    algorithm = TD3(actions=1, hidden=(8,), policy_delay=2)
    learner = algorithm.init(jax.random.key(0), jnp.zeros(1))
    made = batch(jax.random.key(1), lambda s, a: s + a, lambda s, a: s, terminated=False)
    noise = jnp.zeros(algorithm.noise_shape(ROWS))

    def updated(count):
        return algorithm.update(
            noise, learner, Batch(made, np.ones(ROWS, np.float32)), HYPER, jnp.int32(count)
        )

    for name in ("actor", "target_actor", "target_critic"):
        same = [
            all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), *pair)))
            for pair in ((getattr(learner, name), getattr(updated(count), name)) for count in (0, 1))
        ]
        assert same == [True, False], name


def test_td3_takes_the_smaller_value_and_smooths_the_target_action():
    algorithm = TD3(actions=1, hidden=(8,))
    learner = algorithm.init(jax.random.key(0), jnp.zeros(1))
    made = batch(jax.random.key(1), lambda s, a: s, lambda s, a: -s, terminated=False)
    noise = 5 * jnp.ones(algorithm.noise_shape(ROWS))  # clipped to 0.5
    smoothed = jnp.clip(apply(algorithm.actor, learner.actor, made.next_observation) + 0.5, -1, 1)
    target = made.reward + DISCOUNT * apply(
        algorithm.critic, learner.critic, made.next_observation, smoothed
    ).min(0)

    def loss(parameters):
        return losses.critic_loss(
            apply(algorithm.critic, parameters, made.observation, made.action), target, jnp.ones(ROWS)
        )

    # Adam's first step moves every parameter by the learning rate, against its gradient's sign.
    updated = algorithm.update(noise, learner, Batch(made, np.ones(ROWS, np.float32)), HYPER, jnp.int32(0))
    moved = jax.tree.map(lambda new, old: new - old, updated.critic, learner.critic)
    jax.tree.map(
        lambda step, gradient: np.testing.assert_allclose(
            step, -HYPER.learning_rate * np.sign(gradient), atol=2e-5, rtol=0.02
        ),
        moved,
        jax.tree.map(lambda g: jnp.where(abs(g) < 1e-5, 0, g), jax.grad(loss)(learner.critic)),
    )


@pytest.mark.slow
def test_sac_keeps_the_entropy_it_aims_at():
    algorithm = SAC(actions=1, hidden=(32, 32))
    learner = trained(
        algorithm,
        lambda key: batch(key, lambda s, a: -5 * a**2, lambda s, a: s, terminated=True),
        updates=6_000,
    )
    noise = jax.random.normal(jax.random.key(5), (4_000, 1))
    _, log_probability = algorithm.sample(noise, learner.actor, jnp.zeros((4_000, 1)))
    assert -float(log_probability.mean()) == pytest.approx(algorithm.target_entropy, abs=0.25)


def test_sac_knows_the_density_of_its_actions():
    algorithm = SAC(actions=1, hidden=(8,))
    learner = algorithm.init(jax.random.key(0), jnp.zeros(1))
    noise = jax.random.normal(jax.random.key(5), (200_000, 1))
    action, log_probability = algorithm.sample(noise, learner.actor, jnp.zeros((200_000, 1)))
    shares, edges = np.histogram(np.asarray(action), bins=10, range=(-0.9, 0.9))
    for low, high, share in zip(edges[:-1], edges[1:], shares, strict=True):
        inside = np.asarray((action[:, 0] > low) & (action[:, 0] < high))
        density = np.exp(np.asarray(log_probability)[inside]).mean()
        assert share / 200_000 / (high - low) == pytest.approx(density, rel=0.05)


def test_exploration_adds_noise_and_sometimes_a_uniform_action():
    noise = Noise.draw(jax.random.key(0), (50_000,), 1)
    action = jnp.full((50_000, 1), 0.2)
    explored = gaussian_exploration(noise, action, HYPER._replace(exploration_noise=jnp.float32(0.05)))
    assert float(explored.mean()) == pytest.approx(0.2, abs=0.002)
    assert float(explored.std()) == pytest.approx(0.05, abs=0.002)
    mixed = gaussian_exploration(
        noise,
        action,
        HYPER._replace(exploration_noise=jnp.float32(0), random_action_probability=jnp.float32(0.3)),
    )
    assert float((mixed != action).mean()) == pytest.approx(0.3, abs=0.01)
    assert float(mixed.min()) < -0.95


def test_action_scale_goes_there_and_back():
    scale = ActionScale(np.float32([0, 0]), np.float32([1, 6]))
    np.testing.assert_allclose(scale.to_environment(jnp.array([-1.0, 1.0])), [0, 6])
    action = jnp.array([0.3, 4.0])
    np.testing.assert_allclose(scale.to_environment(scale.to_unit(action)), action, rtol=1e-6)
