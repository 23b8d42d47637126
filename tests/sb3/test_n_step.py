"""n-step returns: a copy of a transition is the start of a copied stretch of its episode."""

import numpy as np
import pytest
import stable_baselines3 as sb3
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from augury.augmentations import from_numpy
from augury.errors import UserError
from augury.sb3 import AugmentedReplayBuffer
from tests.sb3.test_buffer import Numbered, add_steps, filled, mirror, rows_of, small

N_STEP = {"augmentation": mirror, "n_steps": 3, "gamma": 0.9}


def check_returns(env, drawn, newest, gamma=0.9):
    """Recompute every row from the steps of its episode; return which rows are augmented.

    Episodes are also over where the next step does not go on: the environment was reset.
    """
    observations, actions, following, dones, rewards = rows_of(drawn)
    discounts = np.asarray(drawn.discounts)
    for row, (number, _, side) in enumerate(observations):
        flip = np.array([1, side, side], np.float32)
        value, step = 0.0, round(float(number) * 1000)
        start, action, *_ = env.steps[step]
        for power in range(3):
            *_, reward, end, terminated, cut = env.steps[step + power]
            value += gamma**power * reward
            if terminated or cut or step + power == newest or (end != env.steps[step + power + 1][0]).any():
                break
        np.testing.assert_allclose(observations[row], flip * start, rtol=1e-6)
        np.testing.assert_allclose(
            actions[row], [((action if side > 0 else 1 - action) - 0.5) / 2.5], atol=1e-6
        )
        np.testing.assert_allclose(following[row], flip * end, rtol=1e-6)
        np.testing.assert_allclose(rewards[row], [value], rtol=1e-5)
        np.testing.assert_allclose(discounts[row], [gamma ** (power + 1)], rtol=1e-6)
        assert dones[row] == terminated
    return observations[:, 2] < 0


@pytest.mark.parametrize("wrap", [lambda function: function, from_numpy], ids=["compiled", "on the host"])
def test_copies_have_the_returns_of_their_stretch(wrap):
    buffer, vector = filled(steps=47, buffer_size=40, **N_STEP | {"augmentation": wrap(mirror)})
    drawn = buffer.sample(200)
    assert check_returns(vector.envs[0], drawn, newest=46).sum() == 200
    assert len(np.unique(np.asarray(drawn.discounts))) == 3  # some stretches are cut short
    add_steps(buffer, vector, 3)  # after a reset in the middle of an episode, which SB3 does not see
    drawn = buffer.sample(200)
    check_returns(vector.envs[0], type(drawn)(*(part[200:] for part in drawn)), newest=49)


def test_the_observed_half_is_what_sb3s_n_step_buffer_draws():
    buffer, vector = filled(steps=47, buffer_size=40, **N_STEP)
    normalise = VecNormalize(vector)
    normalise.reset()
    for _ in range(30):
        normalise.step(np.ones((1, 1), np.float32))
    np.random.seed(1)
    both = [np.asarray(part) for part in buffer.sample(64, normalise)]
    np.random.seed(1)
    indices = np.random.randint(0, 40, size=64)
    observed = [np.asarray(part) for part in NStepReplayBuffer._get_samples(buffer, indices, normalise)]
    for ours, theirs in zip(both, observed, strict=True):
        np.testing.assert_array_equal(ours[:64], theirs)
    rewards = both[4]
    assert set(rewards[64:, 0]) & set(rewards[:64, 0])  # normalised alike


def test_a_copy_that_ends_earlier_ends_its_return():
    def ending(key, transition):
        return transition._replace(terminated=transition.observation[0] * 1000 % 10 > 7.5)

    buffer, _ = filled(steps=40, **N_STEP | {"augmentation": ending})
    drawn = buffer.sample(300)
    numbers, ended = (
        np.rint(np.asarray(drawn.observations)[300:, 0] * 1000) % 10,
        np.asarray(drawn.dones)[300:, 0],
    )
    discounts = np.asarray(drawn.discounts)[300:, 0]
    for number, steps in ((8, 1), (7, 2), (6, 3), (9, 1)):
        np.testing.assert_allclose(discounts[numbers == number], 0.9**steps, rtol=1e-6)
        assert (ended[numbers == number] == 1).all()
    assert not ended[numbers < 6].any()


def test_an_augmentation_that_tears_stretches_apart_is_refused():
    def put_somewhere(key, transition):
        move = np.array([0, 1, 0]) * (5 - transition.observation)
        return transition._replace(
            observation=transition.observation + move, next_observation=transition.next_observation + move
        )

    buffer, _ = filled(**N_STEP | {"augmentation": put_somewhere})
    with pytest.raises(UserError, match=r"put_somewhere: cannot augment .* number 1 of .*; use n_steps=1"):
        buffer.sample(32)


def trained(**kwargs):
    model = sb3.SAC(
        "MlpPolicy",
        Numbered(),
        learning_starts=20,
        batch_size=8,
        gamma=0.8,
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs={"augmentation": mirror} | kwargs,
        **small(),
    )
    return model.learn(25)


@pytest.mark.parametrize("ratio", [0, 1])
def test_an_algorithm_learns_with_its_own_discount(ratio):
    buffer = trained(n_steps=3, ratio=ratio).replay_buffer
    assert buffer.drawn_augmented == 40 * ratio
    np.testing.assert_allclose(np.asarray(buffer.sample(50).discounts).min(), 0.8**3, rtol=1e-6)


def test_n_steps_that_sb3_would_ignore_are_refused():
    kwargs = {"replay_buffer_class": AugmentedReplayBuffer, "replay_buffer_kwargs": {"augmentation": mirror}}
    with (
        pytest.warns(UserWarning, match="n_steps"),
        pytest.raises(UserError, match=r"mirror: SB3 hands n_steps=3 to no .*kwargs=dict\(n_steps=3"),
    ):
        sb3.SAC("MlpPolicy", Numbered(), n_steps=3, **kwargs, **small())


def test_stretches_of_single_transitions_are_drawn():
    """As where a run has just begun, or every episode is one step long."""
    buffer, vector = filled(steps=1, **N_STEP)
    drawn = buffer.sample(20)
    assert check_returns(vector.envs[0], drawn, newest=0).sum() == 20
    assert np.unique(np.asarray(drawn.discounts)) == pytest.approx([0.9])
