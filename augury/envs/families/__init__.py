"""Families: small tasks in JAX with knobs, and augmentations whose worth is known by construction.

They are the ground on which it is measured when augmentation helps. All knobs that fix no shape are numbers,
and a family's augmentations are chosen by a number too, so that arms over all of them train in one fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from augury.envs.families.base import Change, Family
from augury.envs.families.cartpole import Cartpole
from augury.envs.families.collect import Collect
from augury.envs.families.grid import Grid
from augury.envs.families.maze import Maze
from augury.envs.families.pendulum import Pendulum
from augury.envs.families.point import Point
from augury.envs.families.reacher import Reacher

__all__ = ["FAMILIES", "Change", "Family"]

_EVERY: tuple[type[Family], ...] = (Point, Pendulum, Cartpole, Reacher, Maze, Collect, Grid)
FAMILIES: Mapping[str, type[Family]] = MappingProxyType({family.name: family for family in _EVERY})
"""By name."""
