"""Transitions that do not occur are told from wrong ones: beyond bounds, walls, and the task's goals."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from augury import augmentations
from augury.augmentations import from_numpy
from augury.augmentations.symmetry import reflect
from augury.envs.goal2d import Goal2D
from augury.verify import assert_dynamics_invariant, verify
from tests.verify.test_verify import MIRRORED, Spring, mirrored

SAMPLES = 120


def test_an_agent_beyond_the_walls_is_outside():
    def beyond(key, transition):
        """Where the walls stop everybody, nobody moves."""
        observation = transition.observation.at[:2].set(jnp.array([3.0, 3.0]))
        ended = observation.at[:2].set(1.05)
        return transition._replace(
            observation=observation, next_observation=ended, terminated=ended[2] > 9, reward=jnp.float32(-0.1)
        )

    report = verify(beyond, "goal2d", samples=SAMPLES)
    assert (report.verdict, report.valid, report.invalid) == ("outside the space", False, 0)
    assert report.outside_space == SAMPLES
    assert report.outside[0].name == "what the task can show"
    with pytest.raises(AssertionError, match=f"{SAMPLES} lie outside the space"):
        assert_dynamics_invariant(beyond, "goal2d", samples=SAMPLES)


def test_goals_that_the_task_never_sets_are_a_warning():
    quadrant = Goal2D(goals="quadrant")
    report = verify("goal2d/rotate", quadrant, samples=SAMPLES)
    assert report.valid
    assert report.outside_goals > 0
    assert "have goals that the task never sets" in str(report)
    assert verify("goal2d/rotate", "goal2d", samples=SAMPLES).outside_goals == 0


class Saturated(Spring):
    """Clips what it is given, and says within which bounds it stays."""

    observation_space = gymnasium.spaces.Box(-5, 5, (2,), np.float64)

    def step(self, action):
        return super().step(np.clip(action, -1, 1))


def test_an_action_beyond_its_bounds_is_outside():
    def pushed(generator, transition):
        """Where the environment clips anyway."""
        full = np.sign(transition.action)
        made = Saturated()
        made.state = transition.observation
        following, reward, *_ = made.step(full)
        return transition._replace(action=3 * full, next_observation=following, reward=reward)

    report = verify(from_numpy(pushed), Saturated(), samples=SAMPLES)
    assert (report.verdict, report.outside[0].name) == ("outside the space", "action 0")
    assert report.outside[0].farthest == pytest.approx(2, abs=1e-3)
    assert verify(MIRRORED, Saturated(), samples=SAMPLES).valid


def test_bounds_that_observed_transitions_leave_mean_nothing():
    class Careless(Saturated):
        observation_space = gymnasium.spaces.Box(-0.1, 0.1, (2,), np.float64)

    assert verify(MIRRORED, Careless(), samples=SAMPLES).valid


def test_a_quaternion_that_is_no_rotation_is_outside():
    mirror = reflect("ant")

    def stretched(key, transition):
        result = mirror(key, transition)
        return result._replace(observation=result.observation.at[1:5].multiply(2))

    stretched.needs = mirror.needs
    report = verify(stretched, "ant", samples=SAMPLES)
    assert (report.invalid, report.outside_space) == (0, SAMPLES)
    assert report.outside[0].name == "the quaternion of 'root', which is no rotation"


def test_goals_of_a_rotation_must_be_rotations():
    """Panda's flip is reached by q·g alone, so a longer quaternion looks like a goal that is nearer."""
    task = augmentations.make("panda/translate-goal", "panda-flip")

    def shrunk(key, transition):
        result = task(key, transition)
        goal = result.observation["desired_goal"] * 0
        return result._replace(
            observation={**result.observation, "desired_goal": goal},
            next_observation={**result.next_observation, "desired_goal": goal},
            reward=-jnp.ones_like(result.reward),
            terminated=jnp.zeros_like(result.terminated),
        )

    report = verify(shrunk, "panda-flip", samples=40)
    assert (report.verdict, report.invalid) == ("outside the space", 0)


@pytest.mark.parametrize("truncated", [True, False])
def test_truncation_is_compared(truncated):
    def wrong(generator, transition):
        return mirrored(generator, transition)._replace(truncated=np.bool_(truncated))

    class Short(Spring):
        steps = 0

        def reset(self, *, seed=None, options=None):
            self.steps = 0
            return super().reset(seed=seed)

        def step(self, action):
            self.steps += 1
            observation, reward, terminated, _, info = super().step(action)
            return observation, reward, terminated, self.steps == 5, info

    assert verify(MIRRORED, Short(), samples=SAMPLES).valid
    report = verify(from_numpy(wrong), Short(), samples=SAMPLES)
    assert [one.name for one in report.dimensions] == ["truncation"]
    assert "truncated must stay as observed" in report.cause
