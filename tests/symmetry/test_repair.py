"""Models made symmetric: exact by audit and by simulation, and otherwise as they were."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest

from augury.cli import main
from augury.errors import UserError
from augury.symmetry import Symmetrised, reflection, simulated_error, symmetrise
from tests.marks import OLDER_MUJOCO
from tests.symmetry.test_symmetry import CASE_NAMES, CASES, RICH, corrected, stock, turned

EXACT = 1e-9

LAME = """<?xml version="1.0"?>
<!-- A biped that was built in a hurry. -->
<mujoco model="lame">
  <compiler angle="degree" autolimits="true"/>
  <option integrator="implicitfast"/>
  <worldbody>
    <!-- Everybody needs a floor. -->
    <geom name="floor" type="plane" size="9 9 1" pos="0 0 -0.57"/>
    <body name="torso">
      <freejoint/>
      <geom name="torso" type="box" size="0.1 0.2 0.1" pos="0 0.001 0" euler="3 0 0"/>
      <body name="left_leg" pos="0.01 0.15 -0.1">
        <joint name="left_hip" axis="0.01 1 0" range="-40 60" armature="0.1" damping="1"/>
        <geom name="left_thigh" type="capsule" fromto="0 0 0 0.02 0 -0.4" size="0.05"/>
        <body name="left_foot" pos="0.02 0 -0.45">
          <joint name="left_ankle" axis="1 0 0" range="-10 20" stiffness="3" springref="5"/>
          <geom name="left_foot" type="box" size="0.1 0.05 0.02" friction="0.8"/>
          <site name="left_sole" pos="0 0.01 -0.02"/>
        </body>
      </body>
      <body name="right_leg" pos="0 -0.15 -0.1">
        <joint name="right_hip" axis="0 1 0" range="-40 50" armature="0.12" damping="1"/>
        <!-- This one is thicker. -->
        <geom name="right_thigh" type="capsule" fromto="0 0 0 0 0 -0.4" size="0.06"/>
        <body name="right_foot" pos="0 0 -0.45">
          <inertial pos="0 0 0" mass="1.5" diaginertia="0.01 0.01 0.01"/>
          <joint name="right_ankle" axis="1 0 0" range="-20 12" stiffness="3" springref="-7"/>
          <geom name="right_foot" type="box" size="0.05 0.1 0.021" euler="0 0 90" friction="0.7"/>
          <site name="right_sole" pos="0 -0.012 -0.02"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality>
    <joint name="left_coupling" joint1="left_hip" joint2="left_ankle" polycoef="0.1 0.2 0 0 0"/>
    <joint name="right_coupling" joint1="right_hip" joint2="right_ankle" polycoef="0.1 -0.25 0 0 0"/>
  </equality>
  <actuator>
    <position name="left_hip" joint="left_hip" kp="20" ctrlrange="-1 1"/>
    <position name="right_hip" joint="right_hip" kp="22" ctrlrange="-1 0.9"/>
    <motor name="left_ankle" joint="left_ankle" gear="2"/>
    <motor name="right_ankle" joint="right_ankle" gear="3"/>
  </actuator>
  <sensor><force site="left_sole"/><force site="right_sole"/></sensor>
</mujoco>
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "model.xml"
    path.write_text(text)
    return path


def error_after(done: Symmetrised, model: mujoco.MjModel, steps: int = 100) -> float:
    """How far the mirrored motion is from the motion of the mirror image, under random controls."""
    found, generator = done.reflection, np.random.default_rng(0)
    data, image = mujoco.MjData(model), mujoco.MjData(model)
    image.qpos[:], image.qvel[:] = found.qpos(data.qpos), found.qvel(data.qvel)
    for _ in range(steps):
        data.ctrl[:] = generator.uniform(-1, 1, model.nu)
        image.ctrl[:] = found.ctrl(data.ctrl)
        mujoco.mj_step(model, data)
        mujoco.mj_step(model, image)
    assert data.ncon
    return float(np.abs(found.qpos(data.qpos) - image.qpos).max())


def test_a_lame_robot_walks_symmetrically(tmp_path: Path) -> None:
    done = symmetrise(written(tmp_path, LAME))
    assert done.reflection.findings == []
    assert len(done.changes) > 15
    out = tmp_path / "elsewhere" / "out.xml"
    out.parent.mkdir()
    done.document.write(out)
    model = mujoco.MjModel.from_xml_path(str(out))
    assert reflection(model).findings == []
    assert error_after(done, model) < EXACT


