"""`augury verify`, `augury symmetry` and pictures of poses, as their users meet them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import matplotlib.image
import numpy as np
import pytest

from augury.cli import main
from augury.envs.mujoco.locomotion import TASKS
from augury.envs.mujoco.rendering import Camera
from augury.envs.panda.tasks import PANDA_TASKS
from augury.errors import UserError
from augury.show import scenes

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"


def run(*arguments):
    """The exit code of a command."""
    try:
        main(list(arguments))
    except SystemExit as leaving:
        return leaving.code
    return 0


def test_a_valid_augmentation_exits_with_0(capsys):
    assert run("verify", "swimmer/reflect", "--samples", "200") == 0
    shown = capsys.readouterr().out
    assert "INVALID" not in shown
    assert "0 of 200 at 1e-08" in shown


def test_an_invalid_one_exits_with_1_and_says_why(capsys):
    assert run("verify", "humanoid/rotate", "--environment", "humanoid-paper", "--samples", "2000") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "INVALID" in shown
    assert "are in contact" in shown
    assert "angular velocity" in shown


def test_a_program_can_read_the_verdict(capsys):
    assert run("verify", "ant/reflect", "--samples", "100", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["valid"], report["invalid"], report["samples"]) == (True, 0, 100)
    assert report["contact"]["touching"] + report["contact"]["free"] == 100


OWN = """
def mirror(key, transition):
    flip = [-1.0, 1.0, -1.0, 1.0]
    import jax.numpy as jnp
    flip = jnp.array(flip, transition.observation.dtype)
    radius, angle = transition.action
    return transition._replace(
        observation=flip * transition.observation,
        action=jnp.stack([radius, (jnp.pi - angle) % (2 * jnp.pi)]),
        next_observation=flip * transition.next_observation,
    )
