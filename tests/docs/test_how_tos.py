"""The how-tos work as they are printed: their files are written, their commands and scripts run, in order.

Commands run in this process, which has imported everything already; scripts in processes of their own, from
the folder that holds the files. How blocks are read stands in `pages`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from augury.cli import main
from tests.docs.pages import DOCS, Block, Command, blocks, changed, commands

pytestmark = pytest.mark.slow

ROOT = DOCS.parent


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to follow a how-to in; modules that were imported from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name, module in [*sys.modules.items()]:
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]


def follow(page: str, folder: Path, capsys) -> str:
    """Do what a page says; returns what its commands and scripts printed."""
    printed = ""
    for block in blocks(page):
        if block.title:
            write(block, folder)
        elif block.kind == "console":
            for command in commands(block.text):
                output = here(command, capsys)
                missing = [line for line in command.shown if squeezed(line) not in squeezed(output)]
                assert not missing, f"{command.arguments} does not print {missing}, but\n{output}"
                printed += output
        elif block.kind == "python":
            script = folder / "script.py"
            script.write_text(block.text)
            printed += there([sys.executable, script.name], folder)
    return printed


def write(block: Block, folder: Path) -> None:
    path = folder / block.title
    if block.kind == "diff":
        path.write_text(changed(path.read_text(), block.text))
    else:
        path.write_text(block.text)


def here(command: Command, capsys) -> str:
    """What a command prints, in this process; one of another program in its own."""
    program, *arguments = command.arguments
    if program != "augury":
        text = command.text.replace("pytest ", f"{sys.executable} -m pytest -p no:cacheprovider ", 1)
        return there(["sh", "-c", text], Path.cwd(), command.code)
    capsys.readouterr()
    code = 0
    try:
        main(arguments)
    except SystemExit as leaving:
        code = leaving.code or 0
    output = "".join(capsys.readouterr())
    assert code == command.code, f"{command.arguments} ended with {code}:\n{output}"
    return output


def there(arguments: list[str], folder: Path, code: int = 0) -> str:
    """What a program prints, in a process of its own that imports the package of `folder`, if it has one."""
    paths = os.pathsep.join([str(folder), str(ROOT)])
    ran = subprocess.run(
        arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, f"{arguments} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def squeezed(text: str) -> str:
    """Text without what depends on the width of a terminal."""
    return re.sub(r"\s+", " ", text)


def test_your_environment(folder, capsys):
    printed = follow("how-to/environment.md", folder, capsys)
    assert "success of each agent at the end" in printed
    for run in ("none", "rotate"):
        settings = json.loads((folder / "runs" / run / "run.json").read_text())["asked"]
        assert settings["environment"] == "puck:puck"
        with np.load(folder / "runs" / run / "evaluations.npz") as evaluations:
            assert evaluations["success"].shape[0] == 2
    assert (folder / "rotate.png").stat().st_size > 1000
    assert "puck" in (folder / "runs" / "report.html").read_text()


@pytest.mark.slow
def test_families_of_tasks(folder, capsys):
    assert "family/maze(gap=0.3)" in follow("families.md", folder, capsys)


def test_a_gymnasium_environment(folder, capsys):
    printed = follow("how-to/gymnasium.md", folder, capsys)
    assert printed.count("return of each agent at the end") == 2
    for run in ("none", "mirror", "moon"):
        with np.load(folder / "runs" / run / "evaluations.npz") as evaluations:
            assert np.isfinite(evaluations["returns"]).all()


def test_your_augmentation(folder, capsys):
    follow("how-to/augmentation.md", folder, capsys)
    for run in ("mirror", "nudge"):
        with np.load(folder / "runs" / run / "evaluations.npz") as evaluations:
            assert (evaluations["augmented_coverage"][:, -1] > 0).all()
    assert (folder / "mirror.png").stat().st_size > 1000


def test_your_robot(folder, capsys):
    follow("how-to/robot.md", folder, capsys)
    with np.load(folder / "runs" / "raft" / "evaluations.npz") as evaluations:
        assert np.isfinite(evaluations["returns"]).all()
        assert (evaluations["augmented_replay_ratio"][:, -1] > 0).all()
    assert (folder / "runs" / "raft" / "report.html").exists()


def test_a_robots_task(folder, capsys):
    shutil.copy(ROOT / "examples" / "quadruped.xml", folder)
    printed = follow("how-to/task.md", folder, capsys)
    assert "(48,)" in printed
    assert "standing still: 76" in printed
    assert (folder / "mirror.png").stat().st_size > 10_000
    assert (folder / "runs" / "small" / "run.json").exists()


def test_a_mirror_for_rsl_rl(folder, capsys):
    for file in ("quadruped.py", "quadruped.xml"):
        shutil.copy(ROOT / "examples" / file, folder)
    printed = follow("how-to/rsl_rl.md", folder, capsys)
    losses = [float(loss) for loss in re.findall(r"Mean symmetry loss: +([\d.]+)", printed)]
    assert len(losses) == 5
    assert losses[-1] < losses[0]
    assert "-4." in printed  # of the last script: the other hip's angle
    assert (folder / "runs" / "rsl_rl" / "policy.pt").exists()


def test_your_study(folder, capsys):
    follow("how-to/study.md", folder, capsys)
    study = folder / "runs" / "how-far"
    assert len([*study.glob("arms/goal2d/*/run.json")]) == 3
    page = (study / "report.html").read_text()
    assert "a small translation beats none" in page
    rows = (folder / "how-far.csv").read_text().splitlines()
    assert {"nudge by 0.1", "nudge by 0.5", "none"} <= set(re.split("[,\n]", "\n".join(rows)))


def test_your_algorithm(tmp_path):
    """It changes the package: a copy of it, in processes that import the copy."""
    shutil.copytree(ROOT / "augury", tmp_path / "augury", ignore=shutil.ignore_patterns("__pycache__"))
    page = blocks("how-to/algorithm.md")
    printed = ""
    for block in page:
        if block.title:
            write(block, tmp_path)
        for command in commands(block.text) if block.kind == "console" else ():
            printed += there([sys.executable, "-m", *command.arguments], tmp_path)
    assert "double-ddpg" in printed
    settings = json.loads((tmp_path / "runs" / "double" / "run.json").read_text())["asked"]
    assert settings["algorithm"] == "double-ddpg"
    with np.load(tmp_path / "runs" / "double" / "evaluations.npz") as evaluations:
        assert evaluations["updates"][-1] > 0
