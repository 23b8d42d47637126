"""Where a robot meets something: another body, or the end of a joint's range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from augury.envs.mujoco.quantities import Quantity
from augury.transition import Transition
from augury.verify.base import Flags, Rows

CLOSE = 0.01
"""Share of a joint's range, before its limit, that counts as being there."""


def at_limit(model: mujoco.MjModel, table: Sequence[Quantity], transition: Transition) -> Flags | None:
    """Which transitions begin or end with a joint at its limit; None where no observed joint has one."""
    ends = [transition.observation, transition.next_observation]
    if isinstance(ends[0], dict):
        return None
    joints = {int(model.jnt_qposadr[joint]): joint for joint in np.flatnonzero(model.jnt_limited)}
    single = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    found: Flags | None = None
    for place, quantity in enumerate(table):
        joint = joints.get(quantity.address) if quantity.kind == "qpos" else None
        if joint is None or model.jnt_type[joint] not in single:
            continue
        low, high = model.jnt_range[joint]
        margin = CLOSE * (high - low)
        beyond = [(one[:, place] < low + margin) | (one[:, place] > high - margin) for one in ends]
        found = beyond[0] | beyond[1] | (False if found is None else found)
    return found


def touching(model: mujoco.MjModel, poses: Iterable[Rows]) -> Flags:
    """In which poses something touches."""
    data = mujoco.MjData(model)

    def touches(qpos: Rows) -> bool:
        data.qpos[:] = qpos
        mujoco.mj_fwdPosition(model, data)
        return bool(data.ncon)

    return np.array([touches(qpos) for qpos in poses])
