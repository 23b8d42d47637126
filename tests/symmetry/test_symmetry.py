"""Mirror maps derived from models: right by hand, right by simulation, and every broken parameter found."""

from collections.abc import Callable
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

from augury.envs.mujoco.quantities import Kind, Quantity
from augury.errors import UserError
from augury.symmetry import (
    SymmetryError,
    audit_rotation,
    observation_map,
    reflection,
    rotation,
    simulated_error,
)
from augury.symmetry.pairing.names import mirrored_names

ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
NEWTON, PGS = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtSolver.mjSOL_PGS
ELLIPTIC = mujoco.mjtCone.mjCONE_ELLIPTIC
EXACT, BROKEN = 1e-9, 1e-6


def stock(name: str) -> mujoco.MjSpec:
    return mujoco.MjSpec.from_file(str(ASSETS / f"{name}.xml"))


def corrected(name: str) -> mujoco.MjSpec:
    """Gymnasium's model with the parameters that break its symmetry set right."""
    spec = stock(name)
    if name == "walker2d":
        spec.geom("foot_left_geom").friction[0] = 0.9
    if name == "humanoid":
        spec.joint("right_hip_y").armature = 0.01
        spec.joint("right_knee").stiffness[0] = 1
        spec.option.solver = NEWTON
    if name in ("ant", "humanoid"):
        spec.option.cone = ELLIPTIC
    return spec


