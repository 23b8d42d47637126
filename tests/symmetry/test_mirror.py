"""Where the mirror stands: normals, planes off the origin, reference poses, pairs by hand, parts."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from augury.augmentations.symmetry import reflect
from augury.cli import main
from augury.errors import UserError
from augury.symmetry import Reflection, SymmetryError, reflection, simulated_error
from augury.symmetry.placement import placed

EXACT = 1e-9


def from_xml(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


def is_exact(model: mujoco.MjModel, found: Reflection, samples: int = 30) -> bool:
    return found.findings == [] and simulated_error(model, found, samples) < EXACT


# A model in other coordinates.

LINKAGE = """
<mujoco>
  <worldbody>
    <body name="one" pos="0.1 0.2 0.3" euler="10 20 30">
      <joint name="a" axis="1 0 0" pos="0.1 0 0" stiffness="2" springref="20"/>
      <joint name="b" axis="0 1 0" range="-40 90" limited="true"/>
      <joint name="c" type="slide" axis="0 1 1"/>
      <geom size="0.1" pos="0.2 0.1 0"/>
      <body name="two" pos="0.3 0 0"><joint name="d" axis="0 1 0" ref="15"/><geom size="0.1" pos="0 0 0.2"/>
        <site name="tip"/>
      </body>
    </body>
    <body name="loose" pos="0 0 2"><freejoint/><geom size="0.1 0.2 0.3" type="box"/></body>
  </worldbody>
  <equality>
    <joint joint1="b" joint2="d" polycoef="0.1 0.5 -0.2 0.3 0.1"/>
    <joint joint1="c" polycoef="0.1 0 0 0 0"/>
    <connect body1="two" body2="world" anchor="0.1 0 0"/>
    <weld body1="loose" body2="world"/>
    <tendon tendon1="t" tendon2="u" polycoef="0.1 0.7 0.2 0 0"/>
  </equality>
  <tendon>
    <fixed name="t"><joint joint="a" coef="1"/><joint joint="d" coef="2"/></fixed>
    <fixed name="u"><joint joint="b" coef="1"/></fixed>
  </tendon>
  <actuator><position joint="a" kp="3"/><motor site="tip" gear="1 2 3 4 5 6"/></actuator>
</mujoco>
"""


def test_a_model_moves_alike_from_another_reference_and_origin() -> None:
    model, generator = from_xml(LINKAGE), np.random.default_rng(0)
    origin, reference = np.array([0.3, -0.2, 0.1]), model.qpos0.copy()
    reference[:4] += generator.normal(size=4)
    other = placed(model, reference, origin)
    np.testing.assert_array_equal(other.qpos0[:4], reference[:4])
    for _ in range(5):
        one, two = mujoco.MjData(model), mujoco.MjData(other)
        one.qpos[:4] = two.qpos[:4] = generator.normal(size=4)
        one.qvel[:] = two.qvel[:] = generator.normal(size=model.nv)
        one.ctrl[:] = two.ctrl[:] = generator.normal(size=model.nu)
        two.qpos[4:] = one.qpos[4:]
        two.qpos[4:7] -= origin
        mujoco.mj_forward(model, one)
        mujoco.mj_forward(other, two)
        np.testing.assert_allclose(two.xpos[1:], one.xpos[1:] - origin, atol=1e-12)
        np.testing.assert_allclose(two.qacc, one.qacc, rtol=1e-8, atol=1e-8)


# Reference poses.

WRIST = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="arm" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05" contype="0"/>
      <body name="hand" pos="0.4 0 0"><joint name="wrist" axis="1 0 0" damping="0.1"/>
        <geom type="box" size="0.02 0.1 0.05" euler="-45 0 0" contype="0"/>
        <body name="left_finger" pos="0.05 0 0" euler="-45 0 0">
          <joint name="left_finger" type="slide" axis="0 1 0"/><geom size="0.01" pos="0 0.03 0" contype="0"/>
        </body>
        <body name="right_finger" pos="0.05 0 0" euler="-45 0 0">
          <joint name="right_finger" type="slide" axis="0 -1 0"/>
          <geom size="0.01" pos="0 -0.03 0" contype="0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="wrist" joint="wrist" kp="5" ctrlrange="-1 {upper}"/>
    <intvelocity name="slow" joint="wrist" kp="5" actrange="-9 9"/>
    <motor name="left" joint="left_finger"/><motor name="right" joint="right_finger"/>
  </actuator>
  <sensor><jointpos name="angle" joint="wrist"/><actuatorpos actuator="wrist"/></sensor>
  <keyframe><key name="grasp" qpos="0.3 0.785 0.02 0.02"/></keyframe>
</mujoco>
"""
RIGHT_ANGLE = np.pi / 2


