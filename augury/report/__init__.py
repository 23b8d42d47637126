"""What came of it: statistics, verdicts, tables, figures, pictures, pages."""

from augury.report.figures import common_measure, study_figure
from augury.report.page import write_page
from augury.report.statistics import Curve, first_to_reach, iqm_curve
from augury.report.verdicts import Verdict, verdicts_of
from augury.runs.scores import interquartile_mean

__all__ = [
    "Curve",
    "Verdict",
    "common_measure",
    "first_to_reach",
    "interquartile_mean",
    "iqm_curve",
    "study_figure",
    "verdicts_of",
    "write_page",
]
