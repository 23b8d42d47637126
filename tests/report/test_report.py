"""Statistics against their definitions, and labels that tell arms apart."""

import numpy as np

from augury.fleet import Result
from augury.report import first_to_reach, interquartile_mean, iqm_curve


def result(curves, **asked) -> Result:
    settings = {
        "environment": "goal2d",
        "algorithm": "td3",
        "augmentation": None,
        "ratio": 0.0,
        "update_ratio": 0.0,
        "policy_data": 1,
    }
    agents, evaluations = curves.shape
    return Result(
        settings | asked,
        {
            "steps": 1_000 * np.arange(1, evaluations + 1),
            "seeds": np.arange(agents),
            "success": curves,
            "diverged": np.zeros(curves.shape, bool),
        },
    )


def test_iqm_is_the_mean_of_the_middle_half():
    scores = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [100.0]])
    assert interquartile_mean(scores) == [3.5]
    assert interquartile_mean(np.array([[0.25]])) == [0.25]


def test_the_belt_covers_the_truth_as_often_as_it_says():
    generator = np.random.default_rng(0)
    hits = 0
    for trial in range(300):
        curve = iqm_curve(generator.normal(0.5, 0.1, (20, 1)), resamples=500, seed=trial)
        hits += curve.low[0] <= 0.5 <= curve.high[0]
    assert 0.88 <= hits / 300 <= 0.98


def test_the_belt_follows_from_the_seed():
    scores = np.random.default_rng(1).uniform(size=(10, 4))
    first, again, other = (iqm_curve(scores, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.low, again.low)
    assert (first.low != other.low).any()
    assert (first.low <= first.middle).all()
    assert (first.middle <= first.high).all()


def test_first_to_reach_finds_the_step_or_says_there_is_none():
    steps = np.array([10, 20, 30])
    assert first_to_reach(steps, np.array([0.1, 0.95, 0.8]), 0.9) == 20
    assert first_to_reach(steps, np.array([0.1, 0.2, 0.3]), 0.9) is None


def test_labels_tell_arms_apart():
    curves = np.zeros((1, 1))
    assert result(curves).label == "no augmentation"
    assert result(curves, policy_data=4).label == "×4 policy data"
    assert result(curves, algorithm="sac").label == "SAC no augmentation"
    asked = {"augmentation": "goal2d/translate", "ratio": "inf", "update_ratio": 0.5}
    assert result(curves, **asked).label == "translate m=inf α=0.5"
