"""How symmetric a model is: one verdict, for the command line, for `reflect` and for programs."""

import json
import math
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

from augury.augmentations.symmetry import reflect
from augury.cli import main
from augury.symmetry import SymmetryError, reflection
from augury.symmetry.audit.units import GROUPS
from augury.symmetry.effects import put_right
from augury.symmetry.model_audit import audit
from augury.symmetry.motions import FEWEST, FOLLOWED
from augury.symmetry.occurring import occurring
from augury.symmetry.verdict import reason
from tests.marks import OLDER_MUJOCO

ROBOT = """
<mujoco><option cone="elliptic"/>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="trunk" pos="0 0 0.4"><freejoint/><geom type="box" size="0.2 0.1 0.05"/>
      <body name="left" pos="0 0.15 0"><joint name="left" axis="0 1 0" damping="0.5"/>
        <inertial mass="1" pos="0 0 -0.1" diaginertia="0.01 0.01 0.001"/>
        <geom name="left" type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/></body>
      <body name="right" pos="0 -0.15 0"><joint name="right" axis="0 1 0" damping="{damping}"/>
        <inertial mass="{mass}" pos="0 0 -0.1" diaginertia="{inertia} 0.01 0.001"/>
        <geom name="right" type="capsule" fromto="0 0 0 0 0 {length}" size="0.03" friction="{friction}"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="left" joint="left" kp="20"/><position name="right" joint="right" kp="20"/>
  </actuator>
</mujoco>"""
SAME = {"damping": 0.5, "mass": 1, "inertia": 0.01, "length": -0.3, "friction": 1}


def robot(**other: float) -> str:
    return ROBOT.format(**SAME | other)


def model(**other: float) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(robot(**other))


CASES = [
    ({}, "exact"),
    ({"inertia": 0.01000003}, "approximate"),  # the sixth digit
    ({"length": -0.35}, "not symmetric"),  # another leg
]


@pytest.mark.parametrize(("other", "verdict"), CASES, ids=str)
def test_command_line_reflect_and_json_say_the_same(other, verdict, tmp_path, capsys):
    path = tmp_path / "robot.xml"
    path.write_text(robot(**other))
    with pytest.raises(SystemExit) if verdict == "not symmetric" else warnings.catch_warnings():
        main(["symmetry", str(path), "--json"])
    (said,) = json.loads(capsys.readouterr().out)
    assert said["verdict"] == verdict
    if verdict == "not symmetric":
        with pytest.raises(SymmetryError, match="not symmetric"):
            reflect(model(**other))
    elif verdict == "approximate":
        with pytest.warns(UserWarning, match="only approximately symmetric"):
            reflect(model(**other))
        with pytest.raises(SymmetryError, match="not symmetric"):
            reflect(model(**other), tolerance=0)
    else:
        reflect(model(**other), tolerance=0)


def test_a_tolerance_decides_and_an_infinite_one_accepts_everything():
    heavier = model(mass=1.2)
    reflect(heavier, tolerance=0.3)
    reflect(heavier, tolerance=math.inf)
    assert audit(heavier, "robot", tolerance=0.3).verdict == "approximate"
    with pytest.raises(SymmetryError, match="not symmetric"):
        reflect(heavier, tolerance=0.1)


def test_an_approximate_model_exits_with_0_and_a_line(tmp_path, capsys):
    path = tmp_path / "robot.xml"
    path.write_text(robot(mass=1.01))
    main(["symmetry", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert "approximate at a tolerance of 0.05: body mass: left has 1, right has 1.01" in said
    assert "after 0.1 s from 20 states positions are off by" in said


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"inertia": 0.0104}, "body inertia: right is 0.0004 kg·m² off the mirror image of left"),
        ({"mass": 1.01}, "body mass: left has 1, right has 1.01"),
    ],
)
def test_a_verdict_is_one_line_without_matrices(other, said):
    mirror = reflection(model(**other))
    assert reason(mirror, 0.05, None).startswith(f"{said}: 0.0")


def test_a_finding_has_a_size_in_its_unit_and_relative_and_the_mirrored_value():
    (finding,) = reflection(model(mass=1.01)).findings
    assert (finding.parameter, finding.unit, finding.group) == ("body mass", "kg", "dynamics")
    assert finding.size == pytest.approx(0.01)
    assert finding.relative == pytest.approx(0.01 / 1.01)
    assert finding.mirrored == 1.0


def test_a_finding_tells_what_it_does_to_a_second_of_motion():
    found = audit(model(mass=1.04, damping=0.52), "robot").reflection.findings
    effects = {finding.parameter: finding.effect for finding in found}
    assert 0 < effects["joint damping"] < 0.1
    assert 0 < effects["body mass"] < 0.1


def test_some_states_are_followed_for_a_second_and_the_others_for_a_tenth():
    soon, later = audit(model(mass=1.01), "robot").simulated.horizons
    assert (soon.seconds, later.seconds) == (0.1, 1.0)
    assert FEWEST <= later.states < soon.states == FOLLOWED


