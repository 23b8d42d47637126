"""Which numbers of an observation change with a robot's heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from augury.envs.mujoco.quantities import Quantity, joint_name
from augury.symmetry.maps import SymmetryError

_S, _O = mujoco.mjtSensor, mujoco.mjtObj
_WORLD_VECTORS = {
    _S.mjSENS_FRAMEPOS, _S.mjSENS_FRAMELINVEL, _S.mjSENS_FRAMEANGVEL, _S.mjSENS_FRAMEXAXIS,
    _S.mjSENS_FRAMEYAXIS, _S.mjSENS_FRAMEZAXIS, _S.mjSENS_SUBTREECOM, _S.mjSENS_SUBTREELINVEL,
    _S.mjSENS_SUBTREEANGMOM,
}  # fmt: skip
_UNCHANGED = {
    _S.mjSENS_VELOCIMETER, _S.mjSENS_GYRO, _S.mjSENS_TOUCH, _S.mjSENS_RANGEFINDER, _S.mjSENS_JOINTPOS,
    _S.mjSENS_JOINTVEL, _S.mjSENS_TENDONPOS, _S.mjSENS_TENDONVEL, _S.mjSENS_ACTUATORPOS,
    _S.mjSENS_ACTUATORVEL, _S.mjSENS_BALLQUAT, _S.mjSENS_BALLANGVEL, _S.mjSENS_JOINTLIMITPOS,
    _S.mjSENS_JOINTLIMITVEL, _S.mjSENS_TENDONLIMITPOS, _S.mjSENS_TENDONLIMITVEL, _S.mjSENS_GEOMDIST,
    _S.mjSENS_CLOCK, _S.mjSENS_E_POTENTIAL, _S.mjSENS_E_KINETIC,
}  # fmt: skip


class Heading(NamedTuple):
    """Where an observation holds what rotates with the robot."""

    vectors: tuple[tuple[int, int], ...] = ()
    """Places of x and y of vectors in the world's frame."""
    quaternions: tuple[tuple[int, int, int, int], ...] = ()
    """Places of w, x, y and z of orientations in it."""


def heading(model: mujoco.MjModel, table: Sequence[Quantity]) -> Heading:
    """What rotates, in an observation whose numbers are these quantities; one that cannot is an error."""
    vectors: list[tuple[int, ...]] = []
    quaternions: list[tuple[int, ...]] = []
    for term in dict.fromkeys(own.term for own in table):
        for joint in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).tolist():
            named = joint_name(model, joint)
            where = {
                own.quantity: place
                for place, own in enumerate(table)
                if own.joint == named and own.term == term and own.kind in ("qpos", "qvel")
            }
            vectors += _complete(named, where, ("x", "y"), ("velocity x", "velocity y"))
            quaternions += _complete(named, where, tuple(f"quaternion {part}" for part in "wxyz"))
    read = {own.address: place for place, own in enumerate(table) if own.kind == "reading"}
    for sensor in range(model.nsensor):
        start, size = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
        if start in read and _in_world(model, sensor):
            kind, places = int(model.sensor_type[sensor]), tuple(read[start + part] for part in range(size))
            if kind in _WORLD_VECTORS:
                vectors.append(places[:2])
            elif kind == _S.mjSENS_FRAMEQUAT:
                quaternions.append(places)
            elif kind not in _UNCHANGED:
                name = model.sensor(sensor).name or f"sensor {sensor}"
                raise SymmetryError(
                    f"it is not known how '{name}' changes with the heading: do not observe it"
                )
    return Heading(tuple(vectors), tuple(quaternions))  # type: ignore[arg-type]


def _in_world(model: mujoco.MjModel, sensor: int) -> bool:
    """Whether readings are in the world's frame, or in one that is fixed to it."""
    index = int(model.sensor_refid[sensor])
    bodies = {
        _O.mjOBJ_GEOM: model.geom_bodyid,
        _O.mjOBJ_SITE: model.site_bodyid,
        _O.mjOBJ_CAMERA: model.cam_bodyid,
    }
    if index < 0:
        return True
    of_kind = bodies.get(mujoco.mjtObj(model.sensor_reftype[sensor]))
    return bool(model.body_weldid[index if of_kind is None else of_kind[index]] == 0)


def _complete(joint: str, where: Mapping[str, int], *groups: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Places of the groups that are observed; one that is observed in part cannot be rotated."""
    found = []
    for group in groups:
        places = [where[name] for name in group if name in where]
        if places and len(places) < len(group):
            raise SymmetryError(
                f"only a part of {', '.join(group)} of '{joint}' is observed: it cannot be rotated"
            )
        if places:
            found.append(tuple(places))
    return found
