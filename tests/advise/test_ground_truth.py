"""What the table says of an arm because its task and its augmentation were made so."""

import pytest

from augury import augmentations, envs
from augury.advise.ground_truth import described, setting_of, truth_of
from augury.errors import UserError
from augury.fleet import Arm, resolved


@pytest.mark.parametrize(
    ("task", "augmentation", "truth"),
    [
        ("family/point", "family/reflect", "exact"),
        ("family/point", "family/identity", "useless"),
        ("family/point", "family/move-agent", "coverage-only"),
        ("family/point", "family/relabel-near", "reward-only"),
        ("family/point(wind=0.02)", "family/reflect", "slightly-wrong"),
        ("family/point(wind=0.2)", "family/reflect", "badly-wrong"),
        ("family/point(wind=0.2)", "family/relabel", "exact"),
        ("family/point", "family/reflect(error=0.02)", "slightly-wrong"),
        ("family/point", "family/relabel(reward_error=1)", "badly-wrong"),
        ("family/point", "family/noise(scale=0.02)", "slightly-wrong"),
        ("family/point", "family/noise(scale=0.2)", "badly-wrong"),
        ("family/pendulum", "family/turn", "badly-wrong"),
        ("family/maze", "family/rotate", "badly-wrong"),
        ("goal2d", "goal2d/rotate", "exact"),
    ],
)
def test_what_is_known_of_an_augmentation(task, augmentation, truth):
    assert truth_of(envs.make(task), augmentations.make(augmentation, task)) == truth


def asked(**settings):
    return resolved(Arm(**settings)).described()


def test_arms_are_compared_only_where_they_learn_as_often():
    arm = asked(environment="family/point", augmentation="family/reflect(error=0.1)", updates=32, ratio=4)
    found = described(arm)
    assert (found.family, found.replay_ratio, found.ratio, found.error) == ("point", 1, 4, 0.1)
    assert found.setting == setting_of(asked(environment="family/point", updates=32))
    assert found.setting != setting_of(asked(environment="family/point"))


def test_what_belongs_to_no_family_is_refused():
    with pytest.raises(UserError, match="walker2d belongs to no family"):
        setting_of(asked(environment="walker2d"))