def from_xml(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


def summary(model: mujoco.MjModel, normal: str = "y") -> set[tuple]:
    return {
        (f.parameter, f.first, f.first_value, f.second, f.second_value)
        for f in reflection(model, normal).findings
    }


# What stock models show.


def test_stock_humanoid_differs_in_armature_stiffness_and_solver() -> None:
    assert summary(stock("humanoid").compile()) == {
        ("joint armature", "right_hip_y", 0.008, "left_hip_y", 0.01),
        ("joint stiffness", "right_knee", 0.0, "left_knee", 1.0),
        ("option solver", "option", "PGS", "option", "PGS"),
    }


def test_stock_walker_differs_in_the_friction_of_its_feet() -> None:
    expected = ("geom friction", "foot_geom", (0.9, 0.1, 0.1), "foot_left_geom", (1.9, 0.1, 0.1))
    assert summary(stock("walker2d").compile()) == {expected}


def test_a_finding_reads_as_a_sentence() -> None:
    (finding,) = reflection(stock("walker2d").compile()).findings
    assert str(finding) == "geom friction: foot_geom has (0.9, 0.1, 0.1), foot_left_geom has (1.9, 0.1, 0.1)"


@pytest.mark.parametrize(("name", "normal"), [("swimmer", "y"), ("ant", "x"), ("ant", "y")])
def test_stock_swimmer_and_ant_are_symmetric(name: str, normal: str) -> None:
    found = reflection(stock(name).compile(), normal)
    assert (found.findings, found.not_compared) == ([], [])


def test_the_pole_of_the_inverted_pendulum_leans() -> None:
    found = {(f.parameter, f.first) for f in reflection(stock("inverted_pendulum").compile(), "x").findings}
    assert found == {("body ipos", "pole"), ("body inertia", "pole")}  # nothing there can touch


def test_gravity_of_the_double_pendulum_leans() -> None:
    (finding,) = reflection(stock("inverted_double_pendulum").compile(), "x").findings
    assert (finding.parameter, finding.first_value) == ("option gravity", (1e-5, 0.0, -9.81))


CORRECTED = [("swimmer", "y"), ("walker2d", "y"), ("ant", "x"), ("ant", "y"), ("humanoid", "y")]


@pytest.mark.parametrize(("name", "normal"), CORRECTED)
def test_corrected_models_are_symmetric_by_audit_and_by_simulation(name: str, normal: str) -> None:
    model = corrected(name).compile()
    found = reflection(model, normal)
    assert (found.findings, found.not_compared) == ([], [])
    assert simulated_error(model, found) < EXACT


@pytest.mark.parametrize("name", ["walker2d", "humanoid"])
def test_simulation_notices_what_breaks_stock_models(name: str) -> None:
    model = stock(name).compile()
    assert simulated_error(model, reflection(model)) > BROKEN


# Maps, against literals read from the XML by hand.

LITERALS = {
    # rootx, rootz, rooty, then both legs; all axes lie in the plane or across it alike.
    ("walker2d", "y"): {
        "qpos": ([0, 1, 2, 6, 7, 8, 3, 4, 5], "+++++++++"),
        "qvel": ([0, 1, 2, 6, 7, 8, 3, 4, 5], "+++++++++"),
        "ctrl": ([3, 4, 5, 0, 1, 2], "++++++"),
    },
    ("swimmer", "y"): {
        "qpos": ([0, 1, 2, 3, 4], "+----"),
        "qvel": ([0, 1, 2, 3, 4], "+----"),
        "ctrl": ([0, 1], "--"),
    },
    # x; quaternion w, x, y, z; then hip and ankle of the legs at (+,+), (-,+), (-,-), (+,-).
    ("ant", "x"): {
        "qpos": ([0, 1, 2, 3, 4, 5, 6, 9, 10, 7, 8, 13, 14, 11, 12], "-++" + "++--" + "--------"),
        "qvel": ([0, 1, 2, 3, 4, 5, 8, 9, 6, 7, 12, 13, 10, 11], "-++" + "+--" + "--------"),
        "ctrl": ([6, 7, 4, 5, 2, 3, 0, 1], "--------"),
    },
    ("ant", "y"): {
        "qpos": ([0, 1, 2, 3, 4, 5, 6, 13, 14, 11, 12, 9, 10, 7, 8], "+-+" + "+-+-" + "-+-+-+-+"),
        "qvel": ([0, 1, 2, 3, 4, 5, 12, 13, 10, 11, 8, 9, 6, 7], "+-+" + "-+-" + "-+-+-+-+"),
        "ctrl": ([2, 3, 0, 1, 6, 7, 4, 5], "-+-+-+-+"),
    },
    # Joints: abdomen z, y, x, right leg, left leg, right arm, left arm; actuators: abdomen y, z, x.
    ("humanoid", "y"): {
        "qpos": (
            [*range(10), 14, 15, 16, 17, 10, 11, 12, 13, 21, 22, 23, 18, 19, 20],
            "+-+" + "+-+-" + "-+-" + "++++" + "++++" + "--+" + "--+",
        ),
        "qvel": (
            [*range(9), 13, 14, 15, 16, 9, 10, 11, 12, 20, 21, 22, 17, 18, 19],
            "+-+" + "-+-" + "-+-" + "++++" + "++++" + "--+" + "--+",
        ),
        "ctrl": ([0, 1, 2, 7, 8, 9, 10, 3, 4, 5, 6, 14, 15, 16, 11, 12, 13], "+--" + "++++++++" + "--+--+"),
    },
}


@pytest.mark.parametrize(("name", "normal"), LITERALS)
def test_maps_are_those_worked_out_by_hand(name: str, normal: str) -> None:
    found = reflection(stock(name).compile(), normal)
    for part, (permutation, signs) in LITERALS[name, normal].items():
        derived = getattr(found, part)
        assert derived.permutation.tolist() == permutation
        assert "".join("+" if sign > 0 else "-" for sign in derived.signs) == signs
        assert derived.is_involution


def test_pairs_are_named_and_unnamed_bodies_can_be_found() -> None:
    found = reflection(stock("ant").compile(), "x")
    assert found.pairs["joint"]["hip_4"] == "hip_3"
    assert found.pairs["body"]["body 4 (child of aux_1)"] == "body 7 (child of aux_2)"
    assert found.pairs["actuator"]["actuator 0 (on hip_4)"] == "actuator 6 (on hip_3)"


# Broken models: one edit each over a corrected one.


def edit(path: str, value: object) -> Callable[[mujoco.MjSpec], None]:
    """Set `kind:name.attribute` or `kind:name.attribute[i]` of a spec; `option.attribute` of its options."""
    owner, attribute = path.rsplit(".", 1)
    attribute, _, place = attribute.partition("[")

    def apply(spec: mujoco.MjSpec) -> None:
        kind, _, name = owner.partition(":")
        element = getattr(spec, kind)(name) if name else getattr(spec, kind)
        if place:
            getattr(element, attribute)[int(place.rstrip("]"))] = value
        else:
            setattr(element, attribute, value)

    return apply


def heavier_toes(spec: mujoco.MjSpec) -> None:
    spec.body("left_foot").add_geom(size=[0.01, 0, 0], pos=[0.02, 0, 0.1], mass=1, contype=0, conaffinity=0)


def square_foot(spec: mujoco.MjSpec) -> None:
    spec.geom("left_foot").type = mujoco.mjtGeom.mjGEOM_BOX
    spec.geom("left_foot").size = [0.075, 0.075, 0.075]


def touch_nothing(spec: mujoco.MjSpec) -> None:
    spec.geom("left_foot").contype = spec.geom("left_foot").conaffinity = 0


def touch_less(spec: mujoco.MjSpec) -> None:
    """The foot passes through everything but the floor."""
    spec.geom("left_foot").contype = spec.geom("left_foot").conaffinity = 2
    spec.geom("floor").contype = 3


def exclude_one_side(spec: mujoco.MjSpec) -> None:
    spec.add_exclude(name="lonely", bodyname1="left_thigh", bodyname2="right_upper_arm")


def contact_pair_on_one_side(spec: mujoco.MjSpec) -> None:
    spec.add_pair(name="lonely", geomname1="left_foot", geomname2="floor")


def equality_on_one_side(spec: mujoco.MjSpec) -> None:
    spec.add_equality(name="lonely", type=mujoco.mjtEq.mjEQ_JOINT, name1="left_knee", name2="left_hip_y")


def servo(spec: mujoco.MjSpec) -> None:
    """Two position servos whose rest is not the same."""
    for name in ("left_knee", "right_knee"):
        actuator = spec.actuator(name)
        actuator.set_to_position(kp=3)
        actuator.biasprm[0] = 1 if name == "left_knee" else 0


def push_to_one_side(spec: mujoco.MjSpec) -> None:
    spec.actuator("abdomen_z").biastype = mujoco.mjtBias.mjBIAS_AFFINE
    spec.actuator("abdomen_z").biasprm[0] = 1


def stronger_on_one_side(spec: mujoco.MjSpec) -> None:
    spec.actuator("abdomen_z").gaintype = mujoco.mjtGain.mjGAIN_AFFINE
    spec.actuator("abdomen_z").gainprm[1] = 0.5


HUMANOID = [
    ("option.gravity[1]", 0.1, "option", "option gravity"),
    ("option.wind[1]", 0.1, "option", "option wind"),
    ("option.solver", PGS, "option", "option solver"),
    ("option.noslip_iterations", 3, "option", "option noslip_iterations"),
    ("body:left_foot.gravcomp", 0.5, "left_foot", "body gravcomp"),
    ("body:left_foot.pos[0]", 0.01, "left_foot", "body pos"),
    ("body:lwaist.pos[1]", 0.01, "lwaist", "body pos"),
    ("geom:left_foot.density", 900, "left_foot", "body mass"),
    ("geom:left_foot.size[0]", 0.076, "left_foot", "geom size"),
    ("geom:left_foot.pos[2]", 0.11, "left_foot", "geom pos"),
    ("geom:left_foot.pos[2]", 0.11, "left_foot", "body ipos"),
    ("geom:head.pos[1]", 0.01, "head", "geom pos"),
    ("geom:left_larm.fromto[1]", -0.02, "left_larm", "geom axes"),
    ("geom:left_foot.friction[0]", 0.5, "left_foot", "geom friction"),
    ("geom:left_foot.condim", 3, "left_foot", "geom condim"),
    ("geom:left_foot.margin", 0.002, "left_foot", "geom margin"),
    ("geom:left_foot.gap", 0.001, "left_foot", "geom gap"),
    ("geom:left_foot.priority", 1, "left_foot", "geom priority"),
    ("geom:left_foot.solref[0]", 0.03, "left_foot", "geom solref"),
    ("geom:left_foot.solimp[0]", 0.8, "left_foot", "geom solimp"),
    ("geom:left_foot.solmix", 2, "left_foot", "geom solmix"),
    ("joint:left_knee.armature", 0.007, "left_knee", "joint armature"),
    ("joint:left_knee.damping[0]", 2, "left_knee", "joint damping"),
    ("joint:left_knee.stiffness[0]", 2, "left_knee", "joint stiffness"),
    ("joint:left_knee.springref", 0.1, "left_knee", "joint springref"),
    ("joint:left_knee.frictionloss", 0.1, "left_knee", "joint frictionloss"),
    ("joint:left_knee.margin", 0.1, "left_knee", "joint margin"),
    ("joint:left_knee.range[0]", -150, "left_knee", "joint range"),
    ("joint:abdomen_z.range[0]", -30, "abdomen_z", "joint range"),
    ("joint:left_knee.limited", 0, "left_knee", "joint limited"),
    ("joint:left_knee.pos[0]", 0.01, "left_knee", "joint pos"),
    ("joint:left_knee.solref_limit[0]", 0.03, "left_knee", "joint solref"),
    ("joint:left_hip_x.axis", [1, 0, 0], "left_hip_x", "joint range"),
    ("joint:left_hip_x.axis", [-1, 0, 0.1], "left_hip_x", "joint axis"),
    ("joint:left_knee.actfrcrange", [-10, 10], "left_knee", "joint actfrclimited"),
    ("actuator:left_knee.gear[0]", 150, "left_knee", "actuator gear"),
    ("actuator:left_knee.ctrlrange", [-0.4, 0.3], "left_knee", "actuator ctrlrange"),
    ("actuator:abdomen_z.ctrlrange", [-0.4, 0.3], "abdomen_z", "actuator ctrlrange"),
    ("actuator:left_knee.ctrllimited", 0, "left_knee", "actuator ctrllimited"),
    ("actuator:left_knee.forcerange", [-10, 10], "left_knee", "actuator forcelimited"),
    ("actuator:left_knee.gainprm[0]", 2, "left_knee", "actuator gainprm"),
    ("tendon:left_hipknee.stiffness[0]", 2, "left_hipknee", "tendon stiffness"),
    ("tendon:left_hipknee.damping[0]", 2, "left_hipknee", "tendon damping"),
]  # fmt: skip
OTHERS = [
    ("humanoid", square_foot, "left_foot", "geom type"),
    ("humanoid", heavier_toes, "left_foot", "body inertia"),
    ("humanoid", touch_nothing, "left_foot", "geom contacts"),
    ("humanoid", touch_less, "left_foot", "geom contacts"),
    ("humanoid", exclude_one_side, "lonely", "exclude image"),
    ("humanoid", contact_pair_on_one_side, "lonely", "pair image"),
    ("humanoid", equality_on_one_side, "lonely", "equality image"),
    ("humanoid", servo, "left_knee", "actuator biasprm"),
    ("humanoid", push_to_one_side, "abdomen_z", "actuator biasprm"),
    ("humanoid", stronger_on_one_side, "abdomen_z", "actuator gainprm"),
    ("walker2d", edit("body:thigh_left.pos[0]", 0.01), "thigh_left", "body pos"),
    ("walker2d", edit("body:thigh_left.pos[1]", 0.01), "thigh_left", "body pos"),
    ("walker2d", edit("geom:floor.quat", [1, 0.01, 0, 0]), "floor", "geom axes"),
    ("swimmer", edit("joint:motor1_rot.range[1]", 90), "motor1_rot", "joint range"),
    ("ant", edit("joint:ankle_2.range", [30, 70]), "ankle_2", "joint range"),
    ("ant", edit("geom:torso_geom.pos[1]", 0.01), "torso_geom", "geom pos"),
]
CASES = [("humanoid", edit(path, value), *rest) for path, value, *rest in HUMANOID] + OTHERS
CASE_NAMES = [f"{parameter} of {element}" for _, _, element, parameter in CASES]


@pytest.mark.parametrize(("name", "break_it", "element", "parameter"), CASES, ids=CASE_NAMES)
def test_every_broken_parameter_is_found(
    name: str, break_it: Callable[[mujoco.MjSpec], None], element: str, parameter: str
) -> None:
    spec = corrected(name)
    break_it(spec)
    found = reflection(spec.compile()).findings
    assert any(f.parameter == parameter and element in (f.first, f.second) for f in found), found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("joint:left_knee.stiffness[0]", 2),
        ("geom:left_foot.density", 900),
        ("joint:left_hip_x.axis", [1, 0, 0]),
        ("actuator:left_knee.gear[0]", 150),
        ("option.gravity[1]", 0.1),
    ],
)
def test_simulation_notices_broken_parameters_too(path: str, value: object) -> None:
    spec = corrected("humanoid")
    edit(path, value)(spec)
    model = spec.compile()
    assert simulated_error(model, reflection(model), samples=50) > BROKEN


