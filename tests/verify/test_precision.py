"""The tolerance follows the precision of what is observed; where too little is repeated nothing is known."""

import gymnasium
import numpy as np
import pytest

from augury.augmentations import from_numpy
from augury.verify import assert_dynamics_invariant, verify
from tests.verify.test_verify import MIRRORED, Rounded, Spring


class Observed32(Spring):
    """Simulates with 64 bits, observes with 32."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return observation.astype(np.float32), info

    def step(self, action):
        observation, *rest = super().step(action)
        return observation.astype(np.float32), *rest


class Grown(Observed32):
    """Numbers of a thousand: with 32 bits they have four digits behind the point."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state *= 1_000
        return self.state.astype(np.float32), {}


def unchanged(generator, transition):
    return transition


@pytest.mark.parametrize("environment", [Observed32, Grown, Rounded])
def test_32_bits_are_repeated_and_right_ones_pass(environment):
    report = verify(MIRRORED, environment(), samples=80)
    assert (report.verdict, report.set_aside, report.tolerance) == ("valid", 0, 1e-5)


@pytest.mark.parametrize(
    "name", ["Pendulum-v1", "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Walker2d-v5", "Hopper-v5"]
)
def test_gymnasiums_own_repeat_all_of_their_transitions(name):
    """Also where velocities are clipped before they are observed."""
    report = verify(from_numpy(unchanged), gymnasium.make(name), samples=80)
    assert (report.verdict, report.samples, report.set_aside) == ("valid", 80, 0)


def test_where_too_little_is_left_the_verdict_is_unknown_and_a_tolerance_is_named():
    report = verify(MIRRORED, Observed32(), samples=80, tolerance=1e-8)
    assert report.verdict == "unknown"
    assert report.set_aside > 8
    assert report.would_repeat is not None
    assert verify(MIRRORED, Observed32(), samples=80, tolerance=report.would_repeat).verdict == "valid"
    with pytest.raises(AssertionError, match=r"too little evidence: .*a tolerance of 1e-0\d would repeat"):
        assert_dynamics_invariant(MIRRORED, Observed32(), samples=80, tolerance=1e-8)
