"""Statistics over agents: against their definitions, other programs and themselves."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from augury.runs import statistics
from augury.runs.scores import interquartile_mean
from augury.runs.statistics import (
    Bootstrap,
    aggregate,
    aggregate_curve,
    area,
    between,
    difference,
    final,
    iqm_curve,
    probability_of_improvement,
    steps_to_reach,
)

SCORES = np.random.default_rng(0).gamma(2.0, size=(13, 4))


def trimmed(scores, axis=0):
    return stats.trim_mean(scores, 0.25, axis=axis)


OTHERS = {"iqm": trimmed, "mean": np.mean}


def every_draw(scores):
    """All resamples of few agents, each as likely as any other."""
    return np.array([scores[list(drawn)] for drawn in product(range(len(scores)), repeat=len(scores))])


@pytest.mark.parametrize("agents", range(1, 14))
def test_statistics_agree_with_scipy_and_numpy(agents):
    for statistic, other in OTHERS.items():
        np.testing.assert_allclose(aggregate(SCORES[:agents], statistic), other(SCORES[:agents], axis=0))
        np.testing.assert_allclose(aggregate(SCORES[:agents, 0], statistic), other(SCORES[:agents, 0]))
    np.testing.assert_array_equal(interquartile_mean(SCORES), aggregate(SCORES))


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf])
def test_a_diverged_agent_counts_as_the_worst(lost):
    scores = np.array([3.0, 1.0, 2.0, 4.0, 8.0, 7.0, 6.0, lost])
    assert interquartile_mean(scores) == (2 + 3 + 4 + 6) / 4  # trimmed are it and 1, 7 and 8
    scores[:3] = lost
    assert interquartile_mean(scores) == -np.inf
    assert aggregate(np.append(SCORES[:, 0], lost), "mean") == -np.inf
    curve = iqm_curve(np.array([scores, np.arange(8.0)]).T)
    assert (curve.low[0], curve.middle[0]) == (-np.inf, -np.inf)
    assert 0 < curve.low[1] < curve.middle[1] == 3.5


@pytest.mark.parametrize("statistic", ["iqm", "mean"])
@pytest.mark.parametrize("agents", [3, 4, 5])
def test_intervals_are_percentiles_of_all_resamples(statistic, agents):
    scores = SCORES[:agents, :2]
    exact = OTHERS[statistic](every_draw(scores), axis=1)
    found = aggregate_curve(scores, statistic, Bootstrap(confidence=0.9, resamples=40_000))
    # Few draws are possible, so percentiles are steps: they lie between those of a little more and less.
    for end, share in ((found.low, 0.05), (found.high, 0.95)):
        around = np.quantile(exact, [share - 0.005, share + 0.005], axis=0)
        assert (around[0] - 1e-9 <= end).all()
        assert (end <= around[1] + 1e-9).all()


@pytest.mark.parametrize("statistic", ["iqm", "mean"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_agree_with_scipys_bootstrap(statistic, confidence):
    scores = SCORES[:, 0]
    other = stats.bootstrap(
        (scores,),
        OTHERS[statistic],
        n_resamples=20_000,
        method="percentile",
        confidence_level=confidence,
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = aggregate_curve(scores, statistic, Bootstrap(confidence, resamples=20_000))
    np.testing.assert_allclose(found[1:], other, atol=0.02 * scores.std())


def test_every_evaluation_is_of_the_same_drawn_agents():
    scores = SCORES[:, 0]
    low, high = iqm_curve(np.array([scores, -scores]).T)[1:]
    np.testing.assert_array_equal(low, -high[::-1])
    assert low[0] != high[0]


def test_intervals_follow_from_the_seed():
    for interval in (
        lambda seed: difference(SCORES[:, 0], SCORES[:, 1], bootstrap=Bootstrap(seed=seed)),
        lambda seed: probability_of_improvement(SCORES[:, 0], SCORES[:, 1], Bootstrap(seed=seed)),
        lambda seed: aggregate_curve(SCORES[:, 0], "mean", Bootstrap(seed=seed)),
    ):
        assert interval(0) == interval(0) != interval(1)


def test_drawing_few_at_a_time_changes_nothing(monkeypatch):
    whole = iqm_curve(SCORES, resamples=101)
    monkeypatch.setattr(statistics, "AT_ONCE", 40)  # three resamples
    np.testing.assert_array_equal(iqm_curve(SCORES, resamples=101), whole)


def test_area_is_the_trapezoids_over_the_span():
    steps = np.array([10, 20, 40])
    curves = np.array([[0.0, 1.0, 1.0], [0.3, 0.3, 0.3], [1.0, 0.0, 0.5]], np.float32)
    np.testing.assert_allclose(area(steps, curves), [25 / 30, 0.3, 10 / 30])
    np.testing.assert_allclose(area(1_000 * steps, curves), area(steps, curves))
    np.testing.assert_array_equal(area(steps[:1], curves[:, :1]), curves[:, 0])


def test_final_is_the_last_evaluation():
    np.testing.assert_array_equal(final(np.array([[0.0, 1.0], [3.0, 2.0]])), [1, 2])


def test_the_area_and_end_of_a_diverged_agent_are_the_worst():
    curves = np.array([[1.0, np.nan, np.nan], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(area(np.arange(3), curves), [-np.inf, 1])
    np.testing.assert_array_equal(final(curves), [-np.inf, 1])


def test_part_of_a_curve_lies_on_it():
    steps, curves = np.array([0, 10, 20, 30]), np.array([[0.0, 1.0, 3.0, 0.0]])
    kept, part = between(steps, curves, 5, 20)
    assert kept.tolist() == [5, 10, 20]
    assert part.tolist() == [[0.5, 1, 3]]
    kept, part = between(steps, curves, 0, 30)
    np.testing.assert_array_equal(kept, steps)
    np.testing.assert_array_equal(part, curves)
    assert between(steps, curves, 15, 15)[1].tolist() == [[2]]
    with pytest.raises(AssertionError, match="5 to 31 is not within the run"):
        between(steps, curves, 5, 31)


def test_part_of_a_diverged_agents_curve_is_its_own():
    steps, curves = np.array([0, 10, 20, 30]), np.array([[1.0, 2.0, np.nan, np.nan]])
    assert between(steps, curves, 5, 10)[1].tolist() == [[1.5, 2]]
    assert between(steps, curves, 5, 25)[1].tolist() == [[1.5, 2, -np.inf, -np.inf]]
    assert between(steps, curves, 5, 15)[1].tolist() == [[1.5, 2, -np.inf]]


def test_steps_to_reach_are_those_of_the_drawn_curves():
    steps = np.array([10, 20, 30, 40])
    curves = np.array([[0.0, 0.0, 0.6, 1.0], [0.0, 0.5, 0.9, 1.0], [0.6, 0.7, 0.8, 1.0]])
    exact = [steps[np.argmax(drawn.mean(axis=0) >= 0.5)] for drawn in every_draw(curves)]
    assert [exact.count(step) for step in steps] == [1, 7, 19, 0]  # of 27
    for confidence, low in ((0.95, 10), (0.9, 20), (0.2, 30)):
        found = steps_to_reach(steps, curves, 0.5, "mean", Bootstrap(confidence))
        assert found == (30, low, 30)
    assert steps_to_reach(steps, curves, 0.0) == (10, 10, 10)


def test_steps_to_reach_have_no_upper_end_where_some_agents_never_do():
    steps, never = np.array([10, 20]), np.zeros(2)
    fast, slow = np.array([1.0, 1.0]), np.array([0.0, 1.0])
    assert steps_to_reach(steps, np.array([fast] * 5 + [never] * 4), 0.5) == (10, 10, None)
    assert steps_to_reach(steps, np.array([slow] * 99 + [never]), 0.5) == (20, 20, 20)
    assert steps_to_reach(steps, np.array([fast] + [never] * 99), 0.5) == (None, None, None)
    # The other way about: the threshold is not reached, but would be by other agents.
    assert steps_to_reach(steps, np.array([slow] * 4 + [never] * 5), 0.5) == (None, 20, None)


@pytest.mark.parametrize("agents", [(1, 1), (4, 13), (13, 6)])
def test_probability_of_improvement_is_mann_and_whitneys_statistic(agents):
    first, second = SCORES[: agents[0], 0].round(), SCORES[: agents[1], 1].round()  # with ties
    statistic = stats.mannwhitneyu(first, second).statistic
    found = probability_of_improvement(first, second)
    assert found.middle == pytest.approx(statistic / np.prod(agents))
    assert found.low <= found.middle <= found.high


def test_probability_of_improvement_by_hand():
    assert probability_of_improvement(np.array([1.0, 2.0]), np.array([1.0, 0.0, 3.0]))[0] == 3.5 / 6
    assert probability_of_improvement(np.array([5.0, 2.0]), np.array([1.0, 0.0, 1.5])) == (1, 1, 1)
    assert probability_of_improvement(np.full(7, 0.3), np.full(3, 0.3)) == (0.5, 0.5, 0.5)
    # A diverged agent is worse than any other, and as bad as another diverged one.
    assert probability_of_improvement(np.array([np.nan, -1e9]), np.array([np.nan]))[0] == 0.75


def two_arms(statistic):
    return stats.bootstrap(
        (SCORES[:, 0], SCORES[:9, 1]),
        statistic,
        n_resamples=10_000,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(1),
    ).confidence_interval


def test_the_interval_of_a_probability_of_improvement_agrees_with_scipys():
    def statistic(first, second, axis):
        return stats.mannwhitneyu(first, second, axis=axis, method="asymptotic").statistic / (13 * 9)

    found = probability_of_improvement(SCORES[:, 0], SCORES[:9, 1], Bootstrap(resamples=10_000))
    np.testing.assert_allclose(found[1:], two_arms(statistic), atol=0.012)


@pytest.mark.parametrize("statistic", ["iqm", "mean"])
def test_a_difference_and_its_interval_agree_with_scipys(statistic):
    def apart(first, second, axis):
        return OTHERS[statistic](first, axis=axis) - OTHERS[statistic](second, axis=axis)

    found = difference(SCORES[:, 0], SCORES[:9, 1], statistic, Bootstrap(resamples=10_000))
    assert found.middle == pytest.approx(apart(SCORES[:, 0], SCORES[:9, 1], 0))
    np.testing.assert_allclose(found[1:], two_arms(apart), atol=0.03)


def test_the_two_arms_of_a_difference_are_drawn_apart():
    found = difference(SCORES[:, 0], SCORES[:, 0])
    assert found.low < found.middle == 0 < found.high


def test_a_difference_that_cannot_be_told_is_unbounded():
    lost, healthy = np.full(5, np.nan), np.arange(5.0)
    np.testing.assert_array_equal(difference(lost, lost), [np.nan, -np.inf, np.inf])
    np.testing.assert_array_equal(difference(healthy, lost), [np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(difference(lost, healthy), [-np.inf, -np.inf, -np.inf])
    some = difference(np.array([np.nan, 1.0, 2.0, 3.0, 4.0]), healthy)
    assert some.middle == 0
    assert some.low == -np.inf
    assert np.isfinite(some.high)


def test_belts_cover_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(0)
    studies = generator.normal(0.5, 0.1, (24, 600))  # one an evaluation
    for statistic in ("iqm", "mean"):
        for confidence in (0.8, 0.95):
            curve = aggregate_curve(studies, statistic, Bootstrap(confidence, 500))
            covered = np.mean((curve.low <= 0.5) & (curve.high >= 0.5))
            assert confidence - 0.06 < covered < confidence + 0.03


def test_intervals_between_arms_cover_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(0)
    covered = np.zeros((300, 2))
    for trial in range(300):
        first, second = generator.normal(1, 1, 20), generator.normal(0, 1, 30)
        bootstrap = Bootstrap(resamples=300, seed=trial)
        apart = difference(first, second, "iqm", bootstrap)
        better = probability_of_improvement(first, second, bootstrap)
        covered[trial] = apart.low <= 1 <= apart.high, better.low <= stats.norm.cdf(2**-0.5) <= better.high
    assert (covered.mean(axis=0) > 0.9).all()
    assert (covered.mean(axis=0) < 0.99).all()