def test_what_was_found_is_averaged_and_all_else_stays(tmp_path: Path) -> None:
    done = symmetrise(written(tmp_path, LAME))
    model, before = done.model, mujoco.MjModel.from_xml_string(LAME)
    for name in ("left_hip", "right_hip"):
        np.testing.assert_allclose(np.degrees(model.joint(name).range), [-40, 55])
        assert model.joint(name).armature == pytest.approx(0.11)
        assert model.joint(name).damping == 1
        assert model.actuator(name).gainprm[0] == pytest.approx(21)
    np.testing.assert_allclose(np.degrees(model.joint("left_ankle").range), [-11, 20])
    np.testing.assert_allclose(np.degrees(model.joint("right_ankle").range), [-20, 11])
    np.testing.assert_allclose(model.site("left_sole").pos, [0, 0.011, -0.02], atol=1e-15)
    assert sum(model.body_mass) == pytest.approx(sum(before.body_mass))
    text = (done.document.write(tmp_path / "out.xml"), (tmp_path / "out.xml").read_text())[1]
    for line in ("<!-- A biped that was built in a hurry. -->", "<!-- Everybody needs a floor. -->"):
        assert line in text
    unchanged = set(map(str.strip, LAME.splitlines())) & set(map(str.strip, text.splitlines()))
    assert {'<option integrator="implicitfast"/>', "<!-- This one is thicker. -->"} <= unchanged


@pytest.mark.parametrize(("side", "armature", "upper"), [("left", 0.1, 60), ("right", 0.12, 50)])
def test_one_side_can_be_taken(tmp_path: Path, side: str, armature: float, upper: float) -> None:
    done = symmetrise(written(tmp_path, LAME), side=side)
    assert done.reflection.findings == []
    for name in ("left_hip", "right_hip"):
        assert done.model.joint(name).armature == armature
        np.testing.assert_allclose(np.degrees(done.model.joint(name).range), [-40, upper])


def test_a_symmetric_model_is_written_as_it_was(tmp_path: Path) -> None:
    path = Path(written(tmp_path, corrected("walker2d").to_xml()))
    done = symmetrise(path)
    assert done.changes == []
    done.document.write(tmp_path / "out.xml")
    assert (tmp_path / "out.xml").read_text().split() == path.read_text().split()


def test_gymnasiums_humanoid_is_put_right_as_by_hand(tmp_path: Path) -> None:
    done = symmetrise(written(tmp_path, stock("humanoid").to_xml()))
    assert {change.parameter for change in done.changes} == {
        "joint armature",
        "joint stiffness",
        "option solver",
    }
    assert done.reflection.findings == []
    assert simulated_error(done.model, done.reflection, 20) < EXACT


def test_frames_of_any_orientation_are_respected(tmp_path: Path) -> None:
    """Left and right of this model are written in frames of their own, and in MuJoCo's text to six digits."""
    spec = mujoco.MjSpec.from_string(RICH)
    spec.body("right_hand").pos += [0.01, 0.02, 0]
    spec.joint("right_elbow").axis += [0.01, 0, 0.02]
    spec.site("right_palm").pos += [0, 0, 0.003]
    spec.compile()
    done = symmetrise(written(tmp_path, spec.to_xml()))
    assert {"body pos", "joint axis", "site pos", "geom pos"} <= {change.parameter for change in done.changes}
    left = [finding for finding in done.reflection.findings if not OLDER_MUJOCO or finding.size > 1e-6]
    assert left == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "break_it", "element", "parameter"), CASES, ids=CASE_NAMES)
def test_every_broken_parameter_is_put_right(tmp_path: Path, name, break_it, element, parameter) -> None:
    spec = corrected(name)
    break_it(spec)
    spec.compile()
    done = symmetrise(written(tmp_path, spec.to_xml()))
    assert any(f.parameter == parameter and element in (f.first, f.second) for f in done.changes)
    assert done.reflection.findings == []


LOOP = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 1"><freejoint/><geom size="0.1"/>
      {legs}
    </body>
  </worldbody>
  <equality>
    <connect body1="left_rod" body2="left_shank" anchor="0 0 -0.4"/>
    <connect body1="right_rod" body2="right_shank" anchor="0.003 0 -0.402"/>
  </equality>
</mujoco>
"""
LEG = """
      <body name="{0}_thigh" pos="0 {1}0.2 0"><joint axis="0 1 0"/><geom size="0.05" pos="0 0 -0.2"/>
        <body name="{0}_shank" pos="{2} 0 -0.4"><joint axis="0 1 0"/><geom size="0.05" pos="0 0 -0.1"/></body>
      </body>
      <body name="{0}_rod" pos="0.1 {1}0.2 0"><joint axis="0 1 0"/><geom size="0.02" pos="0 0 -0.2"/></body>
