"""A Franka Panda at its table, as panda-gym simulates it, built for MuJoCo.

Everything that decides how panda-gym moves is taken over from PyBullet as a law, not fitted:

- *links*: lengths, masses and limits of the robot's description; inertias as PyBullet computes them, from the
  boxes around its collision shapes (`getDynamicsInfo`);
- *motors*: a joint is asked for the velocity 0.1 · error / 0.002 s, and its motor gives what force that takes
  up to a limit. Here that is a servo, told the torque that carries the arm: see `Motor`;
- *contacts*: PyBullet asks that a contact's next velocity part the bodies by a share of their penetration,
  softly where fingers touch (a spring of 30,000 N/m with a damper of 1,000 N·s/m). MuJoCo solves for
  accelerations, but at a fixed time step its constraint can be given the same law: see `_law`;
- *friction*: the product of both bodies' coefficients, as PyBullet combines them;
- *damping*: what moves freely loses 0.04 (1 + speed) of its speed a second, as PyBullet has it by default.

Fingers are convex shapes, a millimetre larger than the robot's own (PyBullet's collision margin).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

STEP = 0.04
"""Seconds that an action lasts."""
LAG = 0.002
"""PyBullet's substep, by which what it tells of a link's place is late."""
GRAVITY = 9.81
BASE = (-0.6, 0.0, 0.0)
NEUTRAL = (0.0, 0.41, 0.0, -1.85, 0.0, 2.26, 0.79)
"""Joint angles at the start of an episode."""
GRASP = 0.212
"""From the last joint along its axis to the point between the fingertips, whose place is the hand's."""
FINGERS = ("left", "right")
FINGER_RANGE = (0.0, 0.04)
Thing = Literal["cube", "puck"]

_MARGIN = 0.001
_HELD = 0.99
"""How nearly hard contacts are hard."""
_STIFFNESS, _DAMPING = 30_000.0, 1_000.0
"""Of a finger's contact."""
_SLIP_DECAY = 50.0
"""Per second, while bodies stick. PyBullet stops them within a substep; in MuJoCo's convex model that would
make them part as they slide."""
_AIR = (0.04, 0.04)
"""Damping per mass: constant, and per speed."""


class Pace(NamedTuple):
    """How finely a step is simulated. PyBullet's laws tell what its substep does; here that may be longer."""

    substeps: int
    gains: tuple[float, float, float]
    """Of the motors that reach their limits, those of joints 1, 2 and 4."""
    finger_gain: float

    @property
    def substep(self) -> float:
        return STEP / self.substeps

    @property
    def asked(self) -> float:
        """Velocity that a motor asks for, per unit of error: a tenth of it in PyBullet's substep."""
        return self.reduction(0.1) / self.substep

    def reduction(self, share: float) -> float:
        """What becomes of a share that PyBullet removes in each of its substeps."""
        return 1 - (1 - share) ** (self.substep / LAG)


FINE = Pace(20, gains=(500, 500, 300), finger_gain=100)
"""PyBullet's own."""
COARSE = Pace(10, gains=(350, 350, 150), finger_gain=50)
"""Twice as fast, and not quite as faithful."""


class Motor(NamedTuple):
    """What turns a joint: force = K (asked · (target - angle) - velocity), within ± its limit.

    PyBullet's motors reach the velocity that they ask for within a substep where their force allows that. A
    servo that does so has a K of about inertia / substep, and a larger one would not be stable.
    """

    force: float
    gain: float
    rotor: float = 0.0
    """Inertia that only the joint feels; with gain = rotor / substep the servo is the same as an implicit
    one, stable at any gain, and contacts feel a motor that does not give way."""

    @classmethod
    def unyielding(cls, force: float, inertia: float, substep: float) -> Motor:
        """One that hardly ever reaches its limit. That grows with the inertia: it accelerates the same."""
        rotor = _UNYIELDING * inertia
        return cls((1 + _UNYIELDING) * force, rotor / substep, rotor)


class Link(NamedTuple):
    """A link behind a joint that turns about its own z axis."""

    place: tuple[float, float, float]
    """Of the joint, in the link before."""
    turn: Literal[-1, 0, 1]
    """Quarter turns about x from the link before."""
    mass: float
    centre: tuple[float, float, float]
    inertia: tuple[float, float, float]
    limits: tuple[float, float]
    force: float
    """Its motor's limit, N·m."""
    felt: float | None = None
    """Inertia that its motor feels, kg·m², where that one hardly ever reaches its limit."""


