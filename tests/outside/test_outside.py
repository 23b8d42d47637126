"""Environments and augmentations of users, each in one file outside the package, through every door.

Files stand beside this one, and are given as `module:name` from the folder that holds them, or as objects.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import augury
from augury import augmentations, envs
from augury.cli import main
from augury.errors import UserError
from augury.fleet import load_policies, resolved
from augury.runs import results
from tests.killing import assert_resumes_after_a_kill

HERE = Path(__file__).parent
SMALL = ["--agents", "2", "--evaluation-episodes", "4", "--evaluate-every", "60"]
DOORS = {  # what is trained, with which augmentation
    "point_mass:PointMass": "point_mass:mirror",
    "cart:cart": "cart:mirror",
}


@pytest.fixture(autouse=True)
def _outside(monkeypatch):
    """In the users' folder, as their shell would be."""
    monkeypatch.chdir(HERE)
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One finished run of each environment, made by the command line."""
    folder, before = tmp_path_factory.mktemp("runs"), Path.cwd()
    os.chdir(HERE)
    try:
        for environment, augmentation in DOORS.items():
            out = folder / environment.partition(":")[0]
            main(["train", environment, "--augmentation", augmentation, *SMALL, "--out", str(out)])
    finally:
        os.chdir(before)
    return folder


@pytest.mark.parametrize("environment", DOORS)
def test_a_run_records_where_its_environment_is_found(trained, environment):
    run = results.read_run(trained / environment.partition(":")[0])
    assert run["asked"]["environment"] == environment
    assert run["asked"]["augmentation"] == DOORS[environment]
    assert run["measure"] == envs.make(environment).measure


@pytest.mark.parametrize("environment", DOORS)
def test_objects_train_to_the_same_bits_as_names(trained, environment):
    folder = trained / environment.partition(":")[0]
    run, made = results.read(folder), envs.make(environment)
    function = augmentations.make(DOORS[environment])
    settings = {"agents": 2, "evaluation_episodes": 4, "evaluate_every": 60}
    again = augury.train([augury.Arm(environment=made, augmentation=function, **settings)])[0]
    for name, values in run.evaluations.items():
        np.testing.assert_array_equal(again.evaluations[name], values)
    assert again.measure == run.measure == made.measure


@pytest.mark.parametrize("environment", DOORS)
def test_policies_are_evaluated_at_home_and_by_an_object(trained, environment, capsys):
    folder = trained / environment.partition(":")[0]
    main(["evaluate", str(folder), "--episodes", "3", "--json"])
    told = json.loads(capsys.readouterr().out)
    played = load_policies(folder).play(envs.make(environment), episodes=3)
    assert [one["returns"] for one in told["agents"]] == pytest.approx(played.returns.tolist(), abs=1e-4)


def test_runs_are_reported(trained, capsys):
    main(["report", str(trained), "--json"])
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert sorted(row["arm"] for row in arms) == ["mirror m=1 α=1"] * 2
    assert (trained / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["point_mass:PointMass", "cart:cart"])
def test_a_study_trains_them(tmp_path, environment, capsys):
    study = tmp_path / "mine.toml"
    study.write_text(
        f"""
        title = "Mine"
        task = "{environment}"
        agents = 4
        steps = 120
        [settings]
        evaluate_every = 60
        evaluation_episodes = 2
        [[arms]]
        name = "none"
        [[arms]]
        name = "mirrored"
        augmentation = "{DOORS[environment]}"
        [[claims]]
        says = "a mirror helps"
        better = "mirrored"
        than = "none"
        """
    )
    environment_variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, *sys.path)))}
    command = [sys.executable, "-m", "augury", "study", "run", str(study), "--out", str(tmp_path)]
    subprocess.run(command, check=True, env=environment_variables, capture_output=True)
    arms = sorted(path.parent.name for path in (tmp_path / "mine" / "arms").glob("*/*/evaluations.npz"))
    assert arms == ["mirrored", "none"]
    assert environment in (tmp_path / "mine" / "report.html").read_text()


def test_augmentations_are_verified_where_they_hold_and_where_they_do_not(capsys):
    for environment, augmentation in DOORS.items():
        main(["verify", augmentation, "--environment", environment, "--samples", "60"])
    with pytest.raises(SystemExit, match="1"):
        main(["verify", "point_mass:mirror", "--environment", "point_mass:windy", "--samples", "60"])
    assert "INVALID" in capsys.readouterr().out
    import point_mass

    augury.assert_dynamics_invariant(point_mass.mirror, point_mass.PointMass(), samples=60)


def test_augmentations_are_shown(tmp_path):
    for environment, augmentation in DOORS.items():
        path = tmp_path / f"{environment.partition(':')[0]}.png"
        main(["show", augmentation, "--environment", environment, "--out", str(path)])
        assert imread(path).std() > 0.01


@pytest.mark.slow
def test_a_plain_function_trains_is_killed_and_resumes_in_a_new_process(tmp_path):
    asked = ["point_mass:PointMass", *SMALL, "--augmentation", "point_mass:mirror"]
    asked += ["--steps", "4096", "--checkpoint-every", "0"]
    assert_resumes_after_a_kill(asked, tmp_path, paths=[HERE])


def test_what_python_gave_can_be_found_again():
    import cart
    import point_mass

    arm = resolved(augury.Arm(environment=point_mass.windy, augmentation=point_mass.mirror))
    described = arm.described()
    assert described["environment"] == "point_mass:windy"
    assert described["augmentation"] == "point_mass:mirror"
    assert envs.make(described["environment"]) == point_mass.windy
    assert envs.reference(cart.Cart()) == "cart:Cart", "equal to what its class makes"
    assert "0x" not in json.dumps(
        resolved(augury.Arm(environment=point_mass.PointMass(0.3), augmentation=lambda key, t: t)).described()
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["train", "no_such:thing"], "there is no module 'no_such'"),
        (["train", "point_mass:PointMas"], "point_mass has no 'PointMas': did you mean 'PointMass'?"),
        (
            ["train", "broken:env"],
            "importing broken failed: ZeroDivisionError: division by zero (broken.py, line 1)",
        ),
        (["train", "exits:env"], "importing exits failed: SystemExit: 3 (exits.py, line 1)"),
        (["train", "lacking:env"], "lacking-step lacks step: see augury.JaxEnvironment"),
        (["train", "lacking:number"], "int is no environment that can be trained on"),
        (["train", "lacking:Raising"], "lacking:Raising: Raising() failed: ValueError: no"),
        (["train", "lacking:wrong_shape"], "observe gives shape (3,), observation_low has (4,)"),
        (["train", "goal2d", "--augmentation", "point_mass:miror"], "did you mean 'mirror'?"),
        (["train", "goal2d", "--augmentation", "lacking:number"], "no augmentation: it cannot be called"),
        (
            ["verify", "point_mass:mirror", "--environment", "lacking:unverifiable"],
            "restore(observation, extras)",
        ),
        (["show", "point_mass:mirror", "--environment", "lacking:unverifiable"], "draw(axes, transitions)"),
    ],
)
def test_bad_references_are_one_line_each(words, complaint, tmp_path, monkeypatch, capsys):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "lacking.py").write_text(
        """
