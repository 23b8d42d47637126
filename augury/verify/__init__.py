"""Does the simulator agree? Validity of an augmentation, and the audit of a robot model.

The package can be called: `augury.verify(…)` is `augury.verify.verify(…)`.
"""

import sys
from types import ModuleType
from typing import Any

from augury.symmetry.model_audit import Audit, audit
from augury.verify.reports import Report
from augury.verify.validity import assert_dynamics_invariant, verify

__all__ = ["Audit", "Report", "assert_dynamics_invariant", "audit", "verify"]


class _Callable(ModuleType):
    """A module that is its main function too: `augury.verify` is the name of both."""

    def __call__(self, *arguments: Any, **options: Any) -> Report:
        return verify(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
