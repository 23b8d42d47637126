"""Masses as the joints feel them: what no motion can show is notation."""

from __future__ import annotations

from functools import cached_property

import mujoco
import numpy as np

from augury.symmetry.frames import rotation_of
from augury.symmetry.maps import Array
from augury.symmetry.pairing.images import Pairing
from augury.symmetry.state import position_map, velocity_map

_POSES = 4
"""Random poses; what agrees in a few of them agrees in all, for it depends smoothly on the pose."""
_AGREE = 1e-9
_S = mujoco.mjtSensor
_WEIGHING = (
    _S.mjSENS_FORCE, _S.mjSENS_TORQUE, _S.mjSENS_SUBTREECOM, _S.mjSENS_SUBTREELINVEL,
    _S.mjSENS_SUBTREEANGMOM, _S.mjSENS_E_POTENTIAL, _S.mjSENS_E_KINETIC,
)  # fmt: skip
"""Sensors that feel masses which no joint feels."""


class Felt:
    """Compares kinetic energy and weight of a body with those of its image, over all motions there are.

    A body that is welded to the world has neither. Of one on a hinge that stays where it is, only the inertia
    about this hinge counts.
    """

    def __init__(self, pairing: Pairing):
        self.pairing, self.model = pairing, pairing.model

    def alike(self, body: int) -> bool:
        """Whether no motion tells a body's mass from the mirrored one of its image."""
        if self._shows_otherwise:
            return False
        image, matrix = self.pairing.images["body"][body], self.pairing.mirror.matrix
        for here, there in self._poses:
            moves, turns = _jacobians(self.model, here, body)
            image_moves, image_turns = (
                each @ self._velocities for each in _jacobians(self.model, there, image)
            )
            energies = (
                _energy(self.model, here, body, moves, turns),
                _energy(self.model, there, image, image_moves, image_turns),
            )
            if not _agree(matrix @ moves, image_moves) or not _agree(*energies):
                return False
            gravity = self.model.opt.gravity
            weights = (self._load(body) * gravity @ moves, self._load(image) * gravity @ image_moves)
            if not _agree(*weights):
                return False
        return True

    def _load(self, body: int) -> float:
        return float(self.model.body_mass[body] * (1 - self.model.body_gravcomp[body]))

    @cached_property
    def _shows_otherwise(self) -> bool:
        """Whether masses show in a fluid or in a sensor too."""
        model = self.model
        sensors = np.isin(model.sensor_type, [int(kind) for kind in _WEIGHING])
        body = int(mujoco.mjtObj.mjOBJ_BODY)  # the inertial frame; `xbody` is the body's own
        frames = (model.sensor_objtype == body) | (model.sensor_reftype == body)
        return bool(model.opt.density or model.opt.viscosity or (sensors | frames).any())

    @cached_property
    def _velocities(self) -> Array:
        return velocity_map(self.pairing).matrix

    @cached_property
    def _poses(self) -> list[tuple[mujoco.MjData, mujoco.MjData]]:
        """Random poses beside their images."""
        generator, positions = np.random.default_rng(0), position_map(self.pairing)
        pairs = []
        for _ in range(_POSES):
            here, there = mujoco.MjData(self.model), mujoco.MjData(self.model)
            mujoco.mj_integratePos(self.model, here.qpos, generator.normal(size=self.model.nv), 1.0)
            there.qpos[:] = positions(here.qpos)
            for data in (here, there):
                mujoco.mj_kinematics(self.model, data)
                mujoco.mj_comPos(self.model, data)
            pairs.append((here, there))
        return pairs


def inertia_of(model: mujoco.MjModel, body: int) -> Array:
    """The inertia of a body about its centre of mass, in the body's frame."""
    axes = rotation_of(model.body_iquat[body])
    return np.asarray(axes @ np.diag(model.body_inertia[body]) @ axes.T)


def _jacobians(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> tuple[Array, Array]:
    """Of the centre of mass, and of the orientation."""
    moves, turns = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacBodyCom(model, data, moves, turns, body)
    return moves, turns


def _energy(model: mujoco.MjModel, data: mujoco.MjData, body: int, moves: Array, turns: Array) -> Array:
    """The kinetic energy of a body as a matrix between velocities."""
    axes = data.xmat[body].reshape(3, 3)
    inertia = axes @ inertia_of(model, body) @ axes.T
    return np.asarray(model.body_mass[body] * moves.T @ moves + turns.T @ inertia @ turns)


def _agree(one: Array, other: Array) -> bool:
    size = max(float(np.abs(one).max(initial=0)), float(np.abs(other).max(initial=0)))
    return bool(np.abs(one - other).max(initial=0) <= _AGREE * size)
