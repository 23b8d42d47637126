"""Make the robots of a folder symmetric, and let each stand beside its mirror image: one row for each.

    python benchmarks/symmetrised.py FOLDER [PATTERN …] [--side left]

Models are chosen as by benchmarks/menagerie.py. A mesh whose file is missing becomes a cube of 10 cm. The
robot starts at its first keyframe, or at qpos0; its image starts at the mirrored state. Both get random
controls, the image's mirrored. The error is the largest difference of positions and velocities in 100 steps.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import product
from pathlib import Path

import mujoco
import numpy as np
from menagerie import CUBE, models_in, said

from augury.errors import UserError
from augury.symmetry import Reflection, reflection, symmetrise
from augury.symmetry.repair.document import Document, written

STEPS = 100
NOISE = 0.1
"""Spread of the controls around those of the keyframe."""


def main() -> None:
    """Print the table as Markdown, each row when it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder that holds the folders of models")
    parser.add_argument("patterns", nargs="*", help="parts of the paths of models to take, by default all")
    parser.add_argument("--side", help="take this side instead of the mean")
    arguments = parser.parse_args()
    print("| model | put right | left | largest error in 100 steps | contacts at the end | missing meshes |")
    print("| --- " * 6 + "|")
    for path in models_in(arguments.folder, arguments.patterns):
        name = str(path.relative_to(arguments.folder).with_suffix("")).removesuffix("/scene")
        try:
            cells = row(path, arguments.side)
        except UserError as error:
            cells = ["", said(error), "", "", ""]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


def row(path: Path, side: str | None) -> list[str]:
    """What became of a model."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.xml"
        missing = completed(path, whole)
        done = symmetrise(whole, side=side)
        out = Path(folder) / "symmetric.xml"
        done.document.write(out)
        model = mujoco.MjModel.from_xml_path(str(out))
    found = reflection(model)
    error, contacts = standing(model, found)
    return [
        str(len(done.changes)),
        str(len(found.findings)),
        f"{error:.1g}",
        str(contacts),
        str(missing or ""),
    ]


def completed(path: Path, whole: Path) -> int:
    """Write a model without textures, with cubes for missing meshes; and say how many these are."""
    document = Document(path)
    said_of = {name: value for each in document.root.findall("compiler") for name, value in each.items()}
    meshes = path.parent / said_of.get("meshdir", said_of.get("assetdir", ""))
    cube = [place for corner in product((-CUBE, CUBE), repeat=3) for place in corner]
    missing = 0
    for mesh in document.root.iter("mesh"):
        file = mesh.get("file")
        if file and not (meshes / file).exists():
            missing += 1
            mesh.attrib = {"name": mesh.get("name", Path(file).stem), "vertex": written(cube)}
    for texture in document.root.iter("texture"):
        if texture.get("file"):
            name = texture.get("name", Path(texture.get("file", "")).stem)
            texture.attrib = {"name": name, "type": "2d", "builtin": "flat", "width": "1", "height": "1"}
    document.write(whole)
    return missing


def standing(model: mujoco.MjModel, found: Reflection) -> tuple[float, int]:
    """The largest error of the map from standing, and how many contacts there are at the end."""
    generator = np.random.default_rng(0)
    data, image = mujoco.MjData(model), mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    image.qpos[:], image.qvel[:] = found.qpos(data.qpos), found.qvel(data.qvel)
    image.act[:], start, worst = found.act(data.act), data.ctrl.copy(), 0.0
    for _ in range(STEPS):
        data.ctrl[:] = start + NOISE * generator.normal(size=model.nu)
        image.ctrl[:] = found.ctrl(data.ctrl)
        mujoco.mj_step(model, data)
        mujoco.mj_step(model, image)
        worst = max(
            worst,
            float(np.abs(found.qpos(data.qpos) - image.qpos).max()),
            float(np.abs(found.qvel(data.qvel) - image.qvel).max()),
        )
    return worst, int(data.ncon)


if __name__ == "__main__":
    main()
