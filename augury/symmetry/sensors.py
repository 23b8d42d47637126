"""How sensor readings map."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.symmetry.frames import quaternion_between
from augury.symmetry.maps import AffineMap, Array, Blocks
from augury.symmetry.pairing.images import NO_IMAGE, Pairing
from augury.symmetry.state import ball_orientation

_S, _O = mujoco.mjtSensor, mujoco.mjtObj

_UNCHANGED = {
    _S.mjSENS_TOUCH, _S.mjSENS_RANGEFINDER, _S.mjSENS_INSIDESITE, _S.mjSENS_GEOMDIST, _S.mjSENS_CLOCK,
    _S.mjSENS_E_POTENTIAL, _S.mjSENS_E_KINETIC, _S.mjSENS_JOINTLIMITPOS, _S.mjSENS_JOINTLIMITVEL,
    _S.mjSENS_JOINTLIMITFRC, _S.mjSENS_TENDONLIMITPOS, _S.mjSENS_TENDONLIMITVEL, _S.mjSENS_TENDONLIMITFRC,
}  # fmt: skip
_SIGNED = {
    _S.mjSENS_JOINTPOS, _S.mjSENS_JOINTVEL, _S.mjSENS_JOINTACTFRC, _S.mjSENS_TENDONPOS, _S.mjSENS_TENDONVEL,
    _S.mjSENS_TENDONACTFRC, _S.mjSENS_ACTUATORPOS, _S.mjSENS_ACTUATORVEL, _S.mjSENS_ACTUATORFRC,
}  # fmt: skip
_LENGTHS = {_S.mjSENS_JOINTPOS, _S.mjSENS_TENDONPOS, _S.mjSENS_ACTUATORPOS}
_IN_SITE_POLAR = {_S.mjSENS_ACCELEROMETER, _S.mjSENS_VELOCIMETER, _S.mjSENS_FORCE}
_IN_SITE_AXIAL = {_S.mjSENS_GYRO, _S.mjSENS_TORQUE}
_IN_WORLD_POLAR = {
    _S.mjSENS_FRAMEPOS, _S.mjSENS_FRAMELINVEL, _S.mjSENS_FRAMELINACC, _S.mjSENS_SUBTREECOM,
    _S.mjSENS_SUBTREELINVEL,
}  # fmt: skip
_IN_WORLD_POINTS = {_S.mjSENS_FRAMEPOS, _S.mjSENS_SUBTREECOM}
_IN_WORLD_AXIAL = {_S.mjSENS_FRAMEANGVEL, _S.mjSENS_FRAMEANGACC, _S.mjSENS_SUBTREEANGMOM}
_AXES = {_S.mjSENS_FRAMEXAXIS: 0, _S.mjSENS_FRAMEYAXIS: 1, _S.mjSENS_FRAMEZAXIS: 2}

_KINDS = {
    _O.mjOBJ_BODY: "body", _O.mjOBJ_XBODY: "body", _O.mjOBJ_JOINT: "joint", _O.mjOBJ_GEOM: "geom",
    _O.mjOBJ_SITE: "site", _O.mjOBJ_TENDON: "tendon", _O.mjOBJ_ACTUATOR: "actuator",
}  # fmt: skip
"""Kinds of elements that have images, by MuJoCo's number."""


def sensor_map(pairing: Pairing) -> tuple[AffineMap, list[str]]:
    """How readings map, with not-a-number rows for sensors that have no map, and why they have none."""
    model = pairing.model
    blocks, missing = Blocks(model.nsensordata), []
    pairing.images["sensor"] = _images(pairing)
    for sensor, image in enumerate(pairing.images["sensor"]):
        start, size = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
        if _stays(pairing, sensor):
            blocks.put(start, start, np.eye(size))
            continue
        block = None if image < 0 else _block(pairing, sensor, image)
        if block is None or block.shape != (size, size):
            blocks.matrix[start : start + size] = np.nan
            why = "no sensor is its mirror image" if image < 0 else "this type has no map"
            missing.append(f"sensor '{pairing.label('sensor', sensor)}': {why}")
            continue
        to = int(model.sensor_adr[image])
        offset: Array | float = 0.0
        if int(model.sensor_type[sensor]) in _LENGTHS:
            reference = pairing.mirror.data.sensordata
            offset = (reference[to : to + size] - block @ reference[start : start + size]).item()
        elif int(model.sensor_type[sensor]) in _IN_WORLD_POINTS and model.sensor_refid[sensor] < 0:
            offset = pairing.mirror.shift
        blocks.put(to, start, block, offset)
    return blocks.finished(), missing


