"""`augury verify`, `augury symmetry` and `augury show`, as their users meet them."""

import json
from pathlib import Path

import gymnasium
import pytest

from augury.cli import main
from tests.sledges import sledges

__all__ = ["sledges"]

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


def test_what_a_user_wrote_is_named_by_its_module(sledges, capsys):
    assert run("verify", "sledges:mirror", "--environment", "sledges:sledge", "--samples", "200") == 0
    assert "0 of 200 at 1e-08" in capsys.readouterr().out
    assert run("verify", "sledges:half_a_mirror", "--environment", "sledges:sledge", "--samples", "200") == 1
    assert "the sign of action 0 is wrong" in " ".join(capsys.readouterr().out.split())
    assert run("show", "sledges:mirror", "--environment", "sledges:sledge", "--out", "mirror.png") == 0
    assert Path("mirror.png").exists()
    assert run("symmetry", "sledges:cart", "--json") == 0
    (audit,) = json.loads(capsys.readouterr().out.removeprefix("picture in mirror.png\n"))
    assert audit["reflection"]["observation"]["names"] == ["rail position", "rail velocity"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("verify", "sledges:mirrow", "--environment", "sledges:sledge"),
            "sledges has no 'mirrow': did you mean 'mirror'?",
        ),
        (("verify", "sledges:mirror"), "sledges:mirror may be for any environment: say which"),
        (
            ("verify", "sledges:mirror", "--environment", "sledges:plain"),
            "give it a method restore(observation",
        ),
        (
            ("show", "sledges:mirror", "--environment", "sledges:plain"),
            "there are no pictures of plain: give it a method draw(axes, transitions)",
        ),
        (("symmetry", "sledges:sledge"), "sledges:sledge has no MuJoCo model"),
    ],
)
def test_what_a_users_module_lacks_is_one_clear_line(sledges, arguments, message, capsys):
    assert run(*arguments) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert len(said.splitlines()) == 1
    assert not list(Path().glob("*.png"))


@pytest.mark.slow
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
    [("inverted-pendulum", "body ipos"), ("inverted_double_pendulum", "option gravity")],
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
