"""It learns, and augmentation helps: the paper's first claim, at a small size."""

import pytest

from augury.fleet import Arm, train
from augury.report import interquartile_mean


@pytest.mark.slow
def test_translate_learns_goal2d_while_no_augmentation_does_not_yet():
    plain = Arm(agents=4, steps=40_000, evaluate_every=40_000)
    augmented = Arm(agents=4, steps=40_000, evaluate_every=40_000, augmentation="goal2d/translate", ratio=4)
    without, with_translate = (
        interquartile_mean(result.curves())[-1] for result in train([plain, augmented])
    )
    assert with_translate > 0.6
    assert without < 0.3
