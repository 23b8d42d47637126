"""Environments in the forms that users have them in."""

import gymnasium
import numpy as np
import pytest

import augury
from augury.augmentations import from_numpy
from augury.augmentations.symmetry import rotate
from augury.verify import verify
from tests.verify.test_verify import MIRRORED, Spring


def transposed(generator, transition):
    """CliffWalking's left and right, on its safe upper rows: the number is row * 12 + column."""

    def mirror(observation):
        assert observation.shape == ()  # as the environment and SB3's buffer show it
        return observation // 12 * 12 + 11 - observation % 12

    action = np.array([0, 3, 2, 1])[transition.action]
    return transition._replace(
        observation=mirror(transition.observation),
        action=action,
        next_observation=mirror(transition.next_observation),
    )


def test_whole_numbers_may_be_observed():
    environment = gymnasium.make("CliffWalking-v1")
    assert verify(from_numpy(lambda generator, one: one), environment, samples=60).valid
    report = verify(from_numpy(transposed), environment, samples=200)
    assert not report.valid  # the cliff is not symmetric
    assert report.environment == "CliffWalkingEnv"


def test_gymnasiums_view_of_goal2d_is_goal2d():
    environment = gymnasium.make("augury:augury/Goal2D-v0")
    report = augury.verify("goal2d/rotate", environment, samples=40)
    assert (report.environment, report.valid) == ("goal2d", True)


class Restorable(gymnasium.Wrapper):
    """As users add a method to what `gymnasium.make` returns."""

    def restore(self, observation, extras):
        self.env.unwrapped.restore(observation, extras)


def test_an_environment_is_called_by_its_own_name():
    wrapped = Restorable(gymnasium.wrappers.TimeLimit(Spring(), 20))
    assert verify(MIRRORED, wrapped, samples=40).environment == "Spring"


def test_extras_that_were_left_are_the_cause():
    turn = rotate("ant")

    def left(key, transition):
        return turn(key, transition)._replace(extras=transition.extras)

    left.needs = turn.needs
    assert (
        "the extra 'x_velocity' is that of the observed transition" in verify(left, "ant", samples=60).cause
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("robot", ["ant", "humanoid"])
def test_the_papers_models_do_not_turn_whatever_the_seed(robot, seed):
    with pytest.raises(AssertionError, match="are invalid"):
        augury.assert_dynamics_invariant(f"{robot}/rotate", f"{robot}-paper", seed=seed)
