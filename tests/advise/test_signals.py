"""Every signal, on cases whose answer is known."""

from dataclasses import dataclass, fields

import jax.numpy as jnp
import numpy as np
import pytest

from augury.advise import Signals, gather, measure
from augury.advise.signals import kernel
from augury.advise.signals.coverage import coverage
from augury.advise.signals.kernel import Curve, multiplier, variances
from augury.advise.signals.points import LEAST_SPREAD, Whitening
from augury.advise.signals.replay import replayed
from augury.advise.signals.reward import common, density, progress, rewarding
from augury.advise.signals.validity import Scales, validity
from augury.advise.signals.values import Rated, log_error_ratio
from augury.envs.goal2d import Goal2D
from augury.errors import UserError
from augury.replay.asymmetry import asymmetry, keeps_reward
from augury.verify.simulators import simulator_of
from tests.advise.pilots import pilot


def identity(key, transition):
    return transition


def off(key, transition):
    """The next state is a fifth of the longest step to the side."""
    return transition._replace(next_observation=transition.next_observation.at[0].add(0.01))


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_whitened_rows_have_unit_covariance_and_a_constant_stays_finite():
    rows = draw(500, 3) @ np.array([[2, 1, 0], [0, 0.1, 0], [0, 0, 0]])
    white = Whitening.of(rows)
    np.testing.assert_allclose(np.cov(white(rows).T, bias=True)[:2, :2], np.eye(2), atol=1e-3)
    moved = white(rows + np.array([0, 0, 1])) - white(rows)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1 / LEAST_SPREAD)


def test_copies_of_the_same_states_cover_nothing():
    states, visited = draw(200, 2), draw(50, 2, seed=1)
    assert coverage(states, states[:100], states[:100], visited) == (0, 0, 0, 0)


def test_coverage_counts_what_is_new_and_what_comes_nearer():
    line = np.column_stack([np.arange(100.0), np.zeros(100)])
    evaluated = line[:50] + np.array([0, 2.0])
    # Half of the augmented states are where observed ones are; the others lie between those and evaluation.
    augmented = np.vstack([line[:25], line[:25] + np.array([0, 1.5])])
    found = coverage(line, augmented, line[:50], evaluated)
    assert found.added == 0.5
    assert found.nearer == pytest.approx(0.5, abs=0.04)  # those at the ends of the line come nearer too
    assert found.approach > 0.5 * np.log(2 / 0.5) - 1e-9
    # One apart along the line, so nothing counts as nearer than 1: from 2 to that, for half of the copies.
    assert found.departure == pytest.approx(-0.5 * np.log(2))


def test_copies_that_leave_for_where_no_policy_goes_depart():
    line = np.column_stack([np.arange(100.0), np.zeros(100)])
    away = line + np.array([0, 8.0])
    assert coverage(line, away, line, line[:50] + np.array([0, 1.0])).departure > 0.5 * np.log(7)


def test_reward_densities_and_their_ratio():
    found = density(np.arange(100) < 1, np.arange(50) < 10)
    assert found[:2] == (0.01, 0.2)
    assert found.ratio == pytest.approx((0.2 + 0.005) / (0.01 + 0.005))
    assert density(np.zeros(4_000, bool), np.zeros(2_048, bool)) == (0, 0, 1)
    copies = density(np.arange(4_000) < 1_000, np.arange(2_048) < 512)
    assert copies == (0.25, 0.25, 1), "copies of what was observed are rewarded as often, however many"


def test_reward_is_sparse_where_most_steps_get_the_same():
    assert common(np.r_[np.full(98, -1.0), 0, 0]) == 0.98
    assert common(np.arange(50.0)) == 0.02
    assert common(np.zeros(7)) == 1


def test_progress_is_what_policies_gain_on_what_was_observed():
    assert progress(np.array([-1.0, 1.0]), np.array([1.0, 2.0])) == 1.5
    assert progress(np.full(9, 0.1), np.array([5.0])) == 0, "without differences there is no unit"


def test_rewards_beyond_the_upper_decile_count_where_success_is_not_defined():
    observed, augmented = rewarding(np.arange(100.0), np.array([0.0, 95, 99]))
    assert observed.mean() == 0.1
    assert augmented.tolist() == [False, True, True]
    ties, _ = rewarding(np.r_[np.zeros(50), np.ones(50)], np.zeros(3))
    assert ties.mean() == 0.5
    with pytest.raises(UserError, match="rewards are all equal"):
        rewarding(np.ones(5), np.ones(5))