def test_a_robot_is_mirrored_at_the_symmetric_pose_nearest_to_a_keyframe() -> None:
    """The keyframe is written to three digits; the offset of the wrist is exact."""
    model = from_xml(WRIST.format(upper=1 + RIGHT_ANGLE).replace('actrange="-9 9"', ""))
    with pytest.raises(SymmetryError, match="perpendicular"):
        reflection(model, "y")
    found = reflection(model, reference="grasp")
    assert found.normal_name == "y"
    np.testing.assert_allclose(found.qpos.offset, [0, RIGHT_ANGLE, 0, 0], atol=1e-9)
    np.testing.assert_allclose(found.qpos([0.1, 0.2, 3, 4]), [0.1, RIGHT_ANGLE - 0.2, 4, 3], atol=1e-9)
    # The servo's target is an angle; the integrator's control is its velocity, its state is an angle.
    np.testing.assert_allclose(found.ctrl.offset, [RIGHT_ANGLE, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(found.act.offset, [RIGHT_ANGLE], atol=1e-9)
    np.testing.assert_allclose(found.sensordata.offset, [RIGHT_ANGLE, RIGHT_ANGLE], atol=1e-9)
    assert found.pairs["joint"]["left_finger"] == "right_finger"
    assert is_exact(model, found)


def test_a_range_that_does_not_fit_the_offset_is_found() -> None:
    found = reflection(from_xml(WRIST.format(upper=1)), reference="grasp")
    assert {(f.parameter, f.first) for f in found.findings} == {
        ("actuator ctrlrange", "wrist"),
        ("actuator actrange", "slow"),
    }


def test_a_reference_may_be_given_as_positions_and_unknown_keyframes_are_named() -> None:
    model = from_xml(WRIST.format(upper=1))
    found = reflection(model, reference=[0, 0.7, 0, 0])
    np.testing.assert_allclose(found.qpos.offset[1], RIGHT_ANGLE, atol=1e-9)
    with pytest.raises(UserError, match="did you mean 'grasp'"):
        reflection(model, reference="gras")
    with pytest.raises(SymmetryError, match="give 4 positions"):
        reflection(model, reference=[0, 1])


# Planes.

TABLE = """
<mujoco>
  <worldbody>
    <geom name="table" type="box" size="1 1 0.05" pos="0.2 0.5 0"/>
    <body name="left" pos="0 {left} 0.4"><joint name="left" axis="1 0 0"/>
      <geom size="0.05" pos="0.1 0.1 0"/></body>
    <body name="right" pos="0 0.3 0.4"><joint name="right" axis="1 0 0"/>
      <geom size="0.05" pos="0.1 -0.1 0"/></body>
    <body name="cube" pos="0.4 0.55 0.2"><freejoint/><geom type="box" size="0.05 0.05 0.05"/></body>
  </worldbody>
  <equality>
    <connect body1="left" body2="world" anchor="0.1 0.1 0"/>
    <connect body1="right" body2="world" anchor="0.1 -0.1 0"/>
  </equality>
  <actuator><motor joint="left"/><motor joint="right"/></actuator>
  <sensor><framepos objtype="body" objname="cube"/><subtreecom body="cube"/></sensor>
</mujoco>
"""


def test_a_plane_that_does_not_pass_through_the_origin_is_found() -> None:
    model = from_xml(TABLE.format(left=0.7))
    found = reflection(model)
    assert (found.normal_name, found.distance) == ("y", pytest.approx(0.5, abs=1e-12))
    assert found.plane == "normal y, 0.5 from the origin"
    np.testing.assert_allclose(found.qpos([0.1, 0.2, 1, 0.8, 3, 1, 0, 0, 0])[:5], [-0.2, -0.1, 1, 0.2, 3])
    np.testing.assert_allclose(found.sensordata.offset, [0, 1, 0, 0, 1, 0])
    assert is_exact(model, found)
    with pytest.raises(SymmetryError, match="no body"):
        reflection(model, "y", distance=0.0)


def test_the_plane_passes_through_the_origin_where_that_serves() -> None:
    assert reflection(from_xml(TABLE.format(left=0.7)), "x").distance == 0


ROLLER = """
<mujoco>
  <worldbody>
    <body name="cart"><joint name="along" type="slide" axis="1 0 0"/><geom size="0.1"/>
      <body name="front" pos="0.3 0 0"><joint name="front" axis="0 1 0"/>
        <geom size="0.1" pos="0.1 0 -0.1"/></body>
      <body name="back" pos="-0.3 0 0"><joint name="back" axis="0 1 0"/>
        <geom size="0.1" pos="-0.1 0 -0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def test_the_normal_is_the_first_that_changes_something() -> None:
    """Across y nothing of this robot moves; across x its front becomes its back."""
    model = from_xml(ROLLER)
    assert reflection(model, "y").changes_nothing
    found = reflection(model)
    assert (found.normal_name, found.changes_nothing) == ("x", False)
    assert is_exact(model, found)
    assert reflect(model).observation.rows[1] == ((2, -1.0),)


def test_a_model_without_a_mirror_is_refused() -> None:
    bodies = "".join(
        f'<body name="{name}" pos="{place}"><joint type="{kind}"/><geom size="0.1"/></body>'
        for name, place, kind in (("a", "1 0 0", "hinge"), ("b", "0 1 0", "slide"), ("c", "0 0 1", "ball"))
    )
    with pytest.raises(SymmetryError, match="none of the normals"):
        reflection(from_xml(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"))


# Pairs.

HANDS = """
<mujoco>
  <worldbody>
    {hands}
  </worldbody>
  <equality>
    <joint joint1="left/right_finger" joint2="left/left_finger"/>
    <joint joint1="right/right_finger" joint2="right/left_finger"/>
  </equality>
  <actuator>
    <position name="left/gripper" joint="left/left_finger"/>
    <position name="right/gripper" joint="right/left_finger"/>
  </actuator>
</mujoco>
"""
HAND = """
    <body name="{0}/hand" pos="0 {1} 0" euler="0 0 {2}"><joint name="{0}/hand" axis="0 0 1"/>
      <geom size="0.1"/>
      <body name="{0}/left_finger_link" pos="0.3 0.02 0"><geom size="0.01"/>
        <joint name="{0}/left_finger" type="slide" axis="0 1 0" range="0 0.04" limited="true"/></body>
      <body name="{0}/right_finger_link" pos="0.3 -0.02 0"><geom size="0.01"/>
        <joint name="{0}/right_finger" type="slide" axis="0 -1 0" range="0 0.04" limited="true"/></body>
    </body>
"""


def test_fingers_are_paired_by_where_they_are_though_one_drives_the_other() -> None:
    """Names tell two sides: the left finger of the left hand becomes the right finger of the right hand."""
    model = from_xml(HANDS.format(hands=HAND.format("left", 0.5, 90) + HAND.format("right", -0.5, -90)))
    found = reflection(model, "y")
    assert found.pairs["body"]["left/left_finger_link"] == "right/right_finger_link"
    assert found.ctrl.permutation.tolist() == [1, 0]
    assert found.ctrl.signs.tolist() == [1, 1]
    (finding,) = (f for f in found.findings if f.parameter == "actuator joint")
    assert "the second should drive right/right_finger" in str(finding)


def test_pairs_given_by_hand_override_what_drives_a_joint() -> None:
    legs = "".join(
        f'<body name="{side}" pos="0 {y} 0"><geom size="0.1"/><joint name="{side}_hip" axis="0 1 0"/>'
        f'<joint name="{side}_twist" axis="0 0 1"/></body>'
        for side, y in (("left", 0.5), ("right", -0.5))
    )
    motors = '<motor name="m" joint="left_hip"/><motor name="n" joint="right_twist"/>'
    model = from_xml(f"<mujoco><worldbody>{legs}</worldbody><actuator>{motors}</actuator></mujoco>")
    with pytest.raises(SymmetryError, match="no body with the same joints"):
        reflection(model, "y")
    with pytest.raises(SymmetryError, match="no actuator is the mirror image of 'm'"):
        reflection(model, "y", {"left_hip": "right_hip"})
    found = reflection(model, "y", {"left": "right", "m": "n"})
    assert found.ctrl.permutation.tolist() == [1, 0]
    assert [str(finding) for finding in found.findings] == [
        "actuator joint: m has left_hip, n has right_twist (the second should drive right_hip)"
    ]


# Parts.

ONE_ARMED = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 1"><freejoint/><geom size="0.1"/>
      <body name="left_leg" pos="0 0.2 0"><joint name="left_hip" axis="0 1 0"/>
        <geom size="0.1" pos="0 0 -0.3"/></body>
      <body name="right_leg" pos="0 -0.2 0"><joint name="right_hip" axis="0 1 0"/>
        <geom size="{right}" pos="0 0 -0.3"/></body>
      <body name="arm" pos="0.1 0.3 0.2"><joint name="shoulder" axis="1 1 0"/>
        <geom size="0.1" pos="0 0.1 0.3"/>
        <body name="forearm" pos="0 0.2 0.2"><joint name="elbow" type="ball"/>
          <geom size="0.1"/><site name="palm"/></body>
      </body>
    </body>
  </worldbody>
  <tendon><spatial name="string"><site site="palm"/><site site="palm2"/></spatial></tendon>
  <actuator>
    <motor name="left_hip" joint="left_hip"/><motor name="right_hip" joint="right_hip"/>
    <motor name="shoulder" joint="shoulder"/><motor name="palm" site="palm" gear="1 2 3 0 0 0"/>
    <motor name="string" tendon="string"/>
  </actuator>
  <sensor><gyro site="palm"/><jointvel joint="shoulder"/></sensor>
</mujoco>
""".replace('<site name="palm"/>', '<site name="palm"/><site name="palm2" pos="0 0 0.1"/>')


def test_a_part_is_mirrored_and_the_rest_is_left_and_listed() -> None:
    model = from_xml(ONE_ARMED.format(right=0.1))
    with pytest.raises(SymmetryError, match="'arm'"):
        reflection(model, "y")
    found = reflection(model, only="hip")
    assert found.left_out == {"joint": ["shoulder", "elbow"], "actuator": ["shoulder", "palm", "string"]}
    assert found.findings == []
    state = np.arange(1.0, 15.0)
    np.testing.assert_array_equal(
        found.qpos(state), [1, -2, 3, 4, -5, 6, -7, 9, 8, 10, 11, 12, 13, 14]
    )  # x, y, z; quaternion; both hips exchanged; shoulder and elbow as they were
    np.testing.assert_array_equal(found.ctrl([1, 2, 3, 4, 5]), [2, 1, 3, 4, 5])
    np.testing.assert_array_equal(found.sensordata([1, 2, 3, 4]), [1, 2, 3, 4])


def test_what_breaks_the_part_is_found() -> None:
    found = reflection(from_xml(ONE_ARMED.format(right=0.11)), only="hip").findings
    assert {finding.first for finding in found} & {"left_leg"}


def test_the_command_lists_what_is_left_unchanged(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "one_armed.xml"
    path.write_text(ONE_ARMED.format(right=0.1))
    main(
        [
            "symmetry",
            str(path),
            "--only",
            "hip",
            "--pair",
            "left_leg=right_leg",
            "--pair",
            "left_hip=right_hip",
        ]
    )
    said = capsys.readouterr().out
    assert "left unchanged, and not compared: joints shoulder, elbow" in said
    assert "not simulated" in said


def test_a_pattern_that_fits_no_joint_is_named_with_the_nearest_joints(tmp_path: Path, capsys) -> None:
    path = tmp_path / "one_armed.xml"
    path.write_text(ONE_ARMED.format(right=0.1))
    with pytest.raises(SystemExit) as stopped:
        main(["symmetry", str(path), "--only", "zzz"])
    assert stopped.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "no joint's name has a match of 'zzz'; the nearest names are" in said
    assert "left_hip" in said
    assert "normal" not in said


def test_the_command_says_that_a_mirror_changes_nothing(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "roller.xml"
    path.write_text(ROLLER)
    main(["symmetry", str(path), "--normal", "y"])
    assert "this mirror changes nothing" in capsys.readouterr().out
    with pytest.raises(SymmetryError, match="changes nothing"):
        reflect(from_xml(ROLLER), normal="y")


def test_a_part_must_have_joints_and_both_sides() -> None:
    model = from_xml(ONE_ARMED.format(right=0.1))
    with pytest.raises(SymmetryError, match=r"^only: no .* of 'sholder'; the nearest names are shoulder, "):
        reflection(model, only="sholder")
    with pytest.raises(
        SymmetryError, match=r"'left_leg' \(on 'trunk'\) would be: or let `only` match its image"
    ):
        reflection(model, "y", only="left")
    with pytest.raises(SymmetryError, match="no regular expression"):
        reflection(model, only="(")
