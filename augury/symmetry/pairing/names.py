"""What elements of a model are called, and what their names say about left and right."""

from __future__ import annotations

import re

import mujoco

_KINDS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "tendon": mujoco.mjtObj.mjOBJ_TENDON,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "sensor": mujoco.mjtObj.mjOBJ_SENSOR,
    "equality": mujoco.mjtObj.mjOBJ_EQUALITY,
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
    "exclude": mujoco.mjtObj.mjOBJ_EXCLUDE,
}
_SIDES = {"l": "left", "left": "left", "lft": "left", "r": "right", "right": "right", "rgt": "right"}


def given_name(model: mujoco.MjModel, kind: str, index: int) -> str:
    """The name an element was given, or nothing."""
    return mujoco.mj_id2name(model, _KINDS[kind], index) or ""


def body_name(model: mujoco.MjModel, body: int) -> str:
    """The name of a body, or else of its first joint, or nothing."""
    joint = model.body_jntadr[body]
    return given_name(model, "body", body) or (given_name(model, "joint", joint) if joint >= 0 else "")


def label(model: mujoco.MjModel, kind: str, index: int) -> str:
    """An element's name, or words by which a person finds it."""
    return given_name(model, kind, index) or f"{kind} {index}{_whereabouts(model, kind, index)}"


def mirrored_names(first: str, second: str) -> bool:
    """Whether two names differ in their side only: thigh and thigh_left, FL_hip and FR_hip."""
    (first_sides, first_rest), (second_sides, second_rest) = _sides_and_rest(first), _sides_and_rest(second)
    return bool(first_rest) and first_rest == second_rest and first_sides != second_sides


def _whereabouts(model: mujoco.MjModel, kind: str, index: int) -> str:
    if kind == "body":
        return f" (child of {label(model, 'body', model.body_parentid[index])})"
    if kind in ("joint", "geom", "site"):
        body = {"joint": model.jnt_bodyid, "geom": model.geom_bodyid, "site": model.site_bodyid}[kind][index]
        return f" (of {label(model, 'body', body)})"
    if kind == "actuator" and model.actuator_trntype[index] == mujoco.mjtTrn.mjTRN_JOINT:
        return f" (on {label(model, 'joint', model.actuator_trnid[index, 0])})"
    return ""


def _sides_and_rest(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sides a name tells, and its other words; the left finger of the right hand tells two."""
    sides: list[str] = []
    others: list[str] = []
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name):
        side, rest = _split(word.lower())
        sides += [side] if side else []
        others += rest
    return tuple(sides), tuple(others)


def _split(word: str) -> tuple[str, tuple[str, ...]]:
    """A word's side and what else it says: fl is front left, lh left hind, leftarm the left arm."""
    if word in _SIDES:
        return _SIDES[word], ()
    if corner := re.fullmatch(r"([fbhrm])([lr])", word):
        return _SIDES[corner[2]], (corner[1],)
    if corner := re.fullmatch(r"([lr])([fbhrm])", word):
        return _SIDES[corner[1]], (corner[2],)
    if glued := re.fullmatch(r"(left|right)(.+)|(.+)(left|right)", word):
        return glued[1] or glued[4], (glued[2] or glued[3],)
    return "", (word,)
