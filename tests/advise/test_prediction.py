"""Predictions on tables with a planted law: found again, with intervals that hold, and silent outside."""

import json
from dataclasses import replace

import numpy as np
import pytest

from augury.advise.coefficients import as_json, from_json, read, write
from augury.advise.features import NAMES, TERMS, Settings
from augury.advise.judging import PREDICTION, judge
from augury.advise.prediction import fit
from augury.advise.table import Row
from augury.errors import UserError

GRID = ((1.0, 1.0), (4.0, 1.0), (8.0, 2.0), (1.0, 0.25))


def law(signals, ratio, update_ratio):
    """log2 of the worth: reach helps, with m; what is wrong hurts, by its share of what is learned from."""
    wrong = np.log2(1 + (signals["invalid"] * signals["relative_error"]) ** 2)
    wrong *= 2 * update_ratio / (1 + update_ratio)
    reach = np.log2(signals["data_multiplier"])
    return (
        0.8 * reach
        + 0.1 * reach * np.log2(ratio)
        + 0.15 * np.log2(signals["reward_density_ratio"])
        - 1.1 * wrong
    )


def table(families=8, augmentations=12, noise=0.3, between=0.3, seed=0):
    """Families with effects of their own, augmentations with signals, arms with m and α."""
    generator = np.random.default_rng(seed)
    rows = []
    for family in range(families):
        effect = generator.normal(0, between)
        shift = generator.normal(0, 0.5)
        for augmentation in range(augmentations):
            wrong = generator.random() < 0.4
            signals = {
                "invalid": float(wrong * generator.uniform(0.2, 1)),
                "relative_error": float(generator.lognormal(0, 0.8)),
                "data_multiplier": float(2 ** np.abs(generator.normal(1 + shift / 2, 0.8))),
                "reward_density_ratio": float(2 ** generator.normal(shift, 1.5)),
                "evaluation_coverage": float(generator.uniform(0, 0.6)),
                "asymmetry": None if augmentation % 3 == 0 else float(generator.uniform(0, 1.5)),
                "replay_ratio": 0.5,
            }
            for ratio, update_ratio in GRID:
                y = law(signals, ratio, update_ratio) + effect + generator.normal(0, noise)
                rows.append(row(f"family-{family}", augmentation, signals, ratio, update_ratio, y))
    return rows


def row(family, augmentation, signals, ratio, update_ratio, y, **changes):
    y = float(np.clip(y, -3, 3))
    return Row(
        family=family,
        task=f"family/{family}",
        augmentation=f"family/augmentation-{augmentation}",
        truth="exact",
        algorithm="td3",
        ratio=ratio,
        update_ratio=update_ratio,
        steps=100_000,
        signals=signals,
        agents=10,
        area=0.5 + y / 10,
        area_none=0.5,
        gain=y / 10,
        gain_low=y / 10 - 0.05,
        gain_high=y / 10 + 0.05,
        early_gain=y / 100,
        worth=2**y,
        worth_low=2 ** (y - 0.3),
        worth_high=2 ** (y + 0.3),
        **changes,
    )


@pytest.fixture(scope="module")
def model():
    return fit(table())


def test_a_planted_law_is_found_and_no_sign_contradicts_theory(model):
    found = as_json(model)["coefficients"]
    assert found["reach"] == pytest.approx(0.8, abs=0.25)
    assert found["wrong"] == pytest.approx(-1.1, abs=0.25)
    for term in TERMS:
        assert found[term.name] * term.sign >= 0, term.name


def test_predictions_follow_signals(model):
    good = dict(table()[0].signals, invalid=0.0, data_multiplier=8.0, reward_density_ratio=1.0)
    settings = Settings(ratio=1, update_ratio=1)
    valid = model.predict(good, settings)
    wrong = model.predict({**good, "invalid": 1.0, "relative_error": 4.0}, settings)
    assert valid.worth.low < 2 ** (0.8 * 3) < valid.worth.high
    assert valid.helps > 0.95
    assert wrong.helps < 0.2
    assert wrong.worth.high < valid.worth.middle


def test_an_unknown_signal_widens_the_interval(model):
    signals = dict(table()[0].signals)
    settings = Settings(1, 1)
    sure = model.predict(signals, settings)
    unsure = model.predict({**signals, "data_multiplier": None}, settings)
    assert "reach" in unsure.unknown
    assert "reach" not in sure.unknown
    assert np.log2(unsure.worth.high / unsure.worth.low) > 1.2 * np.log2(sure.worth.high / sure.worth.low)


def test_the_best_m_and_alpha_follow_the_law(model):
    reaching = dict(table()[0].signals, invalid=0.0, data_multiplier=2.5)
    many = model.best(reaching)
    assert many.ratio > 1
    wrong = {**reaching, "invalid": 0.5, "relative_error": 4.0}
    assert model.best(wrong).update_ratio == 0.25
    assert model.best(lambda ratio, update_ratio: wrong).update_ratio == 0.25
    assert 0 <= model.regret.low <= model.regret.middle <= model.regret.high < 0.1


