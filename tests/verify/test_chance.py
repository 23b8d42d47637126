"""Where an environment leaves something to chance, a right augmentation must not be called wrong."""

import gymnasium
import numpy as np
import pytest

from augury.augmentations import from_numpy
from augury.errors import UserError
from augury.verify import assert_dynamics_invariant, verify
from augury.verify.intervals import clustered
from tests.verify.test_verify import MIRRORED, Spring, mirrored

SAMPLES = 400


class Slippery(Spring):
    """Now and then its action does nothing."""

    chance = 0.03

    def step(self, action):
        slips = self.np_random.random() < self.chance
        return super().step(0 * action if slips else action)


def half(generator, transition):
    return mirrored(generator, transition)._replace(action=transition.action)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_answered_differently_when_asked_again_is_set_aside(seed):
    report = verify(MIRRORED, Slippery(), samples=SAMPLES, seed=seed)
    assert (report.verdict, report.invalid, report.cause) == ("unknown", 0, None)
    assert 0 < report.by_chance <= report.set_aside
    assert report.samples + report.set_aside == SAMPLES
    assert "answers differently when it is asked again" in str(report)
    with pytest.raises(AssertionError, match="too little evidence"):
        assert_dynamics_invariant(MIRRORED, Slippery(), samples=SAMPLES, seed=seed)


def test_a_mistake_is_found_beside_chance():
    report = verify(from_numpy(half), Slippery(), samples=SAMPLES)
    assert report.verdict == "invalid"
    assert report.by_chance
    assert report.invalid == report.samples


def test_an_environment_that_often_slips_says_nothing():
    identity = from_numpy(lambda generator, transition: transition)
    report = verify(identity, gymnasium.make("FrozenLake-v1"), samples=200)
    assert (report.verdict, report.invalid) == ("unknown", 0)


def test_a_deterministic_environment_is_not_suspected():
    assert verify(from_numpy(half), Spring(), samples=SAMPLES).by_chance == 0


class Fragile(Spring):
    """Stops the program where it is put beyond ±1.2."""

    def restore(self, observation, extras):
        assert abs(observation[0]) <= 1.2, "too far"
        super().restore(observation, extras)


def test_what_an_environment_refuses_is_invalid_and_said():
    def doubled(generator, transition):
        return transition._replace(
            observation=2 * transition.observation, next_observation=2 * transition.next_observation
        )

    report = verify(from_numpy(doubled), Fragile(), samples=SAMPLES)
    assert report.verdict == "invalid"
    assert "Fragile raises AssertionError: too far in" in report.description
    assert report.as_json()["largest_error"] is None  # JSON has no infinity


def test_an_environment_that_refuses_its_own_states_is_one_line():
    class Closed(Spring):
        def restore(self, observation, extras):
            raise RuntimeError("not today\nnor tomorrow")

    with pytest.raises(UserError, match=r"^Closed fails in its own transitions: RuntimeError: not today$"):
        verify(MIRRORED, Closed(), samples=20)


def test_an_environment_may_write_over_what_it_is_given():
    class Halving(Spring):
        def step(self, action):
            action *= 0.5
            return super().step(action)

        def restore(self, observation, extras):
            super().restore(observation, extras)
            observation *= np.nan

    assert verify(MIRRORED, Halving(), samples=50).valid
    assert verify(from_numpy(half), Halving(), samples=50).cause == "the sign of action 0 is wrong"


def test_a_policy_of_another_width_is_one_line():
    with pytest.raises(UserError, match=r"must give actions of shape \(1, 1\), not \(1, 3\)"):
        verify(MIRRORED, Spring(), samples=20, policy=lambda observation: np.zeros((len(observation), 3)))


def test_of_no_transitions_nothing_is_known():
    assert clustered(np.zeros(0, bool), np.zeros(0, int)) == (0, 1)
