"""Arms × seeds from a file or from Python: `run_study`, and what it takes and returns."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from augury.study.claims import Claim
    from augury.study.cluster import Cluster
    from augury.study.entry import run_study
    from augury.study.local import Local
    from augury.study.record import Finished, Record
    from augury.study.runner import Event
    from augury.study.schema import Study

__all__ = ["Claim", "Cluster", "Event", "Finished", "Local", "Record", "Study", "run_study"]

_MODULES = {
    "Claim": "claims",
    "Cluster": "cluster",
    "Event": "runner",
    "Finished": "record",
    "Local": "local",
    "Record": "record",
    "Study": "schema",
    "run_study": "entry",
}
"""Where each name is, so that it is imported when first used: a study needs JAX only when it is run."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
