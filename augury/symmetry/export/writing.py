"""Write a map as a file of its own, and beside it the tests that ask the simulator about it."""

from __future__ import annotations

import inspect
import json
import os
import pprint
from pathlib import Path
from typing import Any, NamedTuple

import mujoco

import augury
from augury.errors import UserError
from augury.files import replacing
from augury.symmetry.export import code, simulator
from augury.symmetry.export.asking import (
    compared_bodies,
    layout,
    mirrored_actions,
    plane_of,
    still_joints,
    tolerances,
)
from augury.symmetry.export.checks import POLICY, TESTS, applied, imports
from augury.symmetry.export.code import TORCH, Form
from augury.symmetry.export.tables import listed, offsets_of, rows_of, table
from augury.symmetry.observed.mirror import ACTION, TermsMirror, Vector
from augury.symmetry.pairing.names import label

ROUNDING = {"jax": 1e-5}
"""Of the numbers in which an exported map computes; JAX has 32 bits unless it is told otherwise."""


class Source(NamedTuple):
    """What a map is derived from."""

    model: Path
    """The model's file, which the tests load."""
    terms: str | None = None
    """What lists the terms; without it, all positions and velocities are meant."""
    remarks: tuple[str, ...] = ()
    """What else its reader should know: findings, the verdict."""
    task: str = ""
    """The task that has the model: then the file is written too, as MuJoCo keeps models."""

    @property
    def called(self) -> str:
        """What a reader knows the model by."""
        return self.task or self.model.name


def checked_out(form: Form, out: Path | None) -> Path:
    """The file to write, which Python can import; by default one in this folder."""
    suffix = ".json" if form == "json" else ".py"
    if out is not None and (out.suffix != suffix or not out.stem.isidentifier()):
        raise UserError(f"--out {out}: a map for {form} is a file like mirror{suffix}")
    return out or Path(f"mirror{suffix}")


def export(mirror: TermsMirror, form: Form, out: Path, source: Source) -> tuple[Path, ...]:
    """Write the map and its tests, and a task's model; a map that the simulator contradicts is refused."""
    tests = out.with_name(f"test_{out.stem}.py")
    allowed = tolerances(mirror)
    text = _as_json(mirror, source) if form == "json" else _as_code(mirror, form, out, source)
    rounding = ROUNDING.get(form, 1e-9)
    constants = {
        "BODY_TOLERANCE": allowed.bodies,
        "TERM_TOLERANCE": max(allowed.terms, rounding),
        "EFFECT_TOLERANCE": max(allowed.effects, 10 * rounding),
        "ROUNDING": rounding,
    }
    with replacing(out) as temporary:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        with replacing(tests) as beside:
            beside.write_text(_tests(mirror, form, out, source, constants), encoding="utf-8")
            if source.task:
                with replacing(source.model) as saved:
                    mujoco.mj_saveModel(mirror.robot.model, str(saved))
    return (out, tests, source.model) if source.task else (out, tests)


def _as_code(mirror: TermsMirror, form: Form, out: Path, source: Source) -> str:
    maps = [f'    "{name}": [\n{_indented(table(vector))}\n    ],' for name, vector in mirror.vectors.items()]
    offsets = {name: offsets_of(vector.map) for name, vector in mirror.vectors.items()}
    return "\n".join(
        [
            f'"""{_told(mirror, source)}\n\nTest it: pytest test_{out.name}\n"""\n',
            code.IMPORTS[form],
            f"# The order in which joints are listed; where the robot is trained, it must be the same.\n"
            f"JOINTS = [\n{listed(map(repr, mirror.robot.joints))}\n]",
            "# For each number of the mirror image: the numbers that it is a sum of, with their factors.",
            "MAPS = {",
            *maps,
            "}",
            "# What is added to a number of the mirror image, where that is not zero.",
            f"OFFSETS = {_quoted(offsets)}\n",
            code.functions(form, mirror.groups[0]),
        ]
    )


def _as_json(mirror: TermsMirror, source: Source) -> str:
    maps = {name: _plain(vector) for name, vector in mirror.vectors.items()}
    return json.dumps({"about": _told(mirror, source), "maps": maps}, indent=1)


def _plain(vector: Vector) -> list[dict[str, object]]:
    return [
        {"name": number.name, "term": number.term, "sources": row, "offset": number.offset}
        for number, row in zip(vector.numbers, rows_of(vector.map), strict=True)
    ]


