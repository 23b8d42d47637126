"""How symmetric are the robots of MuJoCo Menagerie, or of any folder of models? One row of a table for each.

    python benchmarks/menagerie.py FOLDER [PATTERN …]

Models are the files scene*.xml in the folder's folders, or all *.xml where there is none; patterns choose
among them. A mesh whose file is missing becomes a cube of 10 cm; the table says for how many. Textures are
left out. Of errors it gives the median, 99% and the share of states beyond 0.01 m or rad. Time is that of
the processor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import mujoco

from augury.symmetry import SymmetryError
from augury.symmetry.audit.findings import largest
from augury.symmetry.model_audit import Audit, audit
from augury.symmetry.simulate import Spread

CUBE = 0.05
"""Half the edge of the cube that stands for a missing mesh, in metres."""


class Row(NamedTuple):
    """A line of the table."""

    model: str
    plane: str = ""
    verdict: str = ""
    largest: str = ""
    soon: str = ""
    later: str = ""
    seconds: str = ""
    meshes: str = ""


HEADER = Row(
    "model", "normal", "verdict", "largest finding", "off after 0.1 s", "after 1 s", "time", "missing meshes"
)


def main() -> None:
    """Print the table as Markdown, each row when it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder that holds the folders of models")
    parser.add_argument("patterns", nargs="*", help="parts of the paths of models to take, by default all")
    arguments = parser.parse_args()
    show(HEADER)
    show(Row(*["---"] * len(HEADER)))
    for path in models_in(arguments.folder, arguments.patterns):
        show(row(arguments.folder, path))


def models_in(folder: Path, patterns: Sequence[str]) -> Iterator[Path]:
    """Scenes, which have a floor, or else models by themselves."""
    for directory in sorted(each for each in folder.iterdir() if each.is_dir()):
        found = sorted(directory.glob("scene*.xml")) or sorted(directory.glob("*.xml"))
        for path in found:
            if not patterns or any(pattern in str(path.relative_to(folder)) for pattern in patterns):
                yield path


def row(folder: Path, path: Path) -> Row:
    """What `augury symmetry` says of a model."""
    name = str(path.relative_to(folder).with_suffix("")).removesuffix("/scene")
    try:
        model, missing = loaded(path)
    except ValueError as error:
        return Row(name, verdict="not loaded", largest=said(error))
    started = time.process_time()
    try:
        found = audit(model, name)
    except SymmetryError as error:
        return Row(name, verdict="no mirror", largest=said(error), meshes=str(missing or ""))
    seconds = f"{time.process_time() - started:.1f} s"
    return Row(
        name, found.reflection.plane.removeprefix("normal "), found.verdict, worst(found),
        *spreads(found), seconds, str(missing or ""),
    )  # fmt: skip


def loaded(path: Path) -> tuple[mujoco.MjModel, int]:
    """A model without textures, with cubes for missing meshes; and how many these are."""
    spec = mujoco.MjSpec.from_file(str(path))
    missing = 0
    for mesh in spec.meshes:
        if mesh.file and _absent(Path(mesh.file), path.parent):
            missing, mesh.file = missing + 1, ""
            mesh.scale = [1, 1, 1]
            mesh.uservert = [place for corner in product((-CUBE, CUBE), repeat=3) for place in corner]
    for texture in spec.textures:
        texture.file, texture.cubefiles = "", [""] * 6
        texture.builtin, texture.width, texture.height = mujoco.mjtBuiltin.mjBUILTIN_FLAT, 1, 1
    return spec.compile(), missing


def _absent(mesh: Path, folder: Path) -> bool:
    """MuJoCo writes whole paths where it found no file, and others as the model has them."""
    return not (mesh.exists() if mesh.is_absolute() else any(folder.rglob(mesh.name)))


def worst(found: Audit) -> str:
    """The largest finding with its size."""
    one = largest(found.reflection.findings)
    if one is None:
        return "none"
    if one.size is None or one.relative is None:
        return f"{one.parameter} of {one.first}"
    return f"{one.parameter} of {one.first}: {one.difference}, {100 * one.relative:.2g}%"


def spreads(found: Audit) -> tuple[str, str]:
    """The errors of positions after some time: the median, 99%, and the share beyond the bound."""

    def shown(spread: Spread) -> str:
        return f"{spread.median:.1g}, {spread.high:.1g}, {spread.beyond:.0%}"

    if found.simulated is None or not found.simulated.horizons:
        return "", ""
    soon, *later = map(shown, found.simulated.horizons)
    return soon, "".join(later)


def said(error: Exception) -> str:
    """An error in a few words."""
    return " ".join(str(error).split()).split(":")[0].replace("|", "/")[:90]


def show(line: Row) -> None:
    """Print a row of the table."""
    print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