import dataclasses
import jax.numpy as jnp
import augury
from point_mass import PointMass

class Lacking(augury.JaxEnvironment):
    name = "lacking-step"
    horizon, observation_low, observation_high = 3, *PointMass.__dict__["observation_low"][None].repeat(2, 0)
    action_low, action_high = -jnp.ones(1), jnp.ones(1)
    reset = observe = lambda self, key: key

class Raising:
    def __init__(self):
        raise ValueError("no")

@dataclasses.dataclass(frozen=True)
class Wrong(PointMass):
    def observe(self, state):
        return state[:3]

@dataclasses.dataclass(frozen=True)
class Unverifiable(PointMass):
    restore = property()
    draw = property()

env, number, wrong_shape, unverifiable = Lacking(), 3, Wrong(), Unverifiable()
"""
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(SystemExit) as leaving:
        main(words)
    told = capsys.readouterr().err
    assert leaving.value.code == 2
    assert complaint in told
    assert told.count("\n") == 1


def test_two_environments_of_one_name_are_refused():
    import point_mass

    augury.register(point_mass.windy)
    augury.register(point_mass.windy)  # again, but the same
    assert envs.make("point-mass") == point_mass.windy
    with pytest.raises(UserError, match=r"'point-mass' is there already \(from point_mass\)"):
        augury.register(point_mass.PointMass())
    with pytest.raises(UserError, match=r"'goal2d' is there already \(from augury\)"):
        augury.register(type("Other", (point_mass.PointMass,), {"name": "goal2d"})())
