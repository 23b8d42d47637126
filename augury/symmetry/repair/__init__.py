"""Make a model symmetric: left and right averaged, or one side taken; everything else stays as it was."""

from augury.symmetry.repair.symmetrise import Symmetrised, symmetrise

__all__ = ["Symmetrised", "symmetrise"]