def test_a_turned_gear_turns_the_control_and_is_no_finding() -> None:
    spec = corrected("humanoid")
    spec.actuator("left_knee").gear[0] *= -1
    model = spec.compile()
    found = reflection(model)
    assert found.findings == []
    assert found.ctrl.signs[[6, 10]].tolist() == [-1, -1]
    assert simulated_error(model, found, samples=50) < EXACT


def test_a_coefficient_of_a_tendon_is_compared() -> None:
    xml = (
        (ASSETS / "humanoid.xml")
        .read_text()
        .replace('coef="-1" joint="left_hip_y"', 'coef="-2" joint="left_hip_y"')
    )
    found = {(f.parameter, f.first, f.second) for f in reflection(from_xml(xml)).findings}
    assert ("tendon coef", "left_hipknee", "right_hipknee") in found


@pytest.mark.parametrize("path", ["geom:left_foot.contype", "geom:left_foot.conaffinity"])
def test_masks_that_let_the_same_geoms_touch_are_no_finding(path: str) -> None:
    spec = corrected("humanoid")
    edit(path, 3)(spec)
    assert reflection(spec.compile()).findings == []


# Joints, frames, sensors and shapes that Gymnasium's models lack, by simulation.

MIRROR = np.diag([1.0, -1.0, 1.0])


