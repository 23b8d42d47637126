"""What a finding does to a second of motion: a model beside one in which this alone is put right."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np

from augury.symmetry.audit.findings import Finding
from augury.symmetry.maps import Array
from augury.symmetry.occurring import HOLD, State, near, silence, stable

SECONDS = 1.0
"""For how long the two are followed."""
_STATES = 2
_MOST_STEPS = 6_000
"""Of all findings together: where there are many, only the largest are measured."""
_PREFIXES = {"joint": ("jnt", "dof")}


def with_effects(
    model: mujoco.MjModel, findings: Sequence[Finding], states: Sequence[State]
) -> list[Finding]:
    """The findings; the largest of those that are numbers have their effect."""
    steps = max(1, round(SECONDS / model.opt.timestep))
    chosen = [state for state in states if state.kind == "driven"][:_STATES]
    measured = sorted((one for one in findings if one.relative is not None), key=_relative)
    measured = measured[: max(0, _MOST_STEPS // (steps * _STATES) - 1)]
    if not measured or not chosen:
        return list(findings)
    with silence():
        before = [_moved(model, state, steps) for state in chosen]
        effects = {id(one): _effect(model, one, chosen, before, steps) for one in measured}
    return [replace(one, effect=effects.get(id(one))) for one in findings]


def mended(model: mujoco.MjModel, finding: Finding) -> mujoco.MjModel | None:
    """A copy of a model in which the second element has what the first has, mirrored; None if unknown."""
    if finding.mirrored is None or finding.index < 0:
        return None
    changed, value = copy.copy(model), np.array(finding.mirrored, float)
    if finding.parameter == "body inertia":
        size, axes = np.linalg.eigh(value)
        changed.body_inertia[finding.index] = size
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        mujoco.mju_mat2Quat(changed.body_iquat[finding.index], axes.ravel())
    else:
        field = _field(changed, finding)
        if field is None or field.size != value.size:
            return None
        field[...] = value.reshape(field.shape)
    mujoco.mj_setConst(changed, mujoco.MjData(changed))
    return changed


def _relative(finding: Finding) -> float:
    return -(finding.relative or 0.0)


def _field(model: mujoco.MjModel, finding: Finding) -> Array | None:
    """The numbers of a model that a finding is about."""
    kind, name = finding.parameter.split(maxsplit=1)
    for prefix in _PREFIXES.get(kind, (kind,)):
        values = getattr(model, f"{prefix}_{name}", None)
        if isinstance(values, np.ndarray):
            place = int(model.jnt_dofadr[finding.index]) if prefix == "dof" else finding.index
            return values[place : place + 1]
    return None


def _effect(
    model: mujoco.MjModel,
    finding: Finding,
    states: Sequence[State],
    before: Sequence[Array | None],
    steps: int,
) -> float | None:
    changed = mended(model, finding)
    if changed is None:
        return None
    apart = [
        float(np.abs(after - own).max(initial=0))
        for state, own in zip(states, before, strict=True)
        if own is not None and (after := _moved(changed, state, steps)) is not None
    ]
    return float(np.median(apart)) if apart else None


def _moved(model: mujoco.MjModel, state: State, steps: int) -> Array | None:
    """Positions after some steps with random controls; None where the simulator gives up."""
    data, generator = mujoco.MjData(model), np.random.default_rng(0)
    state.put(model, data)
    hold = max(1, round(HOLD / model.opt.timestep))
    for done in range(0, steps, hold):
        data.ctrl[:] = near(model, state.ctrl, generator)
        mujoco.mj_step(model, data, min(hold, steps - done))
    return data.qpos.copy() if stable(data) else None
