"""A Franka Panda at its table, as panda-gym simulates it, built for MuJoCo.

Everything that decides how panda-gym moves is taken over from PyBullet as a law, not fitted:

- *links*: see `robot`;
- *motors*: a joint is asked for the velocity 0.1 · error / 0.002 s, and its motor gives the force that this
  takes, up to a limit. Here a servo does the same; its target accounts for the torque that carries the arm
  (see `robot.Motor` and `tasks`);
- *contacts* and *friction*: see `contacts`;
- *damping*: an object loses 0.04 (1 + speed) of its speed a second, which is PyBullet's default.

Fingers are convex shapes, a millimetre larger than the robot's own (PyBullet's collision margin).
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from augury.envs.panda import robot
from augury.envs.panda.contacts import FEET, PAIRED, ObjectShape, add_contacts, constraint_law
from augury.envs.panda.robot import FINE, Motor, Pace
from augury.envs.panda.scenery import add_scenery

_MARGIN = 0.001
_TIP_RADIUS = 0.007
_PUCK = (0.03, 0.015, 0.0)
"""Radius and half height."""
_FOOT_RADIUS = 0.002
_AIR = (0.04, 0.04)
"""Damping of an object per mass: constant, and per speed."""


def build(shape: ObjectShape, pace: Pace = FINE, *, blocked: bool, scenery: bool = False) -> mujoco.MjSpec:
    """The robot, its table and an object, ready to compile.

    The fingers of a `blocked` gripper stay closed. `scenery` adds what only pictures show: the arm's links,
    colours, and a body named "target".
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = pace.substep
    spec.option.gravity = (0, 0, -robot.GRAVITY)
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10.0
    # PyBullet finds one point of contact for a finger, and its stiffness is that of one point. Several would
    # also make a puck spin that is struck: its side is round, and they are not.
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_MULTICCD
    _add_surroundings(spec, shape)
    _add_arm(spec, pace, blocked)
    _add_object(spec, shape)
    add_contacts(spec, shape, pace, blocked=blocked)
    for name, sensor in (
        ("hand position", mujoco.mjtSensor.mjSENS_FRAMEPOS),
        ("hand velocity", mujoco.mjtSensor.mjSENS_FRAMELINVEL),
    ):
        spec.add_sensor(name=name, type=sensor, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="grasp")
    if scenery:
        add_scenery(spec, shape)
    return spec


def _add_surroundings(spec: mujoco.MjSpec, shape: ObjectShape) -> None:
    length, offset = (1.1, -0.3) if shape == "cube" else (1.4, -0.1)
    world = spec.worldbody
    box = mujoco.mjtGeom.mjGEOM_BOX
    world.add_geom(name="table", type=box, size=(length / 2, 0.35, 0.2), pos=(offset, 0, -0.2), **PAIRED)
    world.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(3, 3, 0.1), pos=(0, 0, -0.4), **PAIRED
    )


def _add_arm(spec: mujoco.MjSpec, pace: Pace, blocked: bool) -> None:
    gains = iter(pace.gains)
    body = spec.worldbody.add_body(name="link0", pos=robot.BASE)
    for number, link in enumerate(robot.LINKS, 1):
        body = body.add_body(
            name=f"link{number}",
            pos=link.position,
            quat=_quaternion((1, 0, 0), link.quarter_turns * np.pi / 2),
            mass=link.mass,
            ipos=link.centre,
            inertia=link.inertia,
            explicitinertial=True,
        )
        if link.felt_inertia is None:
            motor = Motor(link.force, next(gains))
        else:
            motor = Motor.unyielding(link.force, link.felt_inertia, pace.substep)
        _add_joint(spec, body, f"joint{number}", (0, 0, 1), link.limits, motor, pace)
    _add_hand(spec, body, pace, blocked)


