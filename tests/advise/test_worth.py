"""Worth and gain, on curves whose answer is known."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from augury.advise.worth import areas, curves, gain, isotonic, worth
from augury.errors import UserError

STEPS = np.arange(1, 41) * 5_000


def learners(speed, agents=200, seed=0):
    """Agents that learn as a logistic function of what they have seen, `speed` times as fast as none."""
    generator = np.random.default_rng(seed)
    half = generator.lognormal(np.log(80_000), 0.2, (agents, 1)) / speed
    return curves(STEPS, 1 / (1 + np.exp(-4 * np.log2(STEPS / half))))


POLICY = {n: learners(n, seed=n) for n in (1, 2, 4, 8)}


@pytest.mark.parametrize("speed", [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0])
def test_an_arm_that_learns_n_times_as_fast_is_worth_n(speed):
    found = worth(learners(speed, seed=9), POLICY)
    assert found.middle == pytest.approx(speed, rel=0.05)
    assert found.low <= speed <= found.high
    assert found.censored == ""


def test_what_is_beyond_the_arms_is_censored():
    assert worth(learners(32, seed=9), POLICY)[:1] + worth(learners(32, seed=9), POLICY)[3:] == (8, "above")
    assert worth(learners(1 / 32, seed=9), POLICY)[:1] == (1 / 8,)
    assert worth(learners(1 / 32, seed=9), POLICY).censored == "below"
    assert worth(learners(3, seed=9), {n: POLICY[n] for n in (1, 2)})[:] == (2, 2, 2, "above")


def test_an_interval_covers_the_worth_as_often_as_it_says():
    """Bootstraps of twenty agents are somewhat narrow: 90% intervals hold 85% at least."""
    held = 0
    for trial in range(100):
        policy = {n: learners(n, 20, seed=10 * trial + n) for n in (1, 2, 4, 8)}
        found = worth(learners(3, 20, seed=10 * trial), policy)
        held += found.low <= 3 <= found.high
    assert 82 <= held <= 97


def flat(score, generator):
    return curves(STEPS, np.clip(generator.normal(score, 0.05, (10, 1)), 0, 1) * np.ones(40))


def test_in_a_task_that_data_does_not_change_a_small_difference_is_worth_nothing():
    nobody = curves(STEPS, np.zeros((10, 40)))
    assert worth(nobody, dict.fromkeys((1, 2, 4, 8), nobody))[:] == (1, 1, 1, "")
    generator = np.random.default_rng(0)
    policy = {n: flat(0.5, generator) for n in (1, 2, 4, 8)}
    found = worth(flat(0.5, generator), policy)
    assert found.low <= 1, "so much noise could hide anything"
    assert found.high == 8
    assert worth(flat(0.8, generator), policy)[:] == (8, 8, 8, "above"), "no amount of data does that"


def test_areas_are_mean_scores_from_step_zero():
    ramp = curves(STEPS, np.tile(STEPS / 200_000, (3, 1)))
    assert areas(ramp) == pytest.approx(0.5 + 0.025**2 / 2)  # before the first evaluation the score is held
    assert areas(ramp, 0.5) == pytest.approx(0.25 + 0.025**2)


def test_a_gain_is_a_difference_of_areas_and_a_diverged_agent_scores_nothing():
    none, better = curves(STEPS, np.full((10, 40), 20.0), 0, 100), np.full((10, 40), 50.0)
    assert gain(curves(STEPS, better, 0, 100), none) == pytest.approx((0.3, 0.3, 0.3))
    better[0, 10:] = np.nan
    found = gain(curves(STEPS, better, 0, 100), none)
    assert 0.25 < found.middle < 0.3 == pytest.approx(found.high)


def test_isotonic_is_the_least_squares_fit():
    values = np.random.default_rng(0).normal(size=(20, 9)) + 0.2 * np.arange(9)
    assert isotonic(values) == pytest.approx(np.array([isotonic_regression(row).x for row in values]))


def test_curves_that_cannot_be_compared_are_refused_in_one_line():
    with pytest.raises(UserError, match="different budgets"):
        worth(curves(STEPS[:-1], np.zeros((2, 39))), POLICY)
    with pytest.raises(UserError, match="×1"):
        worth(POLICY[2], {2: POLICY[2]})
    with pytest.raises(UserError, match="do not rise"):
        curves(STEPS[::-1], np.zeros((2, 40)))
    with pytest.raises(UserError, match="ceiling"):
        curves(STEPS, np.zeros((2, 40)), 1, 1)
    with pytest.raises(UserError, match="agents × evaluations"):
        curves(STEPS, np.zeros(40))