_UNYIELDING = 3.0
_ROUND = (-2.9671, 2.9671)
LINKS = (
    Link((0, 0, 0.333), 0, 2.7, (0, -0.04, -0.05), (0.022971, 0.017769, 0.011484), _ROUND, 87),
    Link((0, 0, 0), -1, 2.73, (0, -0.04, 0.06), (0.023491, 0.011613, 0.018228), (-1.8326, 1.8326), 87),
    Link((0, -0.316, 0), 1, 2.04, (0.01, 0.01, -0.05), (0.01092, 0.012581, 0.011968), _ROUND, 87, 1.24),
    Link((0.0825, 0, 0), 1, 2.08, (-0.03, 0.03, 0.02), (0.011335, 0.012249, 0.013057), (-3.1416, 0.0), 87),
    Link((-0.0825, 0.384, 0), -1, 3.0, (0, 0.04, -0.12), (0.035676, 0.029848, 0.012802), _ROUND, 12, 0.0296),
    Link((0, 0, 0), 1, 1.3, (0.04, 0, 0), (0.003428, 0.005117, 0.005988), (-0.0873, 3.8223), 120, 0.0446),
    Link((0.088, 0, 0), 1, 0.2, (0, 0, 0.08), (0.000362, 0.000362, 0.000592), _ROUND, 120, 0.00403),
)
_HAND_MASS, _FINGER_MASS = 0.81, 0.1
_FINGER_FORCE, _FINGER_ROTOR = 170.0, 0.2
_BLOCKED = Motor(_FINGER_FORCE, gain=500, rotor=1.0)
"""Fingers that stay closed may have more inertia, and give way less."""
_HAND_PLACE, _HAND_TURN, _FINGER_PLACE = 0.107, -np.pi / 4, 0.0584
_HAND_CENTRE, _FINGER_CENTRE = 0.04, 0.02
_WEIGHTS = (
    (_HAND_MASS, _HAND_PLACE + _HAND_CENTRE),
    (2 * _FINGER_MASS, _HAND_PLACE + _FINGER_PLACE + _FINGER_CENTRE),
)
LOAD = (
    sum(mass for mass, _ in _WEIGHTS),
    sum(mass * away for mass, away in _WEIGHTS) / sum(mass for mass, _ in _WEIGHTS),
)
"""What the last link carries: the mass of hand and fingers, and how far along its axis their centre is."""
_FINGER_SHAPE = (  # half its width, how far it is from the middle, how far below its root
    (0.0104, 0.0026, 0.0),
    (0.0104, 0.0264, 0.0),
    (0.0105, 0.0252, 0.0188),
    (0.0087, 0.0, 0.0362),
    (0.0087, 0.0, 0.0506),
    (0.0087, 0.0140, 0.0506),
    (0.0055, 0.0, 0.0538),
    (0.0055, 0.0143, 0.0538),
)
_TIP_RADIUS = 0.007
_FRICTION = {
    "table": 0.5, "floor": 0.5, "hand": 0.5, "left": 1.0, "right": 1.0, "tip": 1.0, "cube": 0.5, "puck": 0.04
}  # fmt: skip
_SPINNING = 0.001
"""Spinning friction of the fingers."""
_HARDLY_ANY = 0.01
"""Friction with the table along y, the way in which fingers open. PyBullet's motors do not feel it there, and
on the hand that of both fingers cancels. But MuJoCo's convex model makes bodies part where a motor drives one
along: there it would lift the hand by half a millimetre, and slow down the fingers."""


