"""A model's parts by what they are for: its base, its joints, and the pose in which it stands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from augury.errors import UserError

_SINGLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


class Base(NamedTuple):
    """The body that moves freely, and carries the others."""

    body: int
    qpos: int
    """Where qpos holds its position and its quaternion."""
    qvel: int
    """Where qvel holds its velocity, and its angular velocity in its own frame."""


class Anatomy:
    """Where a model's numbers are.

    The default pose is the model's first keyframe; without keyframes it is qpos0, at rest, without controls.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.joints = np.flatnonzero(np.isin(model.jnt_type, _SINGLE))
        """Every hinge and slide joint."""
        self.joint_qpos, self.joint_qvel = model.jnt_qposadr[self.joints], model.jnt_dofadr[self.joints]
        if model.nkey:
            self.qpos, self.qvel, self.ctrl = model.key_qpos[0], model.key_qvel[0], model.key_ctrl[0]
        else:
            self.qpos, self.qvel, self.ctrl = model.qpos0, np.zeros(model.nv), np.zeros(model.nu)

    @property
    def has_base(self) -> bool:
        return bool(self._free.size)

    @cached_property
    def base(self) -> Base:
        """The first body with a free joint."""
        if not self.has_base:
            raise UserError(
                f"{self.name} has no free joint, so that it has no base to observe: observe positions, "
                "velocities or a sensor"
            )
        joint = int(self._free[0])
        where = (self.model.jnt_bodyid, self.model.jnt_qposadr, self.model.jnt_dofadr)
        return Base(*(int(array[joint]) for array in where))

    @cached_property
    def sensors(self) -> Mapping[str, range]:
        """Where the readings hold those of each sensor that has a name."""
        model = self.model
        places = zip(range(model.nsensor), model.sensor_adr.tolist(), model.sensor_dim.tolist(), strict=True)
        named = {model.sensor(number).name: range(start, start + size) for number, start, size in places}
        return {name: where for name, where in named.items() if name}

    @property
    def _free(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)

    @property
    def name(self) -> str:
        """What the model calls itself."""
        return self.model.names.split(b"\0", 1)[0].decode() or "the model"
