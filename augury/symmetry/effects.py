"""What a finding does to a second of motion: a model beside one in which this alone is put right."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import mujoco
import numpy as np

from augury.symmetry.audit.findings import Finding
from augury.symmetry.maps import Array
from augury.symmetry.motions import Motion, followed, steps_of
from augury.symmetry.occurring import silence

_MOTIONS = 2
_MOST_STEPS = 5_000
"""Of all findings together: where there are many, only the largest are measured."""
_PREFIXES = {"joint": ("jnt", "dof")}


def with_effects(
    model: mujoco.MjModel, findings: Sequence[Finding], motions: Sequence[Motion]
) -> list[Finding]:
    """The findings; the largest of those that are numbers have their effect."""
    chosen = [each for each in motions if each.start.kind == "driven" and each.whole][:_MOTIONS]
    measured = sorted((one for one in findings if one.relative is not None), key=_relative)
    measured = measured[: _MOST_STEPS // (steps_of(model) * _MOTIONS)]
    if not measured or not chosen:
        return list(findings)
    with silence():
        spare = copy.copy(model)  # one for all: a model with many meshes is large
        effects = {id(one): _effect(spare, one, chosen) for one in measured}
    return [replace(one, effect=effects.get(id(one))) for one in findings]


@contextmanager
def put_right(model: mujoco.MjModel, finding: Finding) -> Iterator[bool]:
    """For a while the second element has what the first has, mirrored; False where nobody knows what."""
    fields = _fields(model, finding)
    before = [field.copy() for field, _ in fields]
    _write(model, fields)
    try:
        yield bool(fields)
    finally:
        _write(model, [(field, old) for (field, _), old in zip(fields, before, strict=True)])


def _relative(finding: Finding) -> float:
    return -(finding.relative or 0.0)


def _fields(model: mujoco.MjModel, finding: Finding) -> list[tuple[Array, Array]]:
    """The numbers of a model that a finding is about, each with what they should be; none if unknown."""
    if finding.mirrored is None or finding.index < 0:
        return []
    value = np.array(finding.mirrored, float)
    if finding.parameter == "body inertia":
        size, axes = np.linalg.eigh(value)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, axes.ravel())
        return [(model.body_inertia[finding.index], size), (model.body_iquat[finding.index], quaternion)]
    kind, name = finding.parameter.split(maxsplit=1)
    for prefix in _PREFIXES.get(kind, (kind,)):
        values = getattr(model, f"{prefix}_{name}", None)
        if isinstance(values, np.ndarray):
            place = int(model.jnt_dofadr[finding.index]) if prefix == "dof" else finding.index
            field = values[place : place + 1]
            return [(field, value.reshape(field.shape))] if field.size == value.size else []
    return []


def _write(model: mujoco.MjModel, fields: Sequence[tuple[Array, Array]]) -> None:
    for field, value in fields:
        field[...] = value
    if fields:  # masses at qpos0 and the like follow from them
        mujoco.mj_setConst(model, mujoco.MjData(model))


def _effect(model: mujoco.MjModel, finding: Finding, motions: Sequence[Motion]) -> float | None:
    with put_right(model, finding) as known:
        if not known:
            return None
        data = mujoco.MjData(model)
        ends = [followed(model, data, own.start, own.controls)[-1:] for own in motions]
    apart = [
        float(np.abs(position - own.positions[-1]).max(initial=0))
        for own, end in zip(motions, ends, strict=True)
        for position in end
    ]
    return float(np.median(apart)) if apart else None
