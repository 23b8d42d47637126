"""What only pictures show: the arm's links, colours, light and the target; and the camera that looks on."""

from __future__ import annotations

import mujoco
import numpy as np

from augury.envs.panda.contacts import PAIRED, ObjectShape


def camera() -> mujoco.MjvCamera:
    """panda-gym's camera."""
    view = mujoco.MjvCamera()
    view.distance, view.azimuth, view.elevation = 1.4, 135.0, -30.0
    view.lookat[:] = -0.15, 0.0, 0.12
    return view


def add_scenery(spec: mujoco.MjSpec, shape: ObjectShape) -> None:
    """Add colours, a light, capsules for the arm's links, and a transparent copy of the object as target."""
    spec.visual.headlight.ambient[:] = 0.4
    spec.visual.headlight.diffuse[:] = 0.4
    spec.worldbody.add_light(pos=(0.3, 0.6, 2.0), dir=(-0.2, -0.4, -1.0), diffuse=(0.5,) * 3)
    spec.add_texture(
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(0.92, 0.94, 0.96),
        rgb2=(0.75, 0.8, 0.86),
        width=64,
        height=64,
    )
    for name, colour in _COLOURS.items():
        spec.geom(name).rgba[:] = (*colour, 1.0)
    own = spec.geom("object")  # before others are added: MuJoCo 3 finds another by this name afterwards
    capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
    for name, ends, radius, colour in _LIMBS:
        spec.body(name).add_geom(
            type=capsule, fromto=ends, size=(radius, 0, 0), rgba=(*colour, 1.0), mass=0, **PAIRED
        )
    target = spec.worldbody.add_body(name="target", mocap=True)
    target.add_geom(type=own.type, size=own.size, rgba=(*_COLOURS["object"], 0.3), **PAIRED)
    if shape == "cube":
        for body, alpha in ((spec.body("object"), 1.0), (target, 0.4)):
            _colour_faces(body, alpha)


def _colour_faces(cube: mujoco.MjsBody, alpha: float) -> None:
    """Give each face a colour of its own, so that the cube's orientation can be seen."""
    for side in (-1, 1):
        for axis in range(3):
            position, size = np.zeros(3), np.full(3, 0.0125)
            position[axis], size[axis] = 0.0196 * side, 0.0006
            colour = _FACES[axis] * (1.0 if side > 0 else 0.55)
            cube.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                pos=position,
                size=size,
                rgba=(*colour, alpha),
                mass=0,
                **PAIRED,
            )


_WHITE, _GREY, _GREEN = (0.93, 0.93, 0.93), (0.32, 0.34, 0.37), (0.1, 0.7, 0.25)
_COLOURS = {
    "table": (0.83, 0.8, 0.75),
    "floor": (0.45, 0.47, 0.5),
    "hand": _WHITE,
    "left": _GREY,
    "right": _GREY,
    "object": _GREEN,
}
_FACES = np.array([(0.9, 0.25, 0.2), (0.95, 0.8, 0.2), (0.2, 0.4, 0.9)])
"""Colours of the faces across x, y and z; the negative ones are darker."""
_LIMBS = (
    ("link0", (0, 0, 0, 0, 0, 0.1), 0.075, _GREY),
    ("link1", (0, 0, -0.19, 0, 0, -0.02), 0.06, _WHITE),
    ("link2", (0, 0, -0.05, 0, 0, 0.05), 0.062, _GREY),
    ("link2", (0, -0.05, 0, 0, -0.2, 0), 0.058, _WHITE),
    ("link3", (0, 0, -0.08, 0, 0, -0.02), 0.058, _WHITE),
    ("link3", (0, 0, 0, 0.0825, 0, 0), 0.05, _WHITE),
    ("link4", (0, 0, -0.045, 0, 0, 0.045), 0.056, _GREY),
    ("link4", (0, 0, 0, -0.0825, 0.08, 0), 0.05, _WHITE),
    ("link5", (0, 0, -0.28, 0, 0, -0.18), 0.052, _WHITE),
    ("link5", (0, 0.05, -0.18, 0, 0.02, -0.02), 0.045, _WHITE),
    ("link6", (0, 0, -0.03, 0, 0, 0.04), 0.05, _GREY),
    ("link6", (0, 0, 0, 0.088, 0, 0), 0.045, _WHITE),
    ("link7", (0, 0, 0, 0, 0, 0.09), 0.042, _WHITE),
)
"""Capsules of the arm: body, ends, radius, colour."""
