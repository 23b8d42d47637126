"""The Franka Panda in numbers: links, motors, hand and fingers, and how finely its motion is simulated.

Lengths, masses and limits are those of the robot's description. Inertias are the ones that PyBullet computes
from the boxes around collision shapes (`getDynamicsInfo`).

Nothing here imports a simulator: the MuJoCo model, the kinematics and the reference all read these numbers.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Point = tuple[float, float, float]

STEP = 0.04
"""Seconds that an action lasts."""
LAG = 0.002
"""PyBullet's substep, in seconds. The link positions that it reports are one substep old."""
GRAVITY = 9.81
BASE: Point = (-0.6, 0.0, 0.0)
"""Position of the arm's base."""
NEUTRAL = (0.0, 0.41, 0.0, -1.85, 0.0, 2.26, 0.79)
"""Joint angles at the start of an episode."""
UNYIELDING = 3.0
"""Rotor inertia of an unyielding motor, as a multiple of the inertia that it moves."""


class Pace(NamedTuple):
    """How finely a step is simulated. PyBullet's laws hold for its own substep; ours may be longer."""

    substeps: int
    gains: tuple[float, float, float]
    """Gains of the motors that reach their limits: those of joints 1, 2 and 4."""
    finger_gain: float

    @property
    def substep(self) -> float:
        return STEP / self.substeps

    @property
    def velocity_gain(self) -> float:
        """Velocity that a motor asks for, per unit of error: a tenth of the error in PyBullet's substep."""
        return self.reduction(0.1) / self.substep

    def reduction(self, share: float) -> float:
        """The share removed in our substep where PyBullet removes `share` in each of its own."""
        return 1 - (1 - share) ** (self.substep / LAG)


FINE = Pace(20, gains=(500, 500, 300), finger_gain=100)
"""PyBullet's own."""
COARSE = Pace(10, gains=(350, 350, 150), finger_gain=50)
"""Twice as fast, and not quite as faithful."""


class Motor(NamedTuple):
    """The motor of a joint: force = K (velocity gain · (target - angle) - velocity), within ± its limit.

    PyBullet's motors reach the velocity that they ask for within a substep where their force allows that. A
    servo that does so has a K of about inertia / substep. A larger K would not be stable.
    """

    force: float
    """Its limit."""
    gain: float
    """K."""
    rotor: float = 0.0
    """Inertia that only the joint feels. With gain = rotor / substep the servo equals an implicit one: it is
    stable at any gain, and contacts feel a motor that does not give way."""

    @classmethod
    def unyielding(cls, force: float, inertia: float, substep: float) -> Motor:
        """A motor that hardly ever reaches its limit.

        The limit grows with the rotor's inertia, so that the acceleration stays the same.
        """
        rotor = UNYIELDING * inertia
        return cls((1 + UNYIELDING) * force, rotor / substep, rotor)


class Link(NamedTuple):
    """A link and the joint that carries it, which rotates about the link's z axis."""

    position: Point
    """Of the joint, in the frame of the previous link."""
    quarter_turns: Literal[-1, 0, 1]
    """Rotation about x from the previous link's frame, in right angles."""
    mass: float
    centre: Point
    inertia: Point
    limits: tuple[float, float]
    force: float
    """Its motor's limit, N·m."""
    felt_inertia: float | None = None
    """Inertia that its motor moves, kg·m²; given for the motors that hardly ever reach their limits."""


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

HAND_OFFSET = 0.107
"""From the last joint to the hand, along the joint's axis."""
HAND_ANGLE = -math.pi / 4
"""Rotation of the hand about that axis, against the last link."""
HAND_MASS, HAND_CENTRE = 0.81, 0.04
HAND_INERTIA: Point = (0.003719, 0.001016, 0.003388)
GRASP = 0.212
"""From the last joint along its axis to the point between the fingertips. "The hand's position" means it."""

FINGERS = ("left", "right")
FINGER_RANGE = (0.0, 0.04)
FINGER_OFFSET = 0.0584
"""From the hand to the roots of the fingers, along the same axis."""
FINGER_MASS, FINGER_CENTRE = 0.1, 0.02
FINGER_INERTIA: Point = (0.000042, 0.000039, 0.000017)
FINGER_SHAPE = (  # half the width, distance from the middle, distance below the root
    (0.0104, 0.0026, 0.0),
    (0.0104, 0.0264, 0.0),
    (0.0105, 0.0252, 0.0188),
    (0.0087, 0.0, 0.0362),
    (0.0087, 0.0, 0.0506),
    (0.0087, 0.0140, 0.0506),
    (0.0055, 0.0, 0.0538),
    (0.0055, 0.0143, 0.0538),
)
"""Corners of a finger's convex shape; each stands for one on either side."""
_FINGER_FORCE, _FINGER_ROTOR = 170.0, 0.2
_BLOCKED_MOTOR = Motor(_FINGER_FORCE, gain=500, rotor=1.0)


def finger_motor(pace: Pace, *, blocked: bool) -> Motor:
    """The motor of a finger. Fingers that stay closed may have more inertia, and so give way less."""
    return _BLOCKED_MOTOR if blocked else Motor(_FINGER_FORCE, pace.finger_gain, _FINGER_ROTOR)


_CARRIED = (
    (HAND_MASS, HAND_OFFSET + HAND_CENTRE),
    (2 * FINGER_MASS, HAND_OFFSET + FINGER_OFFSET + FINGER_CENTRE),
)
LOAD = (
    sum(mass for mass, _ in _CARRIED),
    sum(mass * distance for mass, distance in _CARRIED) / sum(mass for mass, _ in _CARRIED),
)
"""What the last link carries: the mass of hand and fingers, and how far along its axis their centre is."""