def words(*numbers: float) -> str:
    return " ".join(f"{number:.17g}" for number in np.ravel(numbers))


def quaternion(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed).normal(size=4)
    return random / np.linalg.norm(random)


def turned(quat: np.ndarray) -> np.ndarray:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


def arm(side: str, seed: int, flip: int) -> str:
    """An arm with a ball joint and an elbow. Its frames are arbitrary: only what is in them is mirrored.

    The elbow may turn the other way round (`flip`), and then has another zero.
    """
    mirrored = np.eye(3) if side == "left" else MIRROR
    axial = np.eye(3) if side == "left" else -MIRROR
    upper, lower = quaternion(seed), quaternion(seed + 1)
    in_upper, in_lower = turned(upper).T, turned(lower).T @ turned(upper).T
    elbow = flip * in_lower @ axial @ [0.2, 0.3, 1.0]
    zero = 0.0 if flip > 0 else 0.3
    bounds = sorted(zero + flip * angle for angle in (-0.4, 0.9))
    spring = zero + flip * 0.2
    reach = np.array([0.05, 0.1, -0.2])
    return f"""
      <body name="{side}_arm" pos="{words(mirrored @ [0.1, 0.2, 0.1])}" quat="{words(upper)}">
        <joint name="{side}_shoulder" type="ball" damping="0.2" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 {words(in_upper @ mirrored @ reach)}" size="0.04"/>
        <geom name="{side}_pad" type="mesh" mesh="{side}" pos="{words(in_upper @ mirrored @ reach / 2)}"
              quat="{words(upper * [1, -1, -1, -1])}"/>
        <body name="{side}_hand" pos="{words(in_upper @ mirrored @ reach)}" quat="{words(lower)}">
          <joint name="{side}_elbow" axis="{words(elbow)}" range="{words(*bounds)}" ref="{zero}" damping="0.1"
                 stiffness="2" springref="{spring}" armature="0.01"/>
          <geom type="box" size="0.03 0.05 0.08" pos="{words(in_lower @ mirrored @ [0, 0, -0.1])}"
                quat="{words(_inverse_product(upper, lower))}"/>
          <site name="{side}_palm" pos="{words(in_lower @ mirrored @ [0, 0.01, -0.2])}" size="0.1"
                quat="{words(quaternion(seed + 2))}"/>
        </body>
      </body>"""