"""


def test_closed_loops_stay_closed(tmp_path: Path) -> None:
    legs = LEG.format("left", "", 0) + LEG.format("right", "-", 0.002)
    done = symmetrise(written(tmp_path, LOOP.format(legs=legs)))
    assert {"body pos", "equality data"} <= {change.parameter for change in done.changes}
    assert done.reflection.findings == []
    data = mujoco.MjData(done.model)
    mujoco.mj_forward(done.model, data)
    assert np.abs(data.efc_pos).max() < 1e-12
    assert simulated_error(done.model, done.reflection, 20) < EXACT


WEDGES = """
<mujoco>
  <default><mesh scale="0.5 1 1"/></default>
  <asset>
    <mesh name="left" vertex="0 0 0  0.1 0 0  0 0.07 0  0 0 0.05"/>
    <mesh name="right" vertex="0 0 0  0.1 0 0  0 -0.08 0  0 0 0.05"/>
  </asset>
  <worldbody>
    <geom type="plane" size="9 9 1" pos="0 0 -1"/>
    <body name="base"><freejoint/><geom name="base" type="mesh" mesh="left"/>
      <body name="left" pos="0 0.3 0"><joint axis="0 1 0"/><geom type="mesh" mesh="left"/></body>
      <body name="right" pos="0 -0.3 0"><joint axis="0 1 0"/><geom type="mesh" mesh="right"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def test_meshes_are_mirrored(tmp_path: Path) -> None:
    done = symmetrise(written(tmp_path, WEDGES))
    assert done.reflection.findings == []
    model = done.model
    mesh, geom = int(model.geom_dataid[1]), 1  # the base, which becomes the hull of both halves
    corners = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
    across = corners @ turned(model.geom_quat[geom])[1] + model.geom_pos[geom][1]
    np.testing.assert_allclose([across.min(), across.max()], [-0.07, 0.07], atol=1e-7)


@pytest.mark.parametrize(("side", "feet"), [(None, 4), ("left", 4), ("right", 2)])
def test_a_geom_without_image_gets_one_or_goes(tmp_path: Path, side: str | None, feet: int) -> None:
    heel = '<geom name="heel" type="capsule" fromto="-0.1 0.01 0 -0.2 0.02 0" size="0.01"/>'
    path = written(tmp_path, LAME.replace('<site name="left_sole"', f'{heel}<site name="left_sole"'))
    done = symmetrise(path, side=side)
    assert "geom image" in {change.parameter for change in done.changes}
    assert done.reflection.findings == []
    on_feet = [done.model.body(name).geomnum[0] for name in ("left_foot", "right_foot")]
    assert on_feet == [feet // 2] * 2


def test_places_inside_a_frame_are_left_and_listed(tmp_path: Path) -> None:
    shifted = LAME.replace(
        '<site name="left_sole" pos="0 0.01 -0.02"/>',
        '<frame pos="0 0 0.01"><site name="left_sole"/></frame>',
    )
    done = symmetrise(written(tmp_path, shifted))
    assert {(f.parameter, f.first) for f in done.reflection.findings} == {("site pos", "left_sole")}


def test_replicated_elements_are_refused(tmp_path: Path) -> None:
    many = LAME.replace(
        "<freejoint/>", '<freejoint/><replicate count="3" offset="0 0 0.1"><site/></replicate>'
    )
    with pytest.raises(UserError, match="save it with MuJoCo first"):
        symmetrise(written(tmp_path, many))


def test_included_files_become_one(tmp_path: Path) -> None:
    actuators = LAME[LAME.index("  <actuator>") : LAME.index("  <sensor>")]
    (tmp_path / "motors.xml").write_text(f"<mujocoinclude>{actuators}</mujocoinclude>")
    done = symmetrise(written(tmp_path, LAME.replace(actuators, '<include file="motors.xml"/>')))
    assert done.reflection.findings == []
    assert done.model.nu == 4


@pytest.mark.slow
def test_the_command_writes_audits_and_says_what_it_changed(tmp_path: Path, capsys, monkeypatch) -> None:
    path, out = written(tmp_path, LAME), tmp_path / "out.xml"
    monkeypatch.setenv("COLUMNS", "200")
    main(["symmetry", str(path), "--symmetrise", str(out)])
    said = capsys.readouterr().out
    assert "0.02 kg·m²" in said  # by which the armatures were apart
    assert " exact\n" in "\n".join(line.rstrip() for line in said.splitlines())
    assert reflection(mujoco.MjModel.from_xml_path(str(out))).findings == []
    main(["symmetry", str(path), "--symmetrise", str(out), "--json"])
    (told,) = json.loads(capsys.readouterr().out)
    assert {each["parameter"]: each["size"] for each in told["changes"]}["joint armature"] == pytest.approx(
        0.02
    )
    assert told["verdict"] == "exact"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["humanoid", "--symmetrise", "out.xml"], "needs a model's file"),
        (["MODEL", "--symmetrise", "MODEL"], "would overwrite"),
        (["MODEL", "--side", "left"], "belongs to --symmetrise"),
        (["MODEL", "--symmetrise", "out.xml", "--side", "front"], "side of this mirror"),
    ],
)
def test_bad_requests_are_refused(tmp_path: Path, capsys, arguments: list[str], message: str) -> None:
    path = str(written(tmp_path, LAME))
    with pytest.raises(SystemExit) as stopped:
        main(["symmetry", *(each.replace("MODEL", path) for each in arguments)])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_what_is_no_mjcf_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no MJCF"):
        symmetrise(written(tmp_path, "<robot name='r'/>"))
    with pytest.raises(UserError, match="is no XML"):
        symmetrise(written(tmp_path, "<mujoco>"))
