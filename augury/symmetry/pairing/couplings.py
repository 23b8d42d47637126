"""Joints that move as one: what drives one of them drives the other."""

from __future__ import annotations

import mujoco
import numpy as np


def couplings(model: mujoco.MjModel) -> dict[tuple[int, int], float]:
    """The sign between two joints of which a constraint makes one a multiple of the other."""
    found: dict[tuple[int, int], float] = {}
    for equality in np.flatnonzero((model.eq_type == int(mujoco.mjtEq.mjEQ_JOINT)) & model.eq_active0):
        first, second = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
        polynomial = model.eq_data[equality, :5]
        if second >= 0 and polynomial[1] and not polynomial[2:].any():
            found[first, second] = found[second, first] = float(np.sign(polynomial[1]))
    return found
