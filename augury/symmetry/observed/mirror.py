"""The mirror of an observation and an action, for NumPy arrays and torch tensors: no JAX is needed.

mirror = augury.symmetry.terms("robot.xml", ["projected_gravity", "joint_offsets", "previous_action"])
mirror.observation(rows), mirror.action(rows)           # arrays or tensors, on any device
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import mujoco
import numpy as np

from augury.envs.mujoco.anatomy import Anatomy
from augury.errors import UserError, unknown_name
from augury.symmetry.maps import AffineMap, Array, Integers, SymmetryError
from augury.symmetry.observed.kinds import Term
from augury.symmetry.observed.listing import Described, Entry, described, read
from augury.symmetry.observed.numbers import Number, assembled, stacked
from augury.symmetry.observed.robot import Robot
from augury.symmetry.reflection import Reflection, reflection
from augury.symmetry.verdict import accept

Values = TypeVar("Values")
ACTION = "action"
"""The name of the action beside those of observation groups."""


class Gathered(NamedTuple):
    """A map as few products: each number is a sum of factors times sources, plus an offset."""

    sources: Integers
    """Of shape (numbers, products); with one product it is a permutation."""
    factors: Array
    offset: Array

    @classmethod
    def of(cls, given: AffineMap) -> Gathered:
        most = max(1, int((given.matrix != 0).sum(1).max(initial=0)))
        sources = np.argsort(given.matrix == 0, axis=1, kind="stable")[:, :most]
        return cls(sources, np.take_along_axis(given.matrix, sources, 1), given.offset)


@dataclass(frozen=True, eq=False)
class Vector:
    """A vector of numbers that have names: an observation group, or the action."""

    numbers: tuple[Number, ...]
    map: AffineMap
    terms: tuple[Term, ...]
    history: int = 1
    """Whole frames, one after the other."""

    @property
    def gathered(self) -> Gathered:
        return Gathered.of(self.map)

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class TermsMirror:
    """How observations and actions of a robot are mirrored."""

    robot: Robot
    vectors: dict[str, Vector]
    """By observation group; the last is the action."""
    _held: dict[Any, tuple[Any, Any, Any]] = field(default_factory=dict, repr=False)

    @property
    def groups(self) -> list[str]:
        """The observation groups."""
        return [name for name in self.vectors if name != ACTION]

    def observation(self, values: Values, group: str | None = None) -> Values:
        """The mirror image of observations, one or many in rows; the only group need not be named."""
        if group is None and len(self.groups) > 1:
            raise UserError(f"say which observation group is meant: {', '.join(self.groups)}")
        return self._mirrored(values, self.groups[0] if group is None else group)

    def action(self, values: Values) -> Values:
        """The mirror image of actions."""
        return self._mirrored(values, ACTION)

    def _mirrored(self, values: Any, which: str) -> Any:
        if which not in self.vectors:
            raise unknown_name("observation group", which, self.groups)
        size = len(self.vectors[which])
        if values.shape[-1] != size:
            raise UserError(f"'{which}' has {values.shape[-1]} numbers, but its terms describe {size}")
        sources, factors, offset = self._on_device_of(values, which)
        return (values[..., sources] * factors).sum(-1) + offset

    def _on_device_of(self, values: Any, which: str) -> tuple[Any, Any, Any]:
        """The map in the kind of numbers, and on the device, of these values."""
        device = getattr(values, "device", None)
        key = which, values.dtype, device
        if key not in self._held:
            gathered = self.vectors[which].gathered
            if isinstance(values, np.ndarray):
                sources, factors, offset = gathered
                self._held[key] = sources, factors.astype(values.dtype), offset.astype(values.dtype)
            else:
                torch = sys.modules["torch"]  # the values are its tensors
                with torch.inference_mode(False):  # first used in a rollout, they serve in training too
                    self._held[key] = (
                        torch.as_tensor(gathered.sources, device=device),
                        torch.as_tensor(gathered.factors, dtype=values.dtype, device=device),
                        torch.as_tensor(gathered.offset, dtype=values.dtype, device=device),
                    )
        return self._held[key]


def terms(
    model: mujoco.MjModel | str | Path,
    observations: Mapping[str, Sequence[Entry]] | Sequence[Entry] | str | Path,
    *,
    joints: Sequence[str] | None = None,
    actions: Entry = "joint_offsets",
    sizes: Mapping[str, int] | None = None,
    mirror: Reflection | None = None,
    tolerance: float | None = None,
) -> TermsMirror:
    """The mirror of observations that hold these terms, for a model or its file.

    `observations` lists terms, or has such a list for each observation group; a path is a TOML file that says
    all of it. `mirror` is the model's, by default `reflection(model)`. A model that is not symmetric within
    the tolerance is refused, as by `augury.reflect`.
    """
    if not isinstance(model, mujoco.MjModel):
        from augury.symmetry.model_audit import read_model  # which needs this package

        model = read_model(Path(model))
    if isinstance(observations, str | Path):
        listed = read(Path(observations))
    else:
        groups = observations if isinstance(observations, Mapping) else {"observation": observations}
        listed = described(
            {"observations": groups, "joints": joints, "actions": actions, "sizes": sizes or {}}
        )
    found = reflection(model) if mirror is None else mirror
    accept(model, Anatomy(model).name, found, tolerance)
    return mirror_of(model, listed, found)


def mirror_of(model: mujoco.MjModel, listed: Described, mirror: Reflection) -> TermsMirror:
    """The mirror of what was listed."""
    robot = Robot.of(model, mirror, listed.joints)
    vectors = {}
    for group, own in listed.groups.items():
        vectors[group] = _vector(robot, own, listed.history[group], group)
    vectors[ACTION] = _vector(robot, (listed.action,), 1, ACTION)
    for name, size in listed.sizes.items():
        if len(vectors[name]) != size:
            raise UserError(
                f"'{name}' has {size} numbers, but its terms describe {len(vectors[name])}: "
                f"{_counted(vectors[name])}"
            )
    return TermsMirror(robot, vectors)


def _vector(robot: Robot, own: tuple[Term, ...], history: int, where: str) -> Vector:
    numbers = stacked([number for term in own for number in term.numbers(robot)], history)
    found = assembled(numbers, where)
    if not found.is_involution:
        raise SymmetryError(f"'{where}': mirrored twice, it is not what it was")
    return Vector(tuple(numbers), found, own, history)


def _counted(vector: Vector) -> str:
    counts: dict[str, int] = {}
    for number in vector.numbers:
        counts[number.term] = counts.get(number.term, 0) + 1
    return ", ".join(f"{term} {count}" for term, count in counts.items())