def _inverse_product(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Puts a shape back into the axes of the torso."""
    product, inverse = np.zeros(4), np.zeros(4)
    mujoco.mju_mulQuat(product, upper, lower)
    mujoco.mju_negQuat(inverse, product)
    return inverse


def sensors(*lines: str) -> str:
    return "".join(
        f"<{line.replace('SIDE', side)} name='{side} {number}'/>"
        for number, line in enumerate(lines)
        for side in ("left", "right")
    )


WEDGE = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.07, 0], [0, 0, 0.05], [0.02, 0.03, 0.06]])
BETWEEN_HANDS = (turned(quaternion(0)) @ turned(quaternion(1))).T @ [0, -0.3, 0]
RIGHT_BALL = quaternion(20) * [1, -1, 1, -1]
RICH = f"""
<mujoco>
  <option cone="elliptic"/>
  <compiler angle="radian" autolimits="true"/>
  <asset>
    <mesh name="left" vertex="{words(WEDGE)}"/>
    <mesh name="right" vertex="{words(WEDGE @ MIRROR)}"/>
  </asset>
  <default><geom condim="3"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" pos="0 0 -1.5"/>
    <body name="torso" pos="0.3 0 0.5" quat="{words(np.cos(0.4), 0, np.sin(0.4), 0)}">
      <freejoint name="root"/>
      <geom type="ellipsoid" size="0.1 0.15 0.2"/>
      <site name="eye" pos="0.1 0 0.1" quat="{words(np.cos(0.2), 0, np.sin(0.2), 0)}"/>
      {arm("left", 0, 1)}
      {arm("right", 10, -1)}
    </body>
    <body name="left_ball" pos="0.5 1 0" quat="{words(quaternion(20))}">
      <freejoint/><geom type="cylinder" size="0.1 0.2"/>
    </body>
    <body name="right_ball" pos="0.5 -1 0" quat="{words(RIGHT_BALL)}">
      <freejoint/><geom type="cylinder" size="0.1 0.2"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="left_cord" stiffness="3" springlength="0.1">
      <site site="eye"/><site site="left_palm"/>
    </spatial>
    <spatial name="right_cord" stiffness="3" springlength="0.1">
      <site site="right_palm"/><site site="eye"/>
    </spatial>
  </tendon>
  <equality>
    <weld body1="left_ball" body2="right_ball" anchor="{words(turned(RIGHT_BALL).T @ [0, 1, 0])}"/>
    <connect name="handshake" body1="left_hand" body2="right_hand" anchor="{words(BETWEEN_HANDS)}"/>
  </equality>
  <actuator>
    <motor joint="left_elbow" gear="2" ctrlrange="-1 0.5"/>
    <motor joint="right_elbow" gear="2" ctrlrange="-0.5 1"/>
    <motor joint="left_shoulder" gear="{words(turned(quaternion(0)).T @ [1, 2, 0.5])}"/>
    <motor joint="right_shoulder" gear="{words(turned(quaternion(10)).T @ -MIRROR @ [1, 2, 0.5])}"/>
    <general tendon="left_cord" dyntype="filter" dynprm="0.05" biastype="affine" biasprm="-0.3 0 -0.1"/>
    <general tendon="right_cord" dyntype="filter" dynprm="0.05" biastype="affine" biasprm="-0.3 0 -0.1"/>
    <motor site="eye" gear="0.3 0 0.2 0 0.1 0"/>
    <motor site="eye" gear="0 0.3 0 0.2 0 0.1"/>
  </actuator>
  <sensor>
    {
    sensors(
        "accelerometer site='SIDE_palm'",
        "velocimeter site='SIDE_palm'",
        "gyro site='SIDE_palm'",
        "force site='SIDE_palm'",
        "torque site='SIDE_palm'",
        "magnetometer site='SIDE_palm'",
        "touch site='SIDE_palm'",
        "jointpos joint='SIDE_elbow'",
        "jointvel joint='SIDE_elbow'",
        "jointlimitpos joint='SIDE_elbow'",
        "jointactuatorfrc joint='SIDE_elbow'",
        "ballquat joint='SIDE_shoulder'",
        "ballangvel joint='SIDE_shoulder'",
        "tendonpos tendon='SIDE_cord'",
        "tendonvel tendon='SIDE_cord'",
        "framepos objtype='site' objname='SIDE_palm'",
        "framepos objtype='site' objname='SIDE_palm' reftype='body' refname='torso'",
        "framequat objtype='xbody' objname='SIDE_hand'",
        "framequat objtype='body' objname='SIDE_hand'",
        "framequat objtype='xbody' objname='SIDE_hand' reftype='site' refname='eye'",
        "framelinvel objtype='body' objname='SIDE_hand' reftype='xbody' refname='torso'",
        "frameangvel objtype='xbody' objname='SIDE_hand'",
        "frameangvel objtype='site' objname='SIDE_palm' reftype='site' refname='eye'",
        "framelinacc objtype='site' objname='SIDE_palm'",
        "subtreecom body='SIDE_arm'",
        "subtreelinvel body='SIDE_arm'",
        "subtreeangmom body='SIDE_arm'",
    )
}
    <actuatorfrc actuator="pull"/>
    <framexaxis objtype="site" objname="eye"/><frameyaxis objtype="site" objname="eye"/><clock/>
  </sensor>
</mujoco>
""".replace('<motor site="eye" gear="0 0.3', '<motor name="pull" site="eye" gear="0 0.3')


@pytest.mark.skipif(
    mujoco.mj_version() < 4_000_000,
    reason="MuJoCo 3 computes contacts of an ellipsoid to 1e-4, and up to 3.13 inertias of meshes to 1e-9",
)
def test_balls_frames_meshes_and_sensors_map_as_the_simulator_moves_them() -> None:
    model = from_xml(RICH)
    found = reflection(model)
    assert (found.findings, found.not_compared) == ([], [])
    assert found.pairs["body"]["left_ball"] == "right_ball"
    assert found.qpos.is_involution
    assert found.sensordata.is_involution
    assert simulated_error(model, found) < EXACT


def test_a_joint_with_another_zero_gets_an_offset() -> None:
    model = from_xml(RICH)
    found = reflection(model)
    left, right = (model.joint(name).qposadr.item() for name in ("left_elbow", "right_elbow"))
    assert (found.qpos.matrix[right, left], found.qpos.offset[right]) == (-1, pytest.approx(0.3))
    with pytest.raises(SymmetryError, match="use the matrix and the offset"):
        _ = found.qpos.permutation


@pytest.mark.parametrize(
    ("old", "new", "element", "parameter"),
    [
        ('pos="0.1 0 0.1" quat', 'pos="0.1 0.01 0.1" quat', "eye", "site pos"),
        ('size="0.1 0.15 0.2"', 'size="0.1 0.15 0.2" euler="0.2 0 0"', "geom 1 (of torso)", "geom axes"),
        ('name="left_cord" stiffness="3"', 'name="left_cord" stiffness="4"', "left_cord", "tendon stiffness"),
        ('name="left_cord" stiffness="3"', 'name="left_cord" limited="true" range="0 4" stiffness="3"',
         "left_cord", "tendon limited"),
        (words(BETWEEN_HANDS), words(BETWEEN_HANDS + 0.1), "handshake", "equality data"),
        ('size="0.1"\n                quat', 'size="0.2"\n                quat', "left_palm", "site size"),
        ('gear="0.3 0 0.2 0 0.1 0"', 'gear="0.3 0.1 0.2 0 0.1 0"', "actuator 6", "actuator gear"),
        (words(WEDGE @ MIRROR), words(WEDGE @ MIRROR * [1, 1, 1.01]), "right_pad", "geom hull"),
        ('ctrlrange="-0.5 1"', 'ctrlrange="-1 0.5"', "actuator 1 (on right_elbow)", "actuator ctrlrange"),
        ('ref="0.3"', 'ref="0.2"', "right_elbow", "joint range"),
        ('size="0.1 0.2"', 'size="0.1 0.21"', "geom 8 (of left_ball)", "geom size"),
    ],
)  # fmt: skip
def test_what_breaks_the_rich_model_is_found(old: str, new: str, element: str, parameter: str) -> None:
    assert old in RICH
    found = reflection(from_xml(RICH.replace(old, new, 1))).findings
    assert any(f.parameter == parameter and element in (f.first, f.second) for f in found), found


TWINS = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 1"><joint type="slide" axis="1 0 0"/><geom size="0.1"/>
      <body name="{0}"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/></body>
      <body name="{1}"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def test_where_neither_place_nor_name_tells_the_image_the_candidates_are_named() -> None:
    model = from_xml(TWINS.format("anna", "berta"))
    with pytest.raises(
        SymmetryError, match=r"'anna' could be 'anna' or 'berta'.*pairs=\{\"anna\": \"berta\"\}"
    ):
        reflection(model)
    assert reflection(model, pairs={"anna": "berta"}).qpos.permutation.tolist() == [0, 2, 1]
    assert reflection(model, pairs={"berta": "berta"}).qpos.permutation.tolist() == [0, 1, 2]


def test_names_tell_the_image_where_place_does_not() -> None:
    assert reflection(from_xml(TWINS.format("leg_l", "leg_r"))).qpos.permutation.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("first", "second", "mirrored"),
    [
        ("thigh", "thigh_left", True),
        ("L_hip", "R_hip", True),
        ("FL_hip", "FR_hip", True),
        ("LF_HAA", "RF_HAA", True),
        ("leftArm", "rightArm", True),
        ("hipL1", "hipR1", True),
        ("left-foot.2", "right-foot.2", True),
        ("rightback_leg", "leftback_leg", True),
        ("FL_hip", "RR_hip", False),
        ("left_arm", "right_leg", False),
        ("left_arm", "left_arm", False),
        ("anna", "berta", False),
        ("", "", False),
    ],
)
def test_names_differ_in_their_side_only(first: str, second: str, mirrored: bool) -> None:
    assert mirrored_names(first, second) is mirrored_names(second, first) is mirrored


def test_names_that_mislead_give_way_to_geometry() -> None:
    pairs = reflection(stock("ant").compile(), "y").pairs["body"]
    assert pairs["front_left_leg"] == "right_back_leg"
    assert pairs["front_right_leg"] == "back_leg"


ONE_ARM = """
<mujoco>
  <worldbody>
    <body name="trunk"><freejoint/><geom size="0.1"/>
      <body name="only_arm" pos="0 0.5 0"><joint/><geom size="0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def test_a_body_without_image_is_named() -> None:
    with pytest.raises(SymmetryError, match=r"'only_arm' \(on 'trunk'\)"):
        reflection(from_xml(ONE_ARM), "y")


def test_a_part_that_cannot_move_by_itself_is_left_to_the_audit() -> None:
    found = reflection(from_xml(ONE_ARM.replace("<joint/>", "")), "y").findings
    assert ("body pos", "only_arm") in {(f.parameter, f.first) for f in found}


def test_bodies_of_other_structure_are_no_images() -> None:
    xml = TWINS.format("left", "right").replace('<joint axis="0 1 0"/>', '<joint type="ball"/>', 1)
    xml = xml.replace('name="left"', 'name="left" pos="0 0.3 0"').replace(
        'name="right"', 'name="right" pos="0 -0.3 0"'
    )
    with pytest.raises(SymmetryError, match="'left'"):
        reflection(from_xml(xml), "y")


def test_perpendicular_axes_have_no_sign() -> None:
    xml = TWINS.format("leg_l", "leg_r").replace(
        '<joint axis="0 1 0"/>', '<joint name="odd" axis="1 0 0"/>', 1
    )
    with pytest.raises(SymmetryError, match=r"'odd'.*perpendicular"):
        reflection(from_xml(xml))


def test_unknown_and_contradicting_names_in_pairs_are_refused() -> None:
    model = stock("walker2d").compile()
    with pytest.raises(UserError, match="did you mean 'thigh_left'"):
        reflection(model, pairs={"thigh": "thigh_lef"})
    with pytest.raises(SymmetryError, match="'thigh' cannot be the image of both"):
        reflection(model, pairs={"thigh": "thigh_left", "torso": "thigh"})
    with pytest.raises(SymmetryError, match="normal 'sideways'"):
        reflection(model, "sideways")


def test_where_a_free_body_starts_is_no_part_of_the_model() -> None:
    xml = TWINS.format("leg_l", "leg_r").replace('<joint type="slide" axis="1 0 0"/>', "<freejoint/>")
    model = from_xml(xml.replace('pos="0 0 1"', 'pos="0 3 1"'))
    found = reflection(model)
    assert found.findings == []
    assert simulated_error(model, found, samples=20) < EXACT


# Contacts.

TOYS = """
<mujoco>
  <option cone="{cone}" gravity="0 0 -9.81"/>
  <default><geom condim="3" friction="0.3"/></default>
  <worldbody>
    {floor}
    <body name="left" pos="0.05 0.12 0.1"><freejoint/><geom type="box" size="0.08 0.1 0.05"/></body>
    <body name="right" pos="0.05 -0.12 0.1"><freejoint/><geom type="box" size="0.08 0.1 0.05"/></body>
    <body name="middle" pos="0 0 0.3"><freejoint/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""
FLOOR = '<geom name="floor" type="plane" size="9 9 1"/>'


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_friction_of_any_shape_is_mirrored_along_the_axes(cone: str) -> None:
    """The directions of friction at a contact follow the axes, which such a mirror keeps."""
    model = from_xml(TOYS.format(cone=cone, floor=FLOOR))
    found = reflection(model)
    assert found.findings == []
    assert simulated_error(model, found) < EXACT


@pytest.mark.parametrize("floor", [FLOOR, ""])
def test_a_pyramid_is_not_mirrored_obliquely(floor: str) -> None:
    ball = '<body name="ball" pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>'
    other = '<body name="top" pos="0 0 0.318"><freejoint/><geom size="0.12"/></body>' if not floor else ""
    xml = "<mujoco><option cone='CONE'/><worldbody>" + floor + ball + other + "</worldbody></mujoco>"
    oblique = [np.cos(0.5), np.sin(0.5), 0]
    pyramidal = from_xml(xml.replace("CONE", "pyramidal"))
    found = reflection(pyramidal, oblique)
    assert [finding.parameter for finding in found.findings] == ["option cone"]
    assert simulated_error(pyramidal, found) > BROKEN
    elliptic = from_xml(xml.replace("CONE", "elliptic"))
    assert reflection(elliptic, oblique).findings == []
    assert simulated_error(elliptic, reflection(elliptic, oblique), samples=50) < EXACT


APART = """
<mujoco>
  <option cone="pyramidal"/>
  <worldbody>
    <body name="lower" pos="0 0 0.1"><freejoint/><geom size="0.1"/>
      <body name="upper" pos="0 0 0.3"><joint axis="0 0 1"/><geom size="0.1"/>
        <body name="top" pos="0 0 0.3"><joint axis="0 0 1"/><geom size="0.1"/></body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="top" body2="lower"/></contact>
</mujoco>
"""


def test_bodies_that_are_kept_apart_have_no_friction() -> None:
    oblique = [np.cos(0.5), np.sin(0.5), 0]
    assert reflection(from_xml(APART), oblique).findings == []
    assert reflection(from_xml(APART.replace('body1="top"', 'body1="upper"')), oblique).findings != []


def test_shapes_and_joints_may_be_written_in_other_ways() -> None:
    turned_box = TOYS.format(cone="elliptic", floor=FLOOR).replace(
        'size="0.08 0.1 0.05"/></body>\n    <body name="middle"',
        'size="0.1 0.08 0.05" euler="0 0 90"/></body>\n    <body name="middle"',
    )
    assert "euler" in turned_box
    assert reflection(from_xml(turned_box)).findings == []
    spec = corrected("humanoid")
    spec.joint("left_knee").pos[1] = 0.05  # along its axis
    assert reflection(spec.compile()).findings == []


def test_shapes_for_the_eye_only_are_not_taken_for_those_that_touch() -> None:
    """Robots often have both in the same place, and the order differs from side to side."""
    seen = '<geom name="{0}_seen" size="0.1" contype="0" conaffinity="0" friction="7"/>'
    felt = '<geom name="{0}_felt" size="0.1"/>'
    hand = '<body name="{0}" pos="0 {1} 0"><joint axis="1 0 0"/>{2}</body>'
    hands = hand.format("left", 1, seen + felt).format("left") + hand.format("right", -1, felt + seen).format(
        "right"
    )
    assert reflection(from_xml(f"<mujoco><worldbody>{hands}</worldbody></mujoco>")).findings == []


def test_the_ant_has_a_diagonal_mirror() -> None:
    model = stock("ant").compile()
    found = reflection(model, [1, 1, 0])
    assert found.findings == []
    assert found.pairs["joint"]["hip_1"] == "hip_3"
    assert simulated_error(model, found) < EXACT


# Actuators, sensors and constraints by themselves.


def test_a_muscle_across_the_plane_is_found() -> None:
    xml = TWINS.format("leg_l", "leg_r").replace(
        "</mujoco>", '<actuator><muscle name="m" joint="sway" lengthrange="0 1"/></actuator></mujoco>'
    ).replace('type="slide" axis="1 0 0"', 'name="sway" type="slide" axis="0 1 0"')  # fmt: skip
    found = [str(finding) for finding in reflection(from_xml(xml)).findings]
    assert any("it only pulls" in line for line in found)


def test_several_actuators_on_a_joint_are_told_apart_by_what_they_are() -> None:
    xml = TWINS.format("leg_l", "leg_r").replace('<joint axis="0 1 0"/>', '<joint name="A" axis="0 1 0"/>', 1)
    xml = xml.replace('<joint axis="0 1 0"/>', '<joint name="B" axis="0 1 0"/>')
    motors = "".join(
        f'<{kind} joint="{joint}"/>' for joint in "AB" for kind in ('position kp="5"', "velocity", "motor")
    )
    found = reflection(from_xml(xml.replace("</mujoco>", f"<actuator>{motors}</actuator></mujoco>")))
    assert found.ctrl.permutation.tolist() == [3, 4, 5, 0, 1, 2]
    twice = "".join(
        f'<motor name="{name}" joint="{joint}"/>' for name, joint in zip("uvwx", "AABB", strict=True)
    )
    model = from_xml(xml.replace("</mujoco>", f"<actuator>{twice}</actuator></mujoco>"))
    with pytest.raises(SymmetryError, match="actuator 'u' could be 'w' or 'x'"):
        reflection(model)
    assert reflection(model, pairs={"u": "x"}).ctrl.permutation.tolist() == [3, 2, 1, 0]


def test_sensors_without_map_are_listed_and_refuse_to_be_mapped() -> None:
    spec = corrected("humanoid")
    spec.body("left_foot").add_site(name="sole")
    spec.add_sensor(
        name="lonely", type=mujoco.mjtSensor.mjSENS_GYRO, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="sole"
    )
    spec.add_sensor(
        name="knee",
        type=mujoco.mjtSensor.mjSENS_JOINTPOS,
        objtype=mujoco.mjtObj.mjOBJ_JOINT,
        objname="abdomen_z",
    )
    found = reflection(spec.compile())
    assert found.not_compared == ["sensor 'lonely': no sensor is its mirror image"]
    with pytest.raises(SymmetryError, match="sensor reading 0 has no map"):
        _ = found.sensordata
    assert observation_map(found, [numbered("reading", 3)]).signs.tolist() == [-1]
    with pytest.raises(SymmetryError, match=r"observation 0 \(reading 0\) has no map"):
        observation_map(found, [numbered("reading", 0)])


def test_a_beam_must_point_where_the_mirrored_one_does() -> None:
    eye = '<site name="{0}_eye" {2}/>'
    hand = '<body name="{0}" pos="0 {1} 0"><joint axis="1 0 0"/><geom size="0.1"/>' + eye + "</body>"
    xml = (
        "<mujoco><worldbody>"
        + hand.format("left", 1, "")
        + hand.format("right", -1, "EULER")
        + "</worldbody>"
    )
    xml += "<sensor><rangefinder site='left_eye'/><rangefinder site='right_eye'/></sensor></mujoco>"
    assert reflection(from_xml(xml.replace("EULER", 'euler="0 0 70"'))).findings == []
    (finding,) = reflection(from_xml(xml.replace("EULER", 'euler="0 20 0"'))).findings
    assert finding.parameter == "site axes"


def equality(*numbers: float) -> list[float]:
    """The numbers of an equality constraint: some, then zeros."""
    return [*numbers, *[0.0] * (mujoco.mjNEQDATA - len(numbers))]


def test_constraints_with_mirror_images_are_no_findings() -> None:
    spec = corrected("humanoid")
    joints = mujoco.mjtEq.mjEQ_JOINT
    for side, other in (("left", "right"), ("right", "left")):
        spec.add_equality(type=joints, name1=f"{side}_knee", name2=f"{side}_hip_y", data=equality(0.1, 0.5))
        spec.add_exclude(bodyname1=f"{side}_thigh", bodyname2=f"{other}_lower_arm")
        spec.add_pair(geomname1=f"{side}_foot", geomname2=f"{other}_hand", condim=3)
    spec.add_equality(type=joints, name1="left_elbow", name2="right_elbow", data=equality(0.2, -1))
    spec.add_equality(type=joints, name1="left_shoulder1", name2="right_shoulder1", data=equality(0.2, 1))
    spec.add_equality(type=joints, name1="abdomen_x", name2="abdomen_z", data=equality(0, 0.5))
    weld = spec.add_equality(type=mujoco.mjtEq.mjEQ_WELD, name1="left_foot", name2="right_foot")
    weld.objtype = mujoco.mjtObj.mjOBJ_BODY
    weld.data[:] = equality(0, 0.09, *[0] * 8, 1)  # half-way between the feet
    model = spec.compile()
    found = reflection(model)
    assert found.findings == []
    assert simulated_error(model, found, samples=50) < EXACT


# Observations.


def numbered(kind: Kind, address: int) -> Quantity:
    return Quantity(kind, address, "", f"{kind} {address}", "")


def test_the_map_of_an_observation_is_that_of_its_quantities() -> None:
    places = [numbered("qpos", i) for i in range(2, 15)] + [numbered("qvel", i) for i in range(14)]
    found = reflection(stock("ant").compile(), "x")
    derived = observation_map(found, places)
    state, velocity = np.random.default_rng(0).normal(size=15), np.random.default_rng(1).normal(size=14)
    expected = np.concatenate([found.qpos(state)[2:], found.qvel(velocity)])
    np.testing.assert_array_equal(derived(np.concatenate([state[2:], velocity])), expected)


def test_the_map_of_an_observation_keeps_offsets() -> None:
    found = reflection(from_xml(RICH))
    derived = observation_map(found, [numbered("qpos", i) for i in range(len(found.qpos.offset))])
    np.testing.assert_array_equal(derived.offset, found.qpos.offset)


def test_an_observation_that_lacks_a_number_is_refused() -> None:
    found = reflection(stock("walker2d").compile())
    with pytest.raises(SymmetryError, match=r"observation 1 \(qpos 3\) needs qpos 6, which is not observed"):
        observation_map(found, [numbered("qpos", 2), numbered("qpos", 3)])
    with pytest.raises(SymmetryError, match="there is no qpos 9"):
        observation_map(found, [numbered("qpos", 9)])


# Rotations.


def test_stock_humanoid_does_not_turn_for_its_solver_and_cone() -> None:
    assert {f.parameter for f in audit_rotation(stock("humanoid").compile())} == {
        "option solver",
        "option cone",
    }


@pytest.mark.parametrize("name", ["ant", "humanoid"])
def test_corrected_models_turn_about_the_vertical(name: str) -> None:
    model = corrected(name).compile()
    assert audit_rotation(model) == []
    assert simulated_error(model, rotation(model, 0.7)) < EXACT


def test_simulation_notices_a_cone_with_edges() -> None:
    model = stock("humanoid").compile()
    model.opt.solver = NEWTON
    assert {f.parameter for f in audit_rotation(model)} == {"option cone"}
    assert simulated_error(model, rotation(model, 0.7)) > BROKEN


@pytest.mark.parametrize(
    ("path", "value", "parameter"),
    [
        ("option.gravity[0]", 1e-5, "option gravity"),
        ("option.wind[1]", 1.0, "option wind"),
        ("option.noslip_iterations", 1, "option noslip_iterations"),
        ("geom:floor.quat", [1, 0.01, 0, 0], "geom type"),
        ("geom:floor.type", mujoco.mjtGeom.mjGEOM_BOX, "geom type"),
    ],
)
def test_what_stops_a_turn_is_found(path: str, value: object, parameter: str) -> None:
    spec = corrected("ant")
    edit(path, value)(spec)
    assert [f.parameter for f in audit_rotation(spec.compile())] == [parameter]


def test_a_body_that_hangs_on_the_world_cannot_turn() -> None:
    (finding,) = (f for f in audit_rotation(stock("walker2d").compile()) if f.parameter == "body joints")
    assert finding.first == "torso"
    assert "cannot rotate" in str(finding)


@pytest.mark.parametrize("legs", [4, 10])
def test_many_legs_in_one_place_are_paired_by_name_or_refused(legs):
    def model(*names):
        bodies = "".join(
            f'<body name="{name}"><joint name="{name}_j" axis="0 1 0"/><geom size=".1" pos="0 0 -.2"/></body>'
            for name in names
        )
        return mujoco.MjModel.from_xml_string(
            f'<mujoco><worldbody><body><freejoint/><geom size=".1"/>{bodies}</body></worldbody></mujoco>'
        )

    numbers = range(legs // 2)
    named = model(*(f"leg{n}_{side}" for n in numbers for side in ("left", "right")))
    pairs = reflection(named).pairs["body"]
    assert all(pairs[f"leg{n}_left"] == f"leg{n}_right" for n in numbers)
    with pytest.raises(SymmetryError, match="could be"):
        reflection(model(*(f"leg{chr(97 + n)}" for n in range(legs))))
