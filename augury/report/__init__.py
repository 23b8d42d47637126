"""Reports: statistics, verdicts, tables, figures, pictures, pages.

Names are loaded when first used: figures and pages take a second to import, and training needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.lazy import loading

if TYPE_CHECKING:
    from augury.report.figures import common_measure, study_figure
    from augury.report.page import write_page
    from augury.report.verdicts import Verdict, verdicts_of
    from augury.runs.scores import interquartile_mean
    from augury.runs.statistics import Curve, first_to_reach, iqm_curve

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

_HOMES = {
    "Curve": "augury.runs.statistics",
    "Verdict": "augury.report.verdicts",
    "common_measure": "augury.report.figures",
    "first_to_reach": "augury.runs.statistics",
    "interquartile_mean": "augury.runs.scores",
    "iqm_curve": "augury.runs.statistics",
    "study_figure": "augury.report.figures",
    "verdicts_of": "augury.report.verdicts",
    "write_page": "augury.report.page",
}

__getattr__ = loading(__name__, _HOMES)