def _told(mirror: TermsMirror, source: Source) -> str:
    """What was derived from what."""
    own = mirror.robot
    counts = ", ".join(f"{name} {len(vector)}" for name, vector in mirror.vectors.items())
    observed = f"observations as {source.terms} lists them" if source.terms else "positions and velocities"
    if source.task and source.terms == source.task:
        observed = "what it observes"
    lines = [
        f"The mirror of {source.called}, for {observed}.",
        "",
        f"Made by Augury {augury.__version__} from the model: no index and no sign was written by hand.",
        "Bodies, joints and actuators were paired by where they are in the model's reference pose, before a",
        f"mirror plane ({own.mirror.plane}). Signs of joints follow from their axes. Vectors in the base's",
        "own frame are reflected, and angular velocities likewise as pseudovectors.",
        f"Numbers: {counts}.",
        *(f"Not mirrored: {', '.join(names)}." for names in [own.mirror.left_out.get("joint")] if names),
        *source.remarks,
    ]
    return "\n".join(lines)


def _tests(mirror: TermsMirror, form: Form, out: Path, source: Source, constants: dict[str, float]) -> str:
    own = mirror.robot
    matrix, offset = plane_of(mirror)
    model = Path(os.path.relpath(source.model.resolve(), out.parent.resolve())).as_posix()
    terms = {name: layout(mirror, vector) for name, vector in mirror.vectors.items()}
    bodies = "\n".join(
        f"    {image},  # {body} {label(own.model, 'body', body)} -> {_named(own.model, image)}"
        for body, image in enumerate(compared_bodies(mirror))
    )
    kept = (
        f"\n{source.model.name} is its model, which MuJoCo {mujoco.__version__} reads." if source.task else ""
    )
    head = f'''"""Does the simulator agree with {out.name}?

Every term is measured in {source.called}, at random states and at their mirror images: joints by their
names, velocities in the base's own frame, heights of feet. None of that uses the map, so that a sign or an
index that is wrong in it is found and named. SYMMETRY_MODEL names another model file.{kept}

Written by Augury {augury.__version__} with the map.
"""
'''
    return "\n".join(
        [
            head,
            imports(form),
            f'MAP = Path(__file__).with_name("{out.name}")',
            f'MODEL = Path(__file__).parent / os.environ.get("SYMMETRY_MODEL", "{model}")',
            "# Relative to the largest number where that is above 1; the model itself is a tenth of it off.",
            *(f"{name} = {value:.3g}" for name, value in constants.items()),
            f'ACTION = "{mirror.vectors[ACTION].terms[0].label}"',
            "# How blocks of your own are measured: functions of model and data, by the name of the term.",
            "CUSTOM = {}",
            "# What is observed, in this order.",
            f"TERMS = {{\n{_terms(terms)}\n}}",
            "# The plane: a point p is reflected to the matrix times p, plus the offset.",
            f"PLANE = ({matrix.tolist()}, {offset.tolist()})",
            "# The mirror image of every body that has a joint of its own, and is mirrored.",
            f"BODIES = [\n{bodies}\n]",
            "# How the simulator's own state is mirrored; the first test asks the simulator about it.",
            f"QPOS = {pprint.pformat(rows_of(own.mirror.qpos), width=110, compact=True)}",
            f"QPOS_OFFSETS = {offsets_of(own.mirror.qpos)}",
            f"QVEL = {pprint.pformat(rows_of(own.mirror.qvel), width=110, compact=True)}",
            "# The default pose, from which offsets of joints count.",
            f"DEFAULT = [\n{listed(map(repr, own.anatomy.qpos.tolist()))}\n]",
            "# Joints that are not mirrored, which are kept still; and the actions of the others.",
            f"STILL = {json.dumps(still_joints(mirror))}",
            f"ACTIONS = {mirrored_actions(mirror)}",
            applied(form),
            _embedded(),
            TESTS,
            *([POLICY.lstrip("\n")] if form in TORCH else []),
        ]
    )


def _named(model: mujoco.MjModel, body: int | None) -> str:
    return "not compared" if body is None else label(model, "body", body)


def _quoted(offsets: dict[str, dict[int, float]]) -> str:
    return "{" + ", ".join(f'"{name}": {own}' for name, own in offsets.items()) + "}"


def _terms(layouts: dict[str, dict[str, Any]]) -> str:
    """A line for each term."""
    lines = []
    for group, own in layouts.items():
        lines.append(f'    "{group}": {{"size": {own["size"]}, "history": {own["history"]}, "terms": {{')
        lines += [f"        {json.dumps(name)}: {json.dumps(term)}," for name, term in own["terms"].items()]
        lines.append("    }},")
    return "\n".join(lines)


def _embedded() -> str:
    """What asks the simulator, without its docstring and its imports."""
    source = inspect.getsource(simulator)
    return source[source.index("Array = Any") :].rstrip() + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