def _add_hand(spec: mujoco.MjSpec, last_link: Any, pace: Pace, blocked: bool) -> None:
    hand = last_link.add_body(
        name="hand",
        pos=(0, 0, robot.HAND_OFFSET),
        quat=_quaternion((0, 0, 1), robot.HAND_ANGLE),
        mass=robot.HAND_MASS,
        ipos=(0, 0, robot.HAND_CENTRE),
        inertia=robot.HAND_INERTIA,
        explicitinertial=True,
    )
    hand.add_geom(
        name="hand",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=np.array([0.018, 0.1, 0.0365]) + _MARGIN,
        pos=(0, 0, 0.0295),
        **PAIRED,
    )
    hand.add_site(name="grasp", pos=(0, 0, robot.GRASP - robot.HAND_OFFSET))
    for name, side in zip(robot.FINGERS, (1, -1), strict=True):
        finger = hand.add_body(
            name=name,
            pos=(0, 0, robot.FINGER_OFFSET),
            mass=robot.FINGER_MASS,
            ipos=(0, 0.01 * side, robot.FINGER_CENTRE),
            inertia=robot.FINGER_INERTIA,
            explicitinertial=True,
        )
        motor = robot.finger_motor(pace, blocked=blocked)
        _add_joint(spec, finger, name, (0, side, 0), robot.FINGER_RANGE, motor, pace)
        spec.add_mesh(
            name=name, uservert=_finger_corners(side), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        )
        finger.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **PAIRED)
        # On the table a finger stands on its tip. MuJoCo finds a ball's contact a hundred times as fast as a
        # mesh's.
        finger.add_geom(
            name=f"{name} tip",
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=(_TIP_RADIUS, 0, 0),
            pos=(0, _TIP_RADIUS * side, robot.FINGER_SHAPE[-1][2] + _MARGIN - _TIP_RADIUS),
            **PAIRED,
        )


def _add_joint(
    spec: mujoco.MjSpec,
    body: Any,
    name: str,
    axis: robot.Point,
    limits: tuple[float, float],
    motor: Motor,
    pace: Pace,
) -> None:
    """Add a joint with its motor. The motor's target is kept within the joint's limits."""
    slides = name in robot.FINGERS
    reference, impedance = constraint_law(pace.reduction(0.2), 0.999, pace)
    body.add_joint(
        name=name,
        type=mujoco.mjtJoint.mjJNT_SLIDE if slides else mujoco.mjtJoint.mjJNT_HINGE,
        axis=axis,
        range=limits,
        limited=True,
        armature=motor.rotor,
        solref_limit=reference,
        solimp_limit=impedance,
    )
    actuator = spec.add_actuator(
        name=name,
        target=name,
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED,
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        ctrllimited=True,
        ctrlrange=limits,
        forcelimited=True,
        forcerange=(-motor.force, motor.force),
    )
    actuator.gainprm[0] = pace.velocity_gain * motor.gain
    actuator.biasprm[1:3] = -pace.velocity_gain * motor.gain, -motor.gain


def _add_object(spec: mujoco.MjSpec, shape: ObjectShape) -> None:
    """Add the cube or puck, of one kilogram.

    It moves by three slides and a ball joint, since a free joint has only one damping for position and
    orientation.
    """
    cube = shape == "cube"
    moment = 0.04**2 / 6 if cube else 0.03**2 / 3
    body = spec.worldbody.add_body(
        name="object",
        mass=1.0,
        inertia=(moment,) * 3 if cube else (moment, moment, 0.03**2 / 2),
        explicitinertial=True,
    )
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))):
        joint = body.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
        joint.damping[:2] = _AIR
    ball = body.add_joint(name="orientation", type=mujoco.mjtJoint.mjJNT_BALL)
    ball.damping[:2] = moment * np.array(_AIR)
    kind = mujoco.mjtGeom.mjGEOM_BOX if cube else mujoco.mjtGeom.mjGEOM_CYLINDER
    body.add_geom(name="object", type=kind, size=(0.02,) * 3 if cube else _PUCK, **PAIRED)
    if not cube:
        _add_feet(body)


def _add_feet(puck: Any) -> None:
    """Add balls along both rims, on which a puck lies: on one point, it would wobble and roll."""
    radius, half_height, _ = _PUCK
    for number, name in enumerate(FEET):
        angle = 2 * np.pi * (number // 2) / (len(FEET) // 2)
        across = radius - _FOOT_RADIUS
        below = (half_height - _FOOT_RADIUS) * (-1) ** number
        puck.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=(_FOOT_RADIUS, 0, 0),
            pos=(across * np.cos(angle), across * np.sin(angle), below),
            mass=0,
            **PAIRED,
        )


def _finger_corners(side: int) -> npt.NDArray[np.float64]:
    corners = []
    for half_width, across, below in robot.FINGER_SHAPE:
        outwards = _MARGIN if across > 0.01 else -_MARGIN
        tip = _MARGIN if below > 0.05 else 0.0
        corners += [
            (left * (half_width + _MARGIN), side * (across + outwards), below + tip) for left in (-1, 1)
        ]
    return np.array(corners).ravel()


def _quaternion(axis: robot.Point, angle: float) -> tuple[float, ...]:
    """The rotation by an angle about an axis, as w, x, y, z."""
    return (np.cos(angle / 2), *(np.sin(angle / 2) * np.array(axis)))
