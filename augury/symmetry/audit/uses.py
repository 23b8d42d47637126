"""Which sites and frames something reads or pulls at."""

from __future__ import annotations

import mujoco
import numpy as np

_SITE, _XBODY = int(mujoco.mjtObj.mjOBJ_SITE), int(mujoco.mjtObj.mjOBJ_XBODY)


def sites_of(model: mujoco.MjModel, *sensors: mujoco.mjtSensor) -> set[int]:
    """Sites that sensors of these types are on."""
    chosen = np.isin(model.sensor_type, [int(sensor) for sensor in sensors])
    return set(model.sensor_objid[chosen & (model.sensor_objtype == _SITE)].tolist())


def used_sites(model: mujoco.MjModel) -> set[int]:
    """Sites of sensors, actuators, tendons and equality constraints."""
    drives = [int(mujoco.mjtTrn.mjTRN_SITE), int(mujoco.mjtTrn.mjTRN_SLIDERCRANK)]
    on_sites = model.eq_objtype == _SITE
    users = (
        model.sensor_objid[model.sensor_objtype == _SITE],
        model.sensor_refid[model.sensor_reftype == _SITE],
        model.actuator_trnid[np.isin(model.actuator_trntype, drives)].ravel(),
        model.wrap_objid[model.wrap_type == int(mujoco.mjtWrap.mjWRAP_SITE)],
        model.eq_obj1id[on_sites],
        model.eq_obj2id[on_sites],
    )
    return set(np.concatenate(users).tolist()) - {-1}


def bodies_read(model: mujoco.MjModel) -> set[int]:
    """Bodies whose own frame a sensor reads, or is written in."""
    return set(model.sensor_objid[model.sensor_objtype == _XBODY].tolist()) | set(
        model.sensor_refid[model.sensor_reftype == _XBODY].tolist()
    )
