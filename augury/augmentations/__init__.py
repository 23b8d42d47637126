"""What to do to a transition."""

from augury.augmentations.base import Augmentation, augmentation, choose, compose, from_numpy, sometimes
from augury.augmentations.catalogue import CATALOGUE, make, parse, reference, register
from augury.augmentations.goals import hindsight

__all__ = [
    "CATALOGUE",
    "Augmentation",
    "augmentation",
    "choose",
    "compose",
    "from_numpy",
    "hindsight",
    "make",
    "parse",
    "reference",
    "register",
    "sometimes",
]