def test_variances_are_those_of_a_gaussian_process():
    rows, evaluated = draw(6, 2), draw(4, 2, seed=1)

    def covariance(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / 2)

    for count, left in enumerate(variances(rows, evaluated, scale=1.0), start=1):
        some, between = rows[:count], covariance(rows[:count], evaluated)
        inverse = np.linalg.inv(covariance(some, some) + kernel.JITTER * np.eye(count))
        assert left == pytest.approx((1 - (between * (inverse @ between)).sum(0)).mean(), rel=1e-6)


@pytest.mark.parametrize("copies", [1, 3])
def test_new_rows_of_the_same_kind_are_worth_as_many_observed_ones(copies):
    place = np.tile(np.arange(kernel.SETS * kernel.BASE), copies)
    curve = Curve.of(draw(1_000, 3), draw(200, 3, seed=1))
    found = multiplier(curve, draw(len(place), 3, seed=2), place)
    assert not found.capped
    assert found.value == pytest.approx(1 + copies, rel=0.15)


def test_rows_that_are_there_already_are_worth_nothing_and_far_more_is_capped():
    observed, evaluated = draw(300, 3), draw(100, 3, seed=1)
    curve = Curve.of(observed, evaluated)
    place = np.arange(kernel.SETS * kernel.BASE)
    assert multiplier(curve, observed[place], place) == (1, False, 0)
    found = multiplier(curve, np.tile(evaluated, (4, 1)), np.arange(400) // 100 * kernel.BASE)
    assert found.value == 300 / kernel.BASE
    assert found.capped
    with pytest.raises(UserError, match="needs 256 observed transitions, not 100"):
        Curve.of(observed[:100], evaluated)


def test_values_are_predicted_better_with_right_rows_where_there_were_none_and_worse_with_wrong_ones():
    def rated(points, sign=1):
        return Rated(points, np.sin(points[:, 0]) + sign * points[:, 1])

    left, everywhere = draw(300, 2), draw(300, 2, seed=1)
    left[:, 1] = -abs(left[:, 1])
    mirrored = left * np.array([1, -1])
    ask = rated(everywhere)
    assert log_error_ratio(rated(left), rated(mirrored), ask) < -1
    assert log_error_ratio(rated(left), rated(mirrored, sign=-1), ask) > 0.1
    assert log_error_ratio(rated(left), rated(left), ask) == pytest.approx(0, abs=1e-6)
    with pytest.raises(UserError, match="all equal"):
        log_error_ratio(rated(left), rated(left), Rated(everywhere, np.ones(300)))


def test_asymmetry_of_critics_that_are_symmetric_opposed_or_constant():
    values = draw(2_000)
    assert asymmetry(values, values) == 0
    assert asymmetry(values, -values) == pytest.approx(4, rel=0.01)
    assert asymmetry(values, draw(2_000, seed=1)) == pytest.approx(2, rel=0.1)
    with pytest.raises(UserError, match="all equal"):
        asymmetry(np.ones(50), np.ones(50))
    assert keeps_reward(values, values + 1e-6, span=1.0)
    assert not keeps_reward(values, np.r_[values[:-1], 9.0], span=1.0)


def test_replay_of_copies():
    assert replayed(0.5, 4, 2) == (0.5, 0.125, 2, 0.5)
    assert replayed(0.5, np.inf, 1).augmented_replay_ratio == 0
    with pytest.raises(UserError, match="ratio must be above 0, not 0"):
        replayed(0.5, 0, 1)


def test_validity_of_a_pendulum_mirrored_and_mirrored_wrongly():
    simulator = simulator_of("gymnasium:Pendulum-v1")
    observed = simulator.collect(200, None, 0)
    signs = np.array([1, -1, -1])
    mirrored = observed._replace(
        observation=observed.observation * signs,
        action=-observed.action,
        next_observation=observed.next_observation * signs,
    )
    bounds = simulator.observation_bounds
    scales = Scales.of(observed, bounds)
    assert validity(simulator, observed, mirrored, scales) == (0, 0, 0, 0)
    beside = np.array([scales.change * scales.half[0], 0, 0])  # just as much as a step changes
    wrong = mirrored._replace(next_observation=mirrored.next_observation + beside)
    assert validity(simulator, observed, wrong, scales) == (1, pytest.approx(1, rel=1e-3), 0, 0)
    span = np.ptp(scales.reward)
    paid = mirrored._replace(reward=mirrored.reward + 0.5 * span)  # which widens the range to 1.5 of it
    told = validity(simulator, observed, paid, scales)
    assert told == (1, pytest.approx(0, abs=1e-3), pytest.approx(1 / 3), 0)
    ended = mirrored._replace(terminated=np.arange(200) < 50)
    assert validity(simulator, observed, ended, scales) == (0.25, pytest.approx(0, abs=1e-3), 0, 0.25)


def test_a_reward_that_was_never_seen_is_measured_by_the_rewards_that_are_known():
    given = pilot(edit=lambda seen: seen._replace(reward=np.full_like(seen.reward, -1.0)))
    found = measure(given, lambda key, seen: seen._replace(reward=seen.reward + 1))
    assert found.reward_error == pytest.approx(1 / 3), "of the range from -1, observed, to 2, claimed"


def test_the_identity_adds_nothing_and_a_wrong_step_is_said_to_be_invalid():
    given = pilot()
    same = measure(given, identity)
    assert (same.invalid, same.relative_error) == (0, 0)
    assert (same.added_coverage, same.evaluation_coverage, same.evaluation_approach) == (0, 0, 0)
    assert (same.data_multiplier, same.variance_ratio, same.asymmetry) == (1, 0, 0)
    assert same.value_error_ratio == pytest.approx(0, abs=1e-6)
    assert same.augmented_replay_ratio == same.replay_ratio == 0.5
    wrong = measure(given, off)
    assert wrong.invalid == 1
    assert wrong.relative_error == pytest.approx(0.4, rel=0.2)  # of half of the longest step
    assert measure(given, off) == wrong


def test_a_critic_that_knows_distances_is_symmetric_under_rotation_and_translation_changes_rewards():
    given = pilot()
    turned = measure(given, "goal2d/rotate", ratio=2)
    assert turned.asymmetry == pytest.approx(0, abs=1e-9)
    assert turned.invalid == 0
    moved = measure(given, "goal2d/translate", ratio=2)
    assert moved.asymmetry is None
    assert "the augmentation changes rewards or ends, so the critic need not be symmetric" in moved.notes
    assert moved.invalid == 0


def test_what_cannot_be_known_is_a_note_and_no_traceback():
    @dataclass(frozen=True)
    class Sealed(Goal2D):
        restore = property()

    def raises(key, transition):
        raise ValueError("out of luck")

    def longer(key, transition):
        return transition._replace(action=jnp.append(transition.action, 0))

    def endless(key, transition):
        return transition._replace(reward=transition.reward / 0)

    def unrewarded(transition):
        return transition._replace(reward=0 * transition.reward, terminated=transition.terminated & False)

    sealed = measure(pilot(environment=Sealed(), edit=unrewarded), identity)
    assert (sealed.invalid, sealed.asymmetry, sealed.value_error_ratio) == (None, None, None)
    assert sealed.data_multiplier == 1
    said = " ".join(sealed.notes)
    assert "cannot be verified" in said
    assert "rewards are all equal" in said
    for broken, why in ((raises, "out of luck"), (longer, "keep its shape"), (endless, "not finite")):
        signals = measure(pilot(), broken)
        assert why in signals.notes[0]
        known = {field.name for field in fields(Signals) if getattr(signals, field.name) is not None}
        assert known == {"replay_ratio", "augmented_replay_ratio", "update_ratio", "use", "notes"}
    short = measure(pilot(40), identity)
    assert short.data_multiplier is None
    assert any("needs 256 observed transitions" in note for note in short.notes)


@pytest.mark.slow
def test_translating_covers_more_of_what_evaluation_visits_than_rotating():
    found = {"translate": [], "rotate": []}
    for seed in range(5):
        given = gather("goal2d", seed=seed)
        for name, signals in found.items():
            one = measure(given, f"goal2d/{name}", ratio=4, seed=seed)
            signals.append([one.evaluation_coverage, one.evaluation_approach, one.data_multiplier])
    translate, rotate = (np.median(signals, 0) for signals in found.values())
    assert (translate > rotate).all(), (translate, rotate)