def test_any_pose_is_one_within_the_ranges_of_joints():
    limited = model()
    limited.jnt_limited[1:], limited.jnt_range[1:] = 1, (0.2, 0.5)
    found = [state for state in occurring(limited, 30) if state.kind == "any pose"]
    assert len(found) == 10
    angles = np.array([state.qpos[7:] for state in found])
    assert ((angles > 0.1) & (angles < 0.6)).all()  # a limit is soft
    assert np.ptp(angles) > 0.1


@pytest.mark.parametrize("other", [{"mass": 1.1}, {"inertia": 0.011}, {"damping": 0.6}, {"friction": 0.9}])
def test_a_finding_put_right_is_found_no_more(other):
    broken = model(**other)
    (finding,) = reflection(broken).findings
    with put_right(broken, finding) as known:
        assert known
        assert reflection(broken).findings == []
    assert reflection(broken).findings == [finding]


def test_positions_are_measured_against_how_far_a_body_reaches():
    (finding,) = (f for f in reflection(model(length=-0.301)).findings if f.parameter == "geom pos")
    assert finding.size == pytest.approx(0.0005)
    assert finding.relative == pytest.approx(0.0005 / 0.15, rel=0.1)


def test_a_body_reaches_from_its_joint_wherever_its_origin_is():
    with_origin_at_the_foot = (
        robot(length=-0.001)
        .replace('0.15 0"><joint', '0.15 -0.3"><joint pos="0 0 0.3"')
        .replace('pos="0 0 -0.1"', 'pos="0 0 0.2"')
        .replace("0 0 0 0 0 -0.3", "0 0 0.3 0 0 0")
        .replace("0 0 0 0 0 -0.001", "0 0 0.3 0 0 -0.001")
    )
    sizes = [
        finding.relative
        for each in (model(length=-0.301), mujoco.MjModel.from_xml_string(with_origin_at_the_foot))
        for finding in reflection(each).findings
        if finding.parameter == "geom pos"
    ]
    assert len(sizes) == 2
    assert sizes[0] == pytest.approx(sizes[1])


def test_findings_come_in_groups_and_ranked():
    found = reflection(model(mass=1.01, damping=0.6, friction=0.9)).findings
    groups = [GROUPS.index(finding.group) for finding in found]
    assert groups == sorted(groups)
    assert [finding.parameter for finding in found] == ["joint damping", "body mass", "geom friction"]


def test_the_map_of_an_approximate_model_is_off_by_little_and_that_of_another_leg_by_more():
    near, far = (audit(model(**other), "robot").simulated for other in ({"mass": 1.01}, {"mass": 3}))
    assert near.horizons[0].seconds == 0.1
    assert 0 < near.horizons[0].median < 1e-3 < far.horizons[0].median
    exact = audit(model(), "robot").simulated
    assert exact.step.largest < 1e-9
    assert exact.horizons[0].high < 1e-6


CYLINDERS = """
<mujoco><option cone="elliptic"/>
  <worldbody>
    <geom name="table" type="box" size="9 9 1" pos="0 0 -1"/>
    <body name="left" pos="0 0.3 0.05"><freejoint/>
      <geom name="left" type="cylinder" size="0.05 0.1"/></body>
    <body name="right" pos="0 -0.3 0.05"><freejoint/>
      <geom name="right" type="cylinder" size="0.05 0.1"/></body>
  </worldbody>
</mujoco>"""


def test_contacts_that_mujoco_does_not_find_mirrored_are_named_and_no_fault_of_the_model():
    found = audit(mujoco.MjModel.from_xml_string(CYLINDERS), "cylinders", normal="y")
    assert found.verdict == "exact"
    assert found.simulated.step.largest > 1e-3
    assert found.simulated.unexplained < (1e-5 if OLDER_MUJOCO else 1e-9)
    named = {(first, second) for first, second, _ in found.simulated.contacts}
    assert named == {("table", "left"), ("table", "right")}


def test_such_contacts_hide_nothing():
    model = mujoco.MjModel.from_xml_string(CYLINDERS)
    model.geom_surfacevel[1] = [0.1, 0.2, 0.3, 0, 0, 0][: model.geom_surfacevel.shape[1]]
    found = audit(model, "cylinders", normal="y")
    assert found.reflection.findings == []  # the audit does not know these
    assert found.verdict == "not symmetric"
    assert "the simulator is off by" in found.reason
    with pytest.raises(SymmetryError, match="surface velocities are not compared"):
        reflect(model, normal="y")


def test_no_file_is_left_where_the_simulation_is_unstable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wild = robot().replace('kp="20"', 'kp="1e12"')
    found = audit(mujoco.MjModel.from_xml_string(wild), "robot")
    assert found.simulated.unstable > 0
    assert not list(Path().iterdir())


def test_a_tolerance_below_0_is_refused(capsys, tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(robot())
    with pytest.raises(SystemExit) as exited:
        main(["symmetry", str(path), "--tolerance", "-1"])
    assert exited.value.code == 2
    assert "the tolerance must be at least 0, not -1" in capsys.readouterr().err