def test_another_world_is_outside_instead_of_guessed(model):
    settings = Settings(1, 1)
    signals = dict(table()[0].signals)
    assert not model.predict(signals, settings).outside
    strange = model.predict({**signals, "data_multiplier": 60, "replay_ratio": 64}, settings)
    assert strange.worth is None
    assert strange.helps is None
    assert "the replay ratio is 64 ('replay')" in strange.outside
    assert model.best({**signals, "replay_ratio": 64}) is None


def test_what_is_shipped_is_silent_far_away():
    signals = {"data_multiplier": 1.5, "invalid": 0.0, "replay_ratio": 0.5}
    assert read().predict(signals, Settings(1, 1)).worth is not None
    assert read().predict({**signals, "replay_ratio": 1000.0}, Settings(1, 1)).worth is None


def test_a_handful_of_odd_rows_does_not_make_everything_familiar():
    ordinary = table(families=5)
    odd = [replace(one, family="odd", signals={**one.signals, "replay_ratio": 32}) for one in ordinary[:3]]
    far = {**ordinary[0].signals, "replay_ratio": 64}
    assert fit([*ordinary, *odd]).predict(far, Settings(1, 1)).worth is None


@pytest.mark.parametrize("signal", ["relative_error", "reward_error"])
def test_what_is_more_wrong_is_never_worth_more(signal):
    shipped = read()
    known = {
        "data_multiplier": 1.5,
        "invalid": 1.0,
        "relative_error": 0.1,
        "reward_error": 0.1,
        "replay_ratio": 0.5,
    }
    for ratio, update_ratio in shipped.grid:
        worths = [
            shipped.predict({**known, signal: error}, Settings(ratio, update_ratio)).worth
            for error in (0.0, 0.1, 0.3, 1.0)
        ]
        middles = [worth.middle for worth in worths if worth is not None]
        assert middles == sorted(middles, reverse=True)
        assert len(middles) > 1


def test_copies_that_change_nothing_do_not_help_however_many(model):
    copies = dict(table()[0].signals, invalid=0.0, data_multiplier=1.0, reward_density_ratio=1.0)
    copies |= {"evaluation_coverage": 0.0, "asymmetry": 0.0}
    for ratio, update_ratio in GRID:
        predicted = model.predict(copies, Settings(ratio, update_ratio))
        assert predicted.worth.middle == pytest.approx(predicted.batch)
        assert predicted.helps < 0.7


def test_a_family_from_another_world_is_not_answered_when_it_is_left_out():
    ordinary = table(families=5)
    alien = [
        replace(one, family="alien", signals={**one.signals, "replay_ratio": 32}) for one in ordinary[:48]
    ]
    judged = judge([*ordinary, *alien])
    assert judged.by_family["alien"].answered == 0
    assert judged.by_family["family-0"].answered > 0.9


def test_judged_on_families_left_out_it_beats_what_anyone_would_use():
    judged = judge(table(noise=0.2, between=0.1))
    mine = judged.overall[PREDICTION]
    assert mine.sign > 0.9
    assert mine.spearman > 0.8
    assert 0 <= mine.regret < mine.fixed_regret
    for name in ("always augment", "coverage alone", "reward density alone", "validity alone"):
        assert judged.overall[name].sign < mine.sign
    assert judged.overall["a tenth of the training"].spearman == pytest.approx(1)
    assert judged.table().count("\n| ") == 7 + 8 + 1


@pytest.mark.slow
def test_intervals_hold_what_they_say_on_families_never_seen():
    held = [judge(table(families=10, seed=seed)).overall[PREDICTION].held for seed in range(6)]
    assert 0.85 < np.mean(held) < 0.95, held


def test_a_model_is_read_as_it_was_written(model, tmp_path):
    write(tmp_path / "model.json", model)
    again = read(tmp_path / "model.json")
    assert again.provenance == model.provenance
    assert model.provenance.rows == 8 * 12 * 4
    signals, settings = table()[5].signals, Settings(4, 1)
    assert again.predict(signals, settings).worth == pytest.approx(
        model.predict(signals, settings).worth, 1e-3
    )
    (tmp_path / "model.json").write_text(json.dumps({**as_json(model), "coefficients": {}}))
    with pytest.raises(UserError, match="holds no coefficients of this version"):
        read(tmp_path / "model.json")
    assert from_json(json.loads(json.dumps(as_json(model)))).grid == model.grid


def test_a_table_of_too_few_families_is_refused():
    with pytest.raises(UserError, match="needs 3 families"):
        fit(table(families=2))


def test_every_term_is_made_of_variables():
    assert {name for term in TERMS for name in term.of} == set(NAMES)
