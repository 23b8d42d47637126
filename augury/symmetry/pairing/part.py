"""The part of a robot that is mirrored, where the rest stays as it is: its legs, and not its arm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

import mujoco
import numpy as np

from augury.symmetry.maps import SymmetryError
from augury.symmetry.pairing.names import given_name

_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_NEAREST = 4
"""Names of joints that are listed where a pattern fits none."""


@dataclass(frozen=True)
class Part:
    """What is left as it is."""

    joints: frozenset[int] = frozenset()
    bodies: frozenset[int] = frozenset()
    """Bodies that these joints move, and that carry nothing of what is mirrored."""


def part_of(model: mujoco.MjModel, only: str | None) -> Part:
    """The part whose joints' names have a match of a regular expression; free bodies are always mirrored."""
    if only is None:
        return Part()
    try:
        matches = re.compile(only).search
    except re.error as error:
        raise SymmetryError(f"only: '{only}' is no regular expression ({error})") from None
    free = np.flatnonzero(model.jnt_type == _FREE).tolist()
    named = [joint for joint in range(model.njnt) if matches(given_name(model, "joint", joint))]
    if not named:
        names = [name for joint in range(model.njnt) if (name := given_name(model, "joint", joint))]
        near = ", ".join(get_close_matches(only, names, n=_NEAREST, cutoff=0.0))
        raise SymmetryError(f"only: no joint's name has a match of '{only}'; the nearest names are {near}")
    kept = {*named, *free}
    mirrored = set()
    for joint in kept:
        body = int(model.jnt_bodyid[joint])
        while body and body not in mirrored:
            mirrored.add(body)
            body = int(model.body_parentid[body])
    left: set[int] = set()
    for body in range(1, model.nbody):
        moved = model.body_jntnum[body] > 0 or int(model.body_parentid[body]) in left
        if moved and body not in mirrored:
            left.add(body)
    return Part(frozenset(range(model.njnt)) - kept, frozenset(left))
