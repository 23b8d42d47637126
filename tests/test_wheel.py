"""The package as others get it: built, checked, and installed from a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import jax
import pytest

ROOT = Path(__file__).parents[1]


def run(*words: str | Path, folder: Path) -> str:
    """What a command prints that is run outside the checkout, and without a path to it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_holds_all_that_its_commands_need(tmp_path):
    dist, bare = tmp_path / "dist", tmp_path / "bare"
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, ROOT, folder=tmp_path)
    (wheel,) = dist.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), folder=tmp_path)

    venv.create(bare, symlinks=True)
    python, augury = bare / "bin" / "python", bare / "bin" / "augury"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel, folder=tmp_path)
    # What it depends on is the checkout's. The link that installs the checkout itself is not followed.
    packages = Path(
        run(python, "-c", "import site; print(site.getsitepackages()[0])", folder=tmp_path).strip()
    )
    (packages / "dependencies.pth").write_text(f"{Path(jax.__file__).parents[1]}\n")
    imported = Path(run(python, "-c", "import augury; print(augury.__file__)", folder=tmp_path).strip())
    assert imported.is_relative_to(packages)

    assert "goal2d/translate" in run(augury, "list", folder=tmp_path)
    listed = {study["file"] for study in json.loads(run(augury, "study", "list", "--json", folder=tmp_path))}
    assert listed == {path.stem for path in (ROOT / "studies").rglob("*.toml")}
    small = ("--only", "×2 via translate", "--agents", "2", "--steps", "11000")
    run(augury, "study", "run", "first-look", *small, folder=tmp_path)
    page = tmp_path / "runs" / "first-look" / "report.html"
    assert "augury study run first-look --agents 2 --steps 11000" in page.read_text()
    assert "ant as Gymnasium has it" in run(augury, "symmetry", "ant", "--json", folder=tmp_path)
