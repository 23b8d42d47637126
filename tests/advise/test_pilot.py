"""Pilots: what a short run leaves, and that it is what the environment does."""

import jax
import numpy as np
import pytest

from augury.advise import gather, measure
from augury.advise.pilot import POLICIES, in_a_row, numbered
from augury.advise.signals.copies import copied
from augury.augmentations import make
from augury.envs import goal2d
from augury.errors import UserError
from tests.advise.pilots import pilot, walked


def test_episodes_are_numbered_and_what_follows_in_them_is_counted():
    last = np.array([0, 0, 1, 1, 0, 1], bool)
    played = numbered(None, last)
    assert played.episode.tolist() == [0, 0, 0, 1, 2, 2]
    assert played.remaining.tolist() == [2, 1, 0, 0, 1, 0]


def test_episodes_of_several_policies_are_numbered_on():
    one, other = walked(40, seed=0), walked(60, seed=1)
    both = in_a_row([one, other])
    assert both.episode.tolist() == [*one.episode, *(other.episode + 2)]
    assert both.remaining.tolist() == [*one.remaining, *other.remaining]
    np.testing.assert_array_equal(both.transition.reward[40:], other.transition.reward)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 10}, "steps of a pilot must be at least 200, not 10"),
        ({"batchsize": 10}, "a pilot has no setting 'batchsize'.*batch_size"),
        ({"algorithm": "dqn"}, "dqn cannot act in goal2d"),
    ],
)
def test_a_pilot_that_cannot_be_is_refused_in_one_line(settings, message):
    with pytest.raises(UserError, match=message):
        gather("goal2d", **settings)


@pytest.mark.parametrize(("ratio", "rows"), [(1, 800), (2.5, 1_700), (0.5, 400), (np.inf, 2_048)])
def test_there_are_m_copies_of_each_transition_as_far_as_there_is_room(ratio, rows):
    given = pilot()
    order = np.random.default_rng(0).permutation(800)
    found = copied(given, make("goal2d/rotate"), order, ratio, seed=0)
    assert len(found.origin) == pytest.approx(rows, rel=0.1)
    assert (found.origin == order[found.place]).all()
    before = given.observed.transition.observation[found.origin]
    np.testing.assert_allclose(
        np.linalg.norm(before[:, :2], axis=1),
        np.linalg.norm(found.transition.observation[:, :2], axis=1),
        rtol=1e-5,
    )


@pytest.mark.slow
def test_a_pilot_of_goal2d_is_what_goal2d_does_and_the_same_each_time():
    one, same, other = (gather("goal2d", steps=1_000, seed=seed) for seed in (0, 0, 1))
    for played in (one.observed, one.evaluated):
        shown = played.transition
        following, reward, terminated = goal2d.step(shown.observation, shown.action)
        np.testing.assert_allclose(shown.next_observation, following, atol=1e-6)
        assert (shown.terminated == terminated).all()
        np.testing.assert_allclose(shown.reward, reward)
        goes_on = np.flatnonzero(played.remaining[:-1] > 0)
        np.testing.assert_allclose(shown.observation[goes_on + 1], shown.next_observation[goes_on])
    shown = one.evaluated.transition
    own = one.policy(shown.observation)
    alike = np.isclose(own, shown.action, atol=1e-5).all(1)
    quarter = np.searchsorted(one.evaluated.episode, (one.evaluated.episode.max() + 1) // POLICIES)
    assert alike[:quarter].all(), "the first agent's policy, then those of others"
    assert not alike[quarter:].any()
    assert len(one.observed.episode) >= 1_000
    assert one.critic(shown.observation, shown.action).std() > 0
    for name in ("observed", "evaluated"):
        jax.tree.map(np.testing.assert_array_equal, getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.observed.transition.reward, other.observed.transition.reward) or (
        not np.array_equal(one.observed.transition.observation, other.observed.transition.observation)
    )
    assert measure(one, "goal2d/translate") == measure(same, "goal2d/translate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "augmentation"),
    [
        ("gymnasium:Pendulum-v1", None),
        ("gymnasium:CartPole-v1", None),
        ("panda-push", "panda/hindsight"),
        ("walker2d", "walker2d/reflect"),
    ],
)
def test_any_environment_has_a_pilot_and_signals(environment, augmentation):
    given = gather(environment, steps=600, random_steps=300, updates=1)
    assert len(given.observed.episode) == given.arm.rounds * given.arm.round_steps >= 600
    signals = measure(given, augmentation or (lambda key, transition: transition))
    assert signals.invalid == 0, signals.notes
    assert signals.data_multiplier is not None
    assert signals.added_coverage is not None
    if augmentation is None:
        assert (signals.data_multiplier, signals.added_coverage) == (1, 0)


def test_an_action_that_does_not_exist_is_said_in_a_sentence():
    given = gather("gymnasium:CartPole-v1", steps=300, random_steps=200, updates=1)
    found = measure(given, lambda key, transition: transition._replace(action=transition.action + 1))
    assert "gives actions from 1 to 2: gymnasium:CartPole-v1 has 2, from 0 to 1" in found.notes[0]


def test_walks_of_the_tests_are_of_whole_episodes():
    assert walked(100, 0).remaining[:3].tolist() == [19, 18, 17]
