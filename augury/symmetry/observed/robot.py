"""What terms need to know of a robot: its model, its mirror, and the order of its joints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np

from augury.envs.mujoco import terms as task_terms
from augury.envs.mujoco.anatomy import Anatomy
from augury.envs.mujoco.quantities import Quantity
from augury.errors import UserError, nearest
from augury.symmetry.maps import SymmetryError
from augury.symmetry.observed.numbers import Key, Number
from augury.symmetry.pairing.names import given_name
from augury.symmetry.reflection import Reflection

_HOLDERS = {"geom": "geom_bodyid", "site": "site_bodyid"}


@dataclass(frozen=True, eq=False)
class Robot:
    """A model with its mirror, as the place where it trains numbers its joints."""

    model: mujoco.MjModel
    mirror: Reflection
    joints: tuple[str, ...]
    """In the order of the place where it trains; it may leave some out."""

    @classmethod
    def of(cls, model: mujoco.MjModel, mirror: Reflection, joints: Iterable[str] | None) -> Robot:
        """A robot with these joints, by default every hinge and slide in the model's order."""
        own = cls(model, mirror, ())
        listed = tuple(own.quantities("joint_positions")) if joints is None else tuple(joints)
        return cls(model, mirror, own.checked_joints(listed))

    @cached_property
    def anatomy(self) -> Anatomy:
        """Where the model's numbers are."""
        return Anatomy(self.model)

    def checked_joints(self, joints: tuple[str, ...]) -> tuple[str, ...]:
        """The same names, where the model has each of them and none is listed twice."""
        known = self.quantities("joint_positions")
        for place, joint in enumerate(joints):
            if joint not in known:
                raise UserError(f"{self.anatomy.name} has no hinge or slide '{joint}'{nearest(joint, known)}")
            if joint in joints[:place]:
                raise UserError(f"the joint '{joint}' is listed twice")
        return joints

    def quantities(self, term: str) -> dict[str, Quantity]:
        """What a term of ours holds for each joint."""
        return {own.joint: own for own in self.table(term)}

    def table(self, term: str, *given: str) -> list[Quantity]:
        """What a term of ours holds."""
        found = getattr(task_terms, term)
        return (found(*given) if given else found).table(self.anatomy)

    def number(self, own: Quantity) -> Number:
        """A quantity, and what becomes of it in the mirror."""
        if own.kind == "scalar":
            key = _key(own, own.address)
            return Number(own.name, key, ((key, 1.0),))
        maps = {
            "qpos": self.mirror.qpos,
            "qvel": self.mirror.qvel,
            "offset": self.mirror.offsets,
            "reading": self.mirror.sensors,
            "action": self.mirror.ctrl,
            "vector": self.mirror.vectors,
            "pseudovector": self.mirror.pseudovectors,
        }
        found = maps[own.kind]
        row = found.matrix[own.address]
        if np.isnan(row).any():
            raise SymmetryError(f"{own.name} has no mirror image: see not_compared")
        image = tuple((_key(own, int(source)), float(row[source])) for source in np.flatnonzero(row))
        offset = float(found.offset[own.address])
        return Number(own.name, _key(own, own.address), image, offset, owner=own.joint)

    @cached_property
    def body_images(self) -> list[int]:
        """The mirror image of every body."""
        pairs = self.mirror.pairs["body"]
        places = {name: body for body, name in enumerate(pairs)}
        return [places[image] for image in pairs.values()]

    def foot(self, name: str) -> int:
        """The body of this name, or the one that holds a geom or a site of this name."""
        known = {given_name(self.model, "body", body): body for body in range(self.model.nbody)}
        for kind, holder in _HOLDERS.items():
            for index, body in enumerate(getattr(self.model, holder).tolist()):
                known.setdefault(given_name(self.model, kind, index), body)
        known.pop("", None)
        if name not in known:
            raise UserError(f"{self.anatomy.name} has no body, geom or site '{name}'{nearest(name, known)}")
        return known[name]


def _key(own: Quantity, address: int) -> Key:
    """Of vectors there are several, so that their term belongs to what they are."""
    return own.kind, address, own.term if own.kind in ("vector", "pseudovector", "scalar") else ""