"""


def test_an_augmentation_of_ones_own_is_named_by_its_module(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_mirror.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert run("verify", "own_mirror:mirror", "--environment", "goal2d", "--samples", "300") == 0
    assert run("verify", "own_mirror:miror", "--environment", "goal2d") == 2
    assert "cannot import 'own_mirror:miror'" in capsys.readouterr().err


def test_the_humanoids_faults_are_found_and_mended(capsys):
    assert run("symmetry", "humanoid", "--json") == 0
    stock, corrected = json.loads(capsys.readouterr().out)
    found = {(one["parameter"], one["first"]) for one in stock["reflection"]["findings"]}
    assert found == {
        ("joint armature", "right_hip_y"),
        ("joint stiffness", "right_knee"),
        ("option solver", "option"),
    }
    assert {one["parameter"] for one in stock["rotation"]["findings"]} == {"option solver", "option cone"}
    assert stock["reflection"]["simulated_error"] > 1e-3
    assert corrected["reflection"]["findings"] == corrected["rotation"]["findings"] == []
    assert corrected["reflection"]["simulated_error"] < 1e-10
    assert corrected["rotation"]["simulated_error"] < 1e-10
    signs = dict(
        zip(*(corrected["reflection"]["observation"][part] for part in ("names", "signs")), strict=True)
    )
    assert signs["abdomen_z angle"] == -1
    assert signs["abdomen_y angle"] == 1


@pytest.mark.parametrize(
    ("robot", "parameter"),
    [("inverted-pendulum", "geom pos"), ("inverted_double_pendulum", "option gravity")],
)
def test_the_pendulums_faults_are_found_and_mended(robot, parameter, capsys):
    assert run("symmetry", robot, "--json") == 0
    stock, corrected = json.loads(capsys.readouterr().out)
    assert parameter in {one["parameter"] for one in stock["reflection"]["findings"]}
    assert corrected["reflection"]["findings"] == []
    assert corrected["reflection"]["simulated_error"] < 1e-10


def test_a_model_file_that_is_not_symmetric_exits_with_1(capsys):
    assert run("symmetry", str(ASSETS / "walker2d.xml")) == 1
    shown = capsys.readouterr().out
    assert "foot_left_geom" in shown
    assert "1.9" in shown


def test_a_symmetric_one_exits_with_0_and_shows_its_map(capsys):
    assert run("symmetry", str(ASSETS / "swimmer.xml")) == 0
    shown = capsys.readouterr().out
    assert "nothing breaks the reflection" in shown
    assert "motor2_rot" in shown


TWINS = """<mujoco><worldbody><body name="torso"><freejoint/><geom size=".1"/>
<body name="one"><joint name="a" axis="0 1 0"/><geom size=".1" pos="0 0 -.2"/></body>
<body name="two"><joint name="b" axis="0 1 0"/><geom size=".1" pos="0 0 -.2"/></body>
</body></worldbody></mujoco>"""


def test_an_ambiguous_model_is_explained_and_resolved_by_a_pair(tmp_path, capsys):
    path = tmp_path / "twins.xml"
    path.write_text(TWINS)
    assert run("symmetry", str(path)) == 2
    message = capsys.readouterr().err
    assert "one" in message
    assert "two" in message
    assert len(message.splitlines()) == 1
    assert run("symmetry", str(path), "--pair", "one=two") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "ant/rotat"), "unknown augmentation 'ant/rotat': did you mean 'ant/rotate'?"),
        (
            ("verify", "ant/rotate", "--environment", "ants"),
            "unknown environment 'ants': did you mean 'ant'?",
        ),
        (("verify", "ant/rotate", "--samples", "0"), "samples must be at least 1, not 0"),
        (
            ("show", "panda/translate-goal"),
            "choose one of panda-push, panda-slide, panda-pick-and-place, panda-flip",
        ),
        (
            ("show", "panda/translate-goal", "--environment", "panda-gym-flip-quadrant"),
            "there are no pictures of panda-gym-flip-quadrant: choose panda-flip-quadrant",
        ),
        (("show", "panda/translate-goal", "--environment", "ant"), "is for panda-*, not for ant"),
        (("show", "ant/rotate", "--environment", "panda-push"), "is for ant, not for panda-push"),
        (("symmetry", "nowhere.xml"), "cannot read the model nowhere.xml"),
        (("symmetry", "goal2d"), "goal2d has no MuJoCo model"),
        (("symmetry", "humanid"), "did you mean 'humanoid'?"),
        (("symmetry", "ant", "--pair", "one"), "--pair must read one=other, not 'one'"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message, capsys):
    assert run(*arguments) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert len(said.splitlines()) == 1


def has_gl():
    try:
        Camera(TASKS["ant"].model).close()
    except UserError:
        return False
    return True


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
@pytest.mark.parametrize("name", ["walker2d/reflect", "ant/rotate"])
def test_poses_are_drawn(name, tmp_path):
    path = tmp_path / "poses.png"
    assert run("show", name, "--out", str(path)) == 0
    picture = matplotlib.image.imread(path)
    above, below = picture[: len(picture) // 2], picture[len(picture) // 2 :]
    assert above.std() > 0.1
    assert abs(above[: len(below)] - below[: len(above)]).mean() > 0.01  # not the same poses twice


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
@pytest.mark.parametrize("environment", ["panda-slide", "panda-flip-quadrant"])
def test_scenes_are_drawn(environment, tmp_path):
    path = tmp_path / "scenes.png"
    assert run("show", "panda/hindsight", "--environment", environment, "--out", str(path)) == 0
    picture = matplotlib.image.imread(path)
    assert picture.shape[0] > 1000
    above, below = picture[: len(picture) // 2], picture[len(picture) // 2 :]
    assert abs(above[: len(below)] - below[: len(above)]).mean() > 0.01  # not the same scenes twice


@pytest.mark.skipif(not has_gl(), reason="no OpenGL on this machine")
@pytest.mark.parametrize("goal", [(0.1, -0.1, 0.02), (0.55, 0.15, 0.03), (0.55, -0.15, 0.03)])
def test_a_ring_is_around_the_goals_shadow(goal):
    task = PANDA_TASKS["panda-push"]
    pose = task.start(np.random.default_rng(0)).qpos
    with Camera(task.scene, scenes.WIDTH, scenes.HEIGHT) as camera:
        seen, unseen = (
            camera.picture(pose, scenes._view(), task.target(np.array(place))).astype(int)
            for place in (goal, (0, 0, -1))
        )
    rows, columns = np.nonzero(np.abs(seen - unseen).sum(-1) > 40)
    middle = (columns.min() + columns.max()) / 2, (rows.min() + rows.max()) / 2
    assert middle == pytest.approx(scenes._pixel(scenes._view(), task.scene, np.array(goal)), abs=15)
    assert scenes.RING < middle[1] < scenes.HEIGHT - scenes.RING


@pytest.mark.parametrize("missing", [{"MUJOCO_GL": "glfw"}, {"PYOPENGL_PLATFORM": "osmesa"}])
def test_without_opengl_it_says_how_to_get_it(missing, tmp_path):
    """A window needs a display; and a library that is asked for something else is as good as none."""
    environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    environment.pop("MUJOCO_GL", None)
    shown = subprocess.run(
        [sys.executable, "-m", "augury", "show", "ant/rotate", "--out", str(tmp_path / "poses.png")],
        env=environment | missing,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 2
    assert "set MUJOCO_GL=egl" in shown.stderr.strip().splitlines()[-1]
    assert not (tmp_path / "poses.png").exists()