def build(thing: Thing, pace: Pace = FINE, *, blocked: bool, scenery: bool = False) -> mujoco.MjSpec:
    """The robot, its table and the cube or puck, ready to compile.

    The fingers of a `blocked` gripper stay closed. `scenery` adds what only pictures show: the arm's links,
    colours, and the target, a body named so.
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep = pace.substep
    spec.option.gravity = (0, 0, -GRAVITY)
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10.0
    if thing == "cube":
        # PyBullet finds one point of contact for a finger, whose stiffness is that of one point. But a puck
        # lies on several.
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_MULTICCD
    _add_surroundings(spec, thing)
    _add_arm(spec, pace, blocked)
    _add_thing(spec, thing)
    _add_contacts(spec, thing, pace, blocked)
    spec.add_sensor(
        name="hand place",
        type=mujoco.mjtSensor.mjSENS_FRAMEPOS,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="grasp",
    )
    spec.add_sensor(
        name="hand velocity",
        type=mujoco.mjtSensor.mjSENS_FRAMELINVEL,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="grasp",
    )
    if scenery:
        _add_scenery(spec, thing)
    return spec


def camera() -> mujoco.MjvCamera:
    """Where panda-gym looks from."""
    view = mujoco.MjvCamera()
    view.distance, view.azimuth, view.elevation = 1.4, 135.0, -30.0
    view.lookat[:] = -0.15, 0.0, 0.12
    return view


def _add_surroundings(spec: mujoco.MjSpec, thing: Thing) -> None:
    long, offset = (1.1, -0.3) if thing == "cube" else (1.4, -0.1)
    world = spec.worldbody
    box = mujoco.mjtGeom.mjGEOM_BOX
    world.add_geom(name="table", type=box, size=(long / 2, 0.35, 0.2), pos=(offset, 0, -0.2), **_SILENT)
    world.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(3, 3, 0.1), pos=(0, 0, -0.4), **_SILENT
    )


def _add_arm(spec: mujoco.MjSpec, pace: Pace, blocked: bool) -> None:
    gains = iter(pace.gains)
    body = spec.worldbody.add_body(name="link0", pos=BASE)
    for number, link in enumerate(LINKS, 1):
        body = body.add_body(
            name=f"link{number}",
            pos=link.place,
            quat=_turned((1, 0, 0), link.turn * np.pi / 2),
            mass=link.mass,
            ipos=link.centre,
            inertia=link.inertia,
            explicitinertial=True,
        )
        if link.felt is None:
            motor = Motor(link.force, next(gains))
        else:
            motor = Motor.unyielding(link.force, link.felt, pace.substep)
        _add_joint(spec, body, f"joint{number}", (0, 0, 1), link.limits, motor, pace)
    hand = body.add_body(
        name="hand",
        pos=(0, 0, _HAND_PLACE),
        quat=_turned((0, 0, 1), _HAND_TURN),
        mass=_HAND_MASS,
        ipos=(0, 0, _HAND_CENTRE),
        inertia=(0.003719, 0.001016, 0.003388),
        explicitinertial=True,
    )
    hand.add_geom(
        name="hand",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=np.array([0.018, 0.1, 0.0365]) + _MARGIN,
        pos=(0, 0, 0.0295),
        **_SILENT,
    )
    hand.add_site(name="grasp", pos=(0, 0, GRASP - _HAND_PLACE))
    for name, side in zip(FINGERS, (1, -1), strict=True):
        finger = hand.add_body(
            name=name,
            pos=(0, 0, _FINGER_PLACE),
            mass=_FINGER_MASS,
            ipos=(0, 0.01 * side, _FINGER_CENTRE),
            inertia=(0.000042, 0.000039, 0.000017),
            explicitinertial=True,
        )
        motor = _BLOCKED if blocked else Motor(_FINGER_FORCE, pace.finger_gain, _FINGER_ROTOR)
        _add_joint(spec, finger, name, (0, side, 0), FINGER_RANGE, motor, pace)
        spec.add_mesh(
            name=name, uservert=_finger_corners(side), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        )
        finger.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **_SILENT)
        # On the table a finger stands on its tip: a ball is found there a hundred times as fast as a mesh.
        finger.add_geom(
            name=f"{name} tip",
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=(_TIP_RADIUS, 0, 0),
            pos=(0, _TIP_RADIUS * side, _FINGER_SHAPE[-1][2] + _MARGIN - _TIP_RADIUS),
            **_SILENT,
        )


def _add_joint(
    spec: mujoco.MjSpec,
    body: Any,
    name: str,
    axis: tuple[float, float, float],
    limits: tuple[float, float],
    motor: Motor,
    pace: Pace,
) -> None:
    """A joint with its motor, whose target is kept within the joint's limits."""
    slides = name in FINGERS
    reference, impedance = _law(pace.reduction(0.2), 0.999, pace)
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
    actuator.gainprm[0] = pace.asked * motor.gain
    actuator.biasprm[1:3] = -pace.asked * motor.gain, -motor.gain


def _add_thing(spec: mujoco.MjSpec, thing: Thing) -> None:
    """What is pushed, slid or gripped: a kilogram.

    It moves by slides and a ball joint: a free joint has but one damping for its place and its turning.
    """
    cube = thing == "cube"
    moment = 0.04**2 / 6 if cube else 0.03**2 / 3
    body = spec.worldbody.add_body(
        name="thing",
        mass=1.0,
        inertia=(moment,) * 3 if cube else (moment, moment, 0.03**2 / 2),
        explicitinertial=True,
    )
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))):
        joint = body.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
        joint.damping[:2] = _AIR
    ball = body.add_joint(name="turn", type=mujoco.mjtJoint.mjJNT_BALL)
    ball.damping[:2] = moment * np.array(_AIR)
    shape = mujoco.mjtGeom.mjGEOM_BOX if cube else mujoco.mjtGeom.mjGEOM_CYLINDER
    body.add_geom(name="thing", type=shape, size=(0.02,) * 3 if cube else (0.03, 0.015, 0), **_SILENT)


