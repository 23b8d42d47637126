"""The mirror map of any MuJoCo model, its rotations, what breaks them, and a test by simulation."""

from augury.symmetry.audit.findings import Finding, shown
from augury.symmetry.heading import Heading, heading
from augury.symmetry.maps import AffineMap, Symmetry, SymmetryError
from augury.symmetry.observed.mirror import TermsMirror, terms
from augury.symmetry.reflection import Reflection, observation_map, reflection
from augury.symmetry.rotation import audit_rotation, rotation
from augury.symmetry.simulate import SIMULATED_TOLERANCE, simulated_error

__all__ = [
    "SIMULATED_TOLERANCE",
    "AffineMap",
    "Finding",
    "Heading",
    "Reflection",
    "Symmetry",
    "SymmetryError",
    "TermsMirror",
    "audit_rotation",
    "heading",
    "observation_map",
    "reflection",
    "rotation",
    "shown",
    "simulated_error",
    "terms",
]
