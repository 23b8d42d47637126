"""Arms × seeds from a file or from Python: `run_study`, and what it takes and returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.lazy import loading

if TYPE_CHECKING:
    from augury.study.claims import Claim
    from augury.study.cluster import Cluster
    from augury.study.entry import run_study
    from augury.study.local import Local
    from augury.study.record import Finished, Record
    from augury.study.runner import Event
    from augury.study.schema import Study

__all__ = ["Claim", "Cluster", "Event", "Finished", "Local", "Record", "Study", "run_study"]

_HOMES = {
    "Claim": "augury.study.claims",
    "Cluster": "augury.study.cluster",
    "Event": "augury.study.runner",
    "Finished": "augury.study.record",
    "Local": "augury.study.local",
    "Record": "augury.study.record",
    "Study": "augury.study.schema",
    "run_study": "augury.study.entry",
}
"""Where each name is, so that it is imported when first used: a study needs JAX only when it is run."""

__getattr__ = loading(__name__, _HOMES)