def _add_contacts(spec: mujoco.MjSpec, thing: Thing, pace: Pace, blocked: bool) -> None:
    """Who may touch whom. A body's inverse weight decides how hard MuJoCo takes a contact to be."""
    model = spec.compile()
    for first, second in _PAIRS:
        kinds = [thing if name == "thing" else name.split()[-1] for name in (first, second)]
        friction = _FRICTION[kinds[0]] * _FRICTION[kinds[1]]
        soft = first.startswith(FINGERS)
        if soft:
            weight = sum(model.body(model.geom(name).bodyid[0]).invweight0[0] for name in (first, second))
            impedance = weight / (weight + 1 / (_DAMPING * pace.substep))
            reference, impedances = _law(_STIFFNESS * pace.substep / _DAMPING, impedance, pace)
        else:
            reference, impedances = _law(pace.reduction(0.08), _HELD, pace)
        handled = soft and second == "thing"
        # On the table a contact's first tangent is the world's y.
        along_y = _HARDLY_ANY if soft and second == "table" and not blocked else friction
        # What is gripped must not slip; there fingers are pressed on, and nothing parts.
        slip_decay = 1 / pace.substep if handled and not blocked else _SLIP_DECAY
        spec.add_pair(
            geomname1=first,
            geomname2=second,
            condim=4 if handled else 3,
            friction=(along_y, friction, _SPINNING * _FRICTION[thing] if handled else 1e-5, 1e-4, 1e-4),
            solref=reference,
            solimp=impedances,
            solreffriction=(-1.0, -slip_decay * impedances[0]),
        )


def _law(reduction: float, impedance: float, pace: Pace) -> tuple[Sequence[float], Sequence[float]]:
    """MuJoCo's reference and impedance for: the next velocity removes this share of a violation in a substep.

    That asks for the acceleration (reduction · r / h - v) / h. The impedance d tells how hard the constraint
    is: it gives way by (1 - d) / d of the bodies' inverse weight per force. For a spring k with a damper c
    that is 1 / (c h), and the share k h / c, if the damper is to see the next velocity, as PyBullet's does.
    """
    reference = (-reduction / pace.substep**2 * impedance**2, -impedance / pace.substep)
    return reference, (impedance, impedance, 0.001, 0.5, 2)


def _finger_corners(side: int) -> npt.NDArray[np.float64]:
    corners = []
    for half_width, across, below in _FINGER_SHAPE:
        outwards = _MARGIN if across > 0.01 else -_MARGIN
        tip = _MARGIN if below > 0.05 else 0.0
        corners += [
            (left * (half_width + _MARGIN), side * (across + outwards), below + tip) for left in (-1, 1)
        ]
    return np.array(corners).ravel()


def _turned(axis: tuple[float, float, float], angle: float) -> tuple[float, ...]:
    return (np.cos(angle / 2), *(np.sin(angle / 2) * np.array(axis)))


_PAIRS = (
    ("thing", "table"),
    ("thing", "floor"),
    ("thing", "hand"),
    ("hand", "table"),
    *((finger, "thing") for finger in FINGERS),
    *((f"{finger} tip", "table") for finger in FINGERS),
)
_SILENT: dict[str, Any] = {"contype": 0, "conaffinity": 0}
"""A geom that touches only what `_PAIRS` lists."""


def _add_scenery(spec: mujoco.MjSpec, thing: Thing) -> None:
    """Colours, a light, the arm's links as capsules, and the target as a shadow of the thing."""
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
    capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
    for name, ends, radius, colour in _LIMBS:
        spec.body(name).add_geom(
            type=capsule, fromto=ends, size=(radius, 0, 0), rgba=(*colour, 1.0), mass=0, **_SILENT
        )
    target = spec.worldbody.add_body(name="target", mocap=True)
    own = spec.geom("thing")
    target.add_geom(type=own.type, size=own.size, rgba=(*_COLOURS["thing"], 0.3), **_SILENT)
    if thing == "cube":  # so that its turning shows
        for body, alpha in ((spec.body("thing"), 1.0), (target, 0.4)):
            for face in (-1, 1):
                for axis in range(3):
                    place, size = np.zeros(3), np.full(3, 0.0125)
                    place[axis], size[axis] = 0.0196 * face, 0.0006
                    colour = _FACES[axis] * (1.0 if face > 0 else 0.55)
                    body.add_geom(
                        type=own.type, pos=place, size=size, rgba=(*colour, alpha), mass=0, **_SILENT
                    )


_WHITE, _GREY, _GREEN = (0.93, 0.93, 0.93), (0.32, 0.34, 0.37), (0.1, 0.7, 0.25)
_COLOURS = {
    "table": (0.83, 0.8, 0.75),
    "floor": (0.45, 0.47, 0.5),
    "hand": _WHITE,
    "left": _GREY,
    "right": _GREY,
    "thing": _GREEN,
}
_FACES = np.array([(0.9, 0.25, 0.2), (0.95, 0.8, 0.2), (0.2, 0.4, 0.9)])
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
