"""What installed packages provide: real distributions, as pip would leave them in a folder of the path."""

import json
import os
import subprocess
import sys

import pytest

from augury.augmentations import CATALOGUE
from augury.envs import ENVIRONMENTS
from augury.errors import UserError
from augury.registry import Registry
from tests.outside import point_mass


def install(folder, name, modules, **groups):
    """A package with these modules and entry points."""
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, points in groups.items():
        lines += [f"[augury.{group}]", *(f"{own} = {value}" for own, value in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))


SLIDING = """
from dataclasses import dataclass
from tests.outside.point_mass import PointMass, mirror

@dataclass(frozen=True)
class Sliding(PointMass):
    name = "sliding"
"""


@pytest.fixture
def packages(tmp_path, monkeypatch):
    install(
        tmp_path,
        "sliders",
        {"sliders": SLIDING},
        environments={"sliding": "sliders:Sliding", "other": "sliders:Sliding", "goal2d": "sliders:Sliding"},
        augmentations={"sliders/mirror": "sliders:mirror"},
    )
    install(
        tmp_path,
        "wreck",
        {"wreck": "raise RuntimeError('a wreck')"},
        environments={"sunk": "wreck:Ship", "contested": "wreck:Ship"},
        augmentations={"wreck/turn": "wreck:turn"},
    )
    install(tmp_path, "rival", {}, environments={"contested": "rival:Ship"})
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def again(registry):
    """The same registry in a process that has not looked yet."""
    return Registry(registry.kind, registry.group, registry._load_built_in, registry._accept)


def test_packages_provide_environments_and_augmentations(packages):
    environments, augmentations = again(ENVIRONMENTS), again(CATALOGUE)
    sliding = environments["sliding"]
    assert (sliding.name, sliding.horizon) == ("sliding", 20)
    assert augmentations["sliders/mirror"].make() is point_mass.mirror
    origins = {one.name: one.origin for one in (*environments.listed(), *augmentations.listed())}
    assert origins["sliding"] == origins["sliders/mirror"] == "sliders"
    assert origins["panda-push"] == origins["ant/rotate"] == "augury"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("sunk", "wreck provides a broken 'sunk': .*importing wreck failed: RuntimeError: a wreck"),
        ("contested", "'contested' is provided by (wreck and rival|rival and wreck): uninstall one"),
        ("other", "sliders provides a broken 'other': the environment calls itself 'sliding'"),
        ("slidin", "unknown environment 'slidin': did you mean 'sliding'"),
    ],
)
def test_one_that_fails_is_told_to_whoever_asks_for_it(packages, name, complaint):
    environments = again(ENVIRONMENTS)
    assert environments["goal2d"] == ENVIRONMENTS["goal2d"], "ours keep their names"
    with pytest.raises(UserError, match=complaint):
        environments[name]


@pytest.mark.slow
def test_the_command_line_finds_them_and_survives_broken_ones(packages):
    path = os.pathsep.join(map(str, (packages, *sys.path)))

    def augury(*words):
        command = [sys.executable, "-m", "augury", *words]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})

    told = augury("list", "--json")
    listed = json.loads(told.stdout)
    assert listed["origins"]["sliding"] == "sliders"
    assert {"sunk", "contested", "other", "goal2d", "wreck/turn"} == listed["problems"].keys()
    refused = augury("verify", "sliders/mirror", "--environment", "sunk")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "a wreck" in refused.stderr
    assert augury("verify", "sliders/mirror", "--environment", "sliding", "--samples", "20").returncode == 0


def test_names_that_are_taken_are_refused():
    registry = again(ENVIRONMENTS)
    registry.register("mine", point_mass.windy, "a")
    with pytest.raises(UserError, match=r"an environment called 'mine' is there already \(from a\)"):
        registry.register("mine", point_mass.PointMass(), "b")
