"""Families: small tasks in JAX with knobs, and augmentations whose worth is known by construction.

They are the ground on which it is measured when augmentation helps. All knobs that fix no shape are numbers,
and a family's augmentations are chosen by a number too, so that arms over all of them train in one fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from augury.envs.families.base import Change, Family
from augury.envs.families.point import Point

__all__ = ["FAMILIES", "Change", "Family"]

FAMILIES: Mapping[str, type[Family]] = MappingProxyType({family.name: family for family in (Point,)})
"""By name."""
