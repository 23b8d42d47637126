"""Contacts as PyBullet solves them, given to MuJoCo: which bodies touch, how hard, with which friction.

- PyBullet asks that a contact's next velocity removes a share of the penetration. Contacts of fingers are
  soft: a spring of 30,000 N/m with a damper of 1,000 N·s/m.
- MuJoCo solves for accelerations. At a fixed time step its constraints can be given the same law: see
  `constraint_law`.
- Friction is the product of both bodies' coefficients, as in PyBullet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import mujoco

from augury.envs.panda.robot import FINGERS, Pace

ObjectShape = Literal["cube", "puck"]

PAIRED: dict[str, Any] = {"contype": 0, "conaffinity": 0}
"""Options of a geom that touches only what `_PAIRS` lists."""

FEET = tuple(f"foot {number}" for number in range(16))
"""Balls on which a puck lies: eight on either side."""

_HARDNESS = 0.99
"""Impedance of hard contacts; 1 would be perfectly hard."""
_STIFFNESS, _DAMPING = 30_000.0, 1_000.0
"""Of a finger's contact, N/m and N·s/m."""
_SLIP_DECAY = 50.0
"""Decay of slip per second while bodies stick. PyBullet stops them within a substep. In MuJoCo's convex
model that would push sliding bodies apart."""
_FRICTION = {
    "table": 0.5, "floor": 0.5, "hand": 0.5, "left": 1.0, "right": 1.0, "tip": 1.0, "cube": 0.5, "puck": 0.04
}  # fmt: skip
_SPINNING = 0.001
"""Spinning friction of the fingers."""
_TIP_FRICTION_ALONG_Y = 0.01
"""Friction between fingertips and table along y, the direction in which fingers open. PyBullet's motors do
not feel it there, and on the hand the friction of both fingers cancels. MuJoCo's convex model pushes bodies
apart where a motor drives one along the other: full friction would lift the hand by half a millimetre and
slow the fingers."""
_PAIRS = (
    ("object", "table"),
    ("object", "floor"),
    ("object", "hand"),
    ("hand", "table"),
    *((finger, "object") for finger in FINGERS),
    *((f"{finger} tip", "table") for finger in FINGERS),
)


def add_contacts(spec: mujoco.MjSpec, shape: ObjectShape, pace: Pace, *, blocked: bool) -> None:
    """List the pairs that may touch.

    The model is compiled to get the bodies' inverse weights, on which the hardness of a contact depends.
    """
    model = spec.compile()
    pairs = _PAIRS if shape == "cube" else (*_PAIRS, *((foot, "table") for foot in FEET))
    for first, second in pairs:
        kinds = [shape if name in ("object", *FEET) else name.split()[-1] for name in (first, second)]
        friction = _FRICTION[kinds[0]] * _FRICTION[kinds[1]]
        soft = first.startswith(FINGERS)
        if soft:
            weight = sum(model.body(model.geom(name).bodyid[0]).invweight0[0] for name in (first, second))
            impedance = weight / (weight + 1 / (_DAMPING * pace.substep))
            reference, impedances = constraint_law(_STIFFNESS * pace.substep / _DAMPING, impedance, pace)
        else:
            reference, impedances = constraint_law(pace.reduction(0.08), _HARDNESS, pace)
        gripping = soft and second == "object"
        # On the table a contact's first tangent is the world's y.
        along_y = _TIP_FRICTION_ALONG_Y if soft and second == "table" and not blocked else friction
        # A gripped object must not slip. The fingers press on it, so the contact does not open either.
        slip_decay = 1 / pace.substep if gripping and not blocked else _SLIP_DECAY
        spec.add_pair(
            geomname1=first,
            geomname2=second,
            condim=4 if gripping else 3,
            friction=(along_y, friction, _SPINNING * _FRICTION[shape] if gripping else 1e-5, 1e-4, 1e-4),
            solref=reference,
            solimp=impedances,
            solreffriction=(-1.0, -slip_decay * impedances[0]),
        )


def constraint_law(reduction: float, impedance: float, pace: Pace) -> tuple[Sequence[float], Sequence[float]]:
    """MuJoCo's `solref` and `solimp` with which the next velocity removes this share of a violation r.

    The constraint asks for the acceleration (reduction · r / h - v) / h, where h is the substep. The
    impedance d says how hard it is: it gives way by (1 - d) / d of the bodies' inverse weight per force. A
    spring k with a damper c gives way by 1 / (c h) and removes the share k h / c, provided that the damper
    acts on the next velocity, as PyBullet's does.
    """
    reference = (-reduction / pace.substep**2 * impedance**2, -impedance / pace.substep)
    return reference, (impedance, impedance, 0.001, 0.5, 2)
