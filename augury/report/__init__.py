"""What came of it: statistics, figures, pictures."""

from augury.report.figures import learning_curves
from augury.report.pictures import draw_augmentation
from augury.report.statistics import Curve, first_to_reach, interquartile_mean, iqm_curve

__all__ = [
    "Curve",
    "draw_augmentation",
    "first_to_reach",
    "interquartile_mean",
    "iqm_curve",
    "learning_curves",
]
