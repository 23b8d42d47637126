"""Environments with numbers: arms that differ in them train in one fleet, each as it would alone."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from augury.envs.base import JaxEnvironment, numbers_of, with_numbers, without_numbers
from augury.fleet import Arm, resolved, train_fleet
from augury.fleet.building import fleets_of, program_of, settings_of
from augury.pytrees import static
from tests.fleet.comparing import assert_same


@with_numbers
class Slope(JaxEnvironment):
    """A point on a line: its speed is its action less the slope, its reward the place it comes to."""

    slope: float = 0.0
    ends: tuple[float, float] = (-1.0, 1.0)
    length: int = static(default=8)

    name = "slope"
    observation_low = np.array([-9], np.float32)
    observation_high = np.array([9], np.float32)
    action_low = np.array([-1], np.float32)
    action_high = np.array([1], np.float32)

    @property
    def horizon(self):
        return self.length

    def reset(self, key):
        return jax.random.uniform(key, (1,), minval=self.ends[0], maxval=self.ends[1])

    def observe(self, state):
        return state

    def step(self, key, state, action):
        state = state + action - self.slope
        return state, state[0], jnp.zeros((), bool)


class Inherited(Slope):
    """No pytree of its own."""


SMALL = Arm(
    agents=2,
    steps=128,
    random_steps=64,
    collect=32,
    updates=4,
    batch_size=8,
    hidden=(8,),
    evaluate_every=64,
    evaluation_episodes=4,
)


def arm(environment, **changes):
    return resolved(replace(SMALL, environment=environment, **changes))


def test_arms_that_differ_in_numbers_share_a_program_and_others_do_not():
    arms = [
        arm(Slope()),
        arm(Slope(slope=0.5)),
        arm(Slope(ends=(0.0, 2.0)), evaluation_environment=Slope(slope=3.0)),
        arm(Slope(length=4)),
    ]
    assert fleets_of(arms) == [[0, 1, 2], [3]]
    assert hash(program_of(arms[0])) == hash(program_of(arms[2]))
    settings = settings_of(arms[2])
    np.testing.assert_array_equal(settings.environment.ends, [[0, 0], [2, 2]])
    np.testing.assert_array_equal(settings.evaluation_environment.slope, [3, 3])


def test_environments_without_numbers_are_part_of_the_program():
    for environment in ("goal2d", Inherited(slope=2.0)):
        assert numbers_of(environment) is None
        assert without_numbers(environment) is environment
        assert settings_of(arm(environment)).environment is None
    assert program_of(arm(Inherited(slope=2.0))).environment.slope == 2


@pytest.mark.slow
def test_arms_with_numbers_of_their_own_train_as_they_would_apart():
    arms = [
        arm(Slope(slope=0.5)),
        arm(Slope(slope=-2.0), evaluation_environment=Slope(ends=(5.0, 5.0))),
        arm(Slope()),
    ]
    together = train_fleet(arms)
    for own, result in zip(arms, together, strict=True):
        (alone,) = train_fleet([own])
        assert_same(alone.evaluations, result.evaluations)
        assert_same(alone.actors, result.actors)
    # A policy's speed is at most 1: from 5 on, on flat ground, its places are 4 to 13 away on average.
    returns = together[1].evaluations["returns"] / 8
    assert ((returns > 5 - 4.5) & (returns < 5 + 4.5)).all()


@pytest.mark.slow
def test_numbers_are_what_the_agent_meets():
    # Without numbers the slope is a constant of the program: the same agents, up to rounding.
    (own,) = train_fleet([arm(Slope(slope=0.5))])
    (constant,) = train_fleet([arm(Inherited(slope=0.5))])
    np.testing.assert_allclose(
        own.evaluations["returns"], constant.evaluations["returns"], rtol=1e-4, atol=1e-4
    )