def _images(pairing: Pairing) -> list[int]:
    """Sensors of the same type, on images; equal ones in their order."""
    model = pairing.model
    free = dict.fromkeys(range(model.nsensor))
    images = [NO_IMAGE] * model.nsensor
    for sensor in range(model.nsensor):
        if sensor not in free:
            continue
        wanted = (int(model.sensor_type[sensor]), *_mirrored_objects(pairing, sensor))
        for other in free:
            if wanted == (int(model.sensor_type[other]), *_objects(model, other)):
                images[sensor], images[other] = other, sensor
                for taken in {sensor, other}:
                    del free[taken]
                break
    return images


def _stays(pairing: Pairing, sensor: int) -> bool:
    """Whether a sensor is about what stays as it is."""
    kind, index = _objects(pairing.model, sensor)[0]
    return index in pairing.left_out.get(_KINDS.get(kind, ""), set())


def _objects(model: mujoco.MjModel, sensor: int) -> list[tuple[int, int]]:
    """What a sensor is about, and in whose frame it is written: (kind, index) each."""
    return [
        (int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor])),
        (int(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor])),
    ]


def _mirrored_objects(pairing: Pairing, sensor: int) -> list[tuple[int, int]]:
    def image(kind: int, index: int) -> int:
        if kind in _KINDS or index < 0:
            return pairing.image(_KINDS.get(kind, ""), index)
        return NO_IMAGE

    return [(kind, image(kind, index)) for kind, index in _objects(pairing.model, sensor)]


def _block(pairing: Pairing, sensor: int, image: int) -> Array | None:
    """The matrix by which a reading maps; nothing for types that are not known here."""
    model = pairing.model
    kind = int(model.sensor_type[sensor])
    (object_kind, index), (reference_kind, reference) = _objects(model, sensor)
    if kind in _UNCHANGED:
        return np.eye(1)
    if kind in _SIGNED:
        return np.array([[pairing.signs[_KINDS[object_kind]][index]]])
    if kind in _IN_SITE_POLAR:
        return pairing.turned("site", index)
    if kind in _IN_SITE_AXIAL:
        return -pairing.turned("site", index)
    if kind == _S.mjSENS_BALLQUAT:
        return ball_orientation(pairing, index)
    if kind == _S.mjSENS_BALLANGVEL:
        return -pairing.turned("body", model.jnt_bodyid[index])
    if kind == _S.mjSENS_MAGNETOMETER:
        field = model.opt.magnetic
        return float(np.sign(field @ pairing.mirror.matrix @ field)) * pairing.turned("site", index)
    world = pairing.mirror.matrix if reference < 0 else _turned(pairing, reference_kind, reference)
    if kind in _IN_WORLD_POLAR:
        return world
    if kind in _IN_WORLD_AXIAL:
        return -world
    if kind == _S.mjSENS_FRAMEQUAT:
        readings = pairing.mirror.data.sensordata
        first, second = (readings[model.sensor_adr[s] :][:4] for s in (sensor, image))
        return quaternion_between(world, _turned(pairing, object_kind, index), first, second)
    if kind in _AXES:
        # The image's axis is the mirrored axis up to its sign, or it is made of axes that are not read here.
        along = float(_turned(pairing, object_kind, index)[_AXES[kind], _AXES[kind]])
        return np.sign(along) * world if abs(abs(along) - 1) < 1e-9 else None
    return None


def _turned(pairing: Pairing, kind: int, index: int) -> Array:
    """MuJoCo's `body` is the inertial frame, `xbody` the body's own."""
    return pairing.turned("inertia" if kind == _O.mjOBJ_BODY else _KINDS[kind], index)
