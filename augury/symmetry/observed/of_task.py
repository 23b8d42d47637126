"""What a task of ours observes and does, as a list of terms: nobody need write it again."""

from __future__ import annotations

from typing import Any

from augury.envs.mujoco import terms as task_terms
from augury.envs.mujoco.task import MujocoTask
from augury.errors import UserError
from augury.symmetry.observed.kinds import KINDS, OfJoints, OfState
from augury.symmetry.observed.listing import Described, described

_NAMES = {
    **{own.read: name for name, own in vars(task_terms).items() if isinstance(own, task_terms.Term)},
    task_terms.sensor("").read: "sensor",
}
"""What a list calls the terms that tasks share, by the function that reads them."""


def observed_by(task: MujocoTask) -> Described:
    """Its terms; its actions are the controls of actuators."""
    entries = [_entry(task, own) for own in task.observed_terms]
    return described({"observations": {"observation": entries}, "actions": "controls"}, str(task.name))


def _entry(task: MujocoTask, own: task_terms.Term) -> dict[str, Any]:
    kind, table = _NAMES.get(own.read, ""), own.table(task.anatomy)
    if kind == "sensor" and not own.skipped:
        return {"name": own.name, "kind": kind, "sensor": own.given[0]}
    if kind and KINDS[kind] is OfState:
        return {"kind": kind, "skip": own.skipped}
    if kind and KINDS[kind] is OfJoints:
        return {"kind": kind, "joints": [quantity.joint for quantity in table]}
    if kind and kind != "sensor" and not own.skipped:
        return {"kind": kind}
    if all(quantity.kind == "scalar" for quantity in table):
        return {"name": own.name, "kind": "custom", "signs": [1.0] * len(table)}
    raise UserError(
        f"{task.name} observes '{own.name}', which a written test cannot measure: list in a file what the "
        "map is for, and name it with --terms"
    )
