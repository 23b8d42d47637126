"""Does the simulator agree? Validity of an augmentation, and the audit of a robot model."""

from augury.symmetry.model_audit import Audit, audit
from augury.verify.validity import Report, assert_dynamics_invariant, verify

__all__ = ["Audit", "Report", "assert_dynamics_invariant", "audit", "verify"]
