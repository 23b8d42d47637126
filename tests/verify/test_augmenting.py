"""Functions that JAX cannot trace are verified as the buffer would run them: with NumPy."""

import numpy as np
import pytest

from augury.augmentations import compose, from_numpy, hindsight
from augury.envs.goal2d import Goal2D
from augury.errors import UserError
from augury.verify import verify
from augury.verify.augmenting import augment
from augury.verify.simulators import simulator_of
from tests.sledges import sledges

__all__ = ["sledges"]


def mirrored(generator, transition):
    """Writes into what it is given."""
    transition.observation[:] *= -1
    transition.next_observation[:] *= -1
    transition.action[:] *= -1
    return transition


def drawn(generator, transition):
    return transition._replace(reward=generator.uniform())


@pytest.mark.parametrize("augmentation", [mirrored, from_numpy(mirrored), compose(from_numpy(mirrored))])
def test_a_function_that_assigns_in_place_is_taken_for_numpy(sledges, augmentation):
    assert verify(augmentation, sledges.sledge, samples=60).valid


def test_called_by_jax_or_directly_it_draws_the_same():
    observed, direct = simulator_of("goal2d").collect(20, None, 0), from_numpy(drawn)
    ways = [augment(function, observed, 3).reward for function in (direct, lambda *given: direct(*given))]
    np.testing.assert_array_equal(*ways)
    assert len(set(ways[0])) == 20


def reward_in_numpy(achieved, desired, info):
    return np.where(np.linalg.norm(np.asarray(achieved) - desired, axis=-1) < 0.3, 0.0, -1.0)


def near(achieved, desired, info):
    return np.linalg.norm(np.asarray(achieved) - desired, axis=-1) < 0.3


def test_hindsight_takes_a_reward_in_numpy(sledges):
    assert verify(hindsight(reward_in_numpy, "future", near), sledges.reaching, samples=60).valid


@pytest.mark.parametrize(
    "wrap", [lambda function: function, from_numpy, lambda one: compose(from_numpy(one))]
)
def test_a_function_that_fails_is_one_line(wrap):
    def failing(generator, transition):
        raise ValueError("no such leg")

    with pytest.raises(UserError, match=r"failed on a transition: .*no such leg$") as error:
        verify(wrap(failing), Goal2D(), samples=20)
    assert "\n" not in str(error.value)
