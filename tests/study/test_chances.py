"""Whose transitions a study of probabilities relabels: those of any environment that can give some."""

import pytest

from augury.errors import UserError
from augury.study.chances import check, measure
from augury.study.schema import Chance, ChanceStudy
from tests.sledges import sledges

__all__ = ["sledges"]


def study(task, augmentation, paper=0.05):
    chance = Chance(task=task, augmentation=augmentation, paper=paper)
    return ChanceStudy(title="chances", within=0.5, samples=20_000, chances=(chance,))


def test_an_environment_in_jax_is_sampled_by_its_own_steps(sledges):
    """Of positions around the square [-1, 1]² few are within 0.3 of a goal in [0, 1]²."""
    (row,) = measure(study("sledges:reaching", "sledges:new_goal"))
    assert 0.03 < row.measured < 0.09
    assert row.confirmed == (abs(row.measured - 0.05) <= 0.025)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("sledges:sledge", "sledges:sledge has no goals to relabel: it is measured by its returns"),
        (
            "sledges:aiming",
            r"aiming has no transitions to relabel: give it a method sample_transition\(key\)",
        ),
    ],
)
def test_what_cannot_be_sampled_is_refused(sledges, task, message):
    with pytest.raises(UserError, match=message):
        check(study(task, "sledges:mirror"), "study.toml")
