"""What came of it: statistics, tables, figures, pictures."""

from augury.report.figures import common_measure, learning_curves
from augury.report.pictures import draw_augmentation
from augury.report.statistics import Curve, first_to_reach, interquartile_mean, iqm_curve

__all__ = [
    "Curve",
    "common_measure",
    "draw_augmentation",
    "first_to_reach",
    "interquartile_mean",
    "iqm_curve",
    "learning_curves",
]
