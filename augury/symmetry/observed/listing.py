"""What a list of terms may say: in a TOML file, or in Python with the same words.

    joints = ["FL_hip", "FR_hip", "FL_knee", "FR_knee"]     # the order where the robot is trained
    actions = "joint_offsets"

    [observations]
    policy = [
      "base_angular_velocity",
      "projected_gravity",
      "command",
      "joint_offsets",
      { name = "phase", kind = "gait_phase", feet = ["FL_foot", "FR_foot"] },
      "previous_action",
    ]

    [sizes]                                                 # optional: what the trainer says
    policy = 17
    action = 4

An error names the file, the group, the term and the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from augury.errors import UserError, nearest, unknown_name
from augury.symmetry.observed.kinds import ACTIONS, KINDS, Count, PreviousAction, Term
from augury.toml_files import converted, read_toml

Entry = str | dict[str, Any]
"""A term: its kind, or a table with its kind and what else it says."""


class Stack(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of terms of which several frames are observed, one whole frame after the other."""

    terms: tuple[Entry, ...]
    history: Count = 1


class Listing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is observed, as it is written."""

    observations: dict[str, tuple[Entry, ...] | Stack]
    """Terms by observation group: rsl_rl's groups are often called policy and critic."""
    joints: tuple[str, ...] | None = None
    """Their order where the robot is trained; by default the model's."""
    actions: Entry = "joint_offsets"
    """What an action holds: one number for each joint (joint_offsets, joint_positions, joint_velocities), or
    for each of the model's actuators (controls)."""
    sizes: dict[str, int] = {}
    """Of observation groups, and of the action: the terms must add up to them."""


class Described(msgspec.Struct, frozen=True):
    """The same, with every term made."""

    groups: dict[str, tuple[Term, ...]]
    history: dict[str, int]
    action: Term
    joints: tuple[str, ...] | None
    sizes: dict[str, int]


def read(path: Path) -> Described:
    """The terms that a file lists."""
    return described(read_toml(path), str(path))


def described(written: Mapping[str, Any], where: str = "terms") -> Described:
    """The terms that such a table lists."""
    listing: Listing = converted(written, Listing, where)
    action = _term(listing.actions, ACTIONS, f"{where}: actions")
    groups, history = {}, {}
    for group, entries in listing.observations.items():
        stack = entries if isinstance(entries, Stack) else Stack(entries)
        place = f"{where}: {group}"
        made = [_term(entry, KINDS, place) for entry in stack.terms]
        labels = [term.label for term in made]
        if twice := next((label for label in labels if labels.count(label) > 1), None):
            raise UserError(f"{place} lists '{twice}' twice: give one of them a name")
        groups[group] = tuple(
            msgspec.structs.replace(term, action=action) if isinstance(term, PreviousAction) else term
            for term in made
        )
        history[group] = stack.history
    if not groups:
        raise UserError(f"{where}: 'observations' lists no terms")
    if "action" in groups:
        raise UserError(f"{where}: an observation group cannot be called 'action'")
    for sized in listing.sizes:
        if sized not in (known := {*groups, "action"}):
            raise UserError(f"{where}: sizes: there is no group '{sized}'{nearest(sized, known)}")
    return Described(groups, history, action, listing.joints, listing.sizes)


def whole_state() -> Described:
    """All positions, and all velocities, and the actuators' controls: what there is without a list."""
    return described({"observations": {"qpos": ["positions"], "qvel": ["velocities"]}, "actions": "controls"})


def _term(entry: Entry, kinds: Mapping[str, type[Term]], where: str) -> Term:
    fields = {"kind": entry} if isinstance(entry, str) else entry
    if "kind" not in fields:
        raise UserError(f"{where}: {fields} has no 'kind': choose from {', '.join(sorted(kinds))}")
    kind = fields["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise UserError(f"{where}: {unknown_name('kind of term', str(kind), kinds)}")
    made: Term = converted(fields, kinds[kind], f"{where}: {fields.get('name', kind)}")
    return made
