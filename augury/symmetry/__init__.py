"""The mirror map of any MuJoCo model, its rotations, what breaks them, and a test by simulation."""

from augury.symmetry.audit.findings import Finding, shown
from augury.symmetry.heading import Heading, heading
from augury.symmetry.maps import AffineMap, Symmetry, SymmetryError
from augury.symmetry.observed.mirror import TermsMirror, terms
from augury.symmetry.reflection import Reflection, around, observation_map, reflection
from augury.symmetry.repair.symmetrise import Symmetrised, symmetrise
from augury.symmetry.rotation import audit_rotation, rotation
from augury.symmetry.simulate import SIMULATED_TOLERANCE, Simulated, simulated, simulated_error
from augury.symmetry.verdict import DEFAULT_TOLERANCE, Verdict, accept, judged

__all__ = [
    "DEFAULT_TOLERANCE",
    "SIMULATED_TOLERANCE",
    "AffineMap",
    "Finding",
    "Heading",
    "Reflection",
    "Simulated",
    "Symmetrised",
    "Symmetry",
    "SymmetryError",
    "TermsMirror",
    "Verdict",
    "accept",
    "around",
    "audit_rotation",
    "heading",
    "judged",
    "observation_map",
    "reflection",
    "rotation",
    "shown",
    "simulated",
    "simulated_error",
    "symmetrise",
    "terms",
]
