"""What is compared is physics, not notation: each model here is symmetric although it does not look so.

Beside each stands an edit that does break its symmetry.
"""

import mujoco
import numpy as np
import pytest

from augury.symmetry import reflection, simulated_error

EXACT, BROKEN = 1e-9, 1e-6

FLOOR = '<geom name="floor" type="plane" size="9 9 1"/>'


def robot(left: str, right: str, *, rest: str = "", floor: str = FLOOR, trunk: str = "") -> str:
    """A free trunk with a left and a right leg."""
    return f"""
    <mujoco><option cone="elliptic"/>
      <worldbody>{floor}
        <body name="trunk" pos="0 0 0.5"><freejoint/>{trunk}
          <geom name="trunk" type="box" size="0.2 0.1 0.05"/>{left}{right}
        </body>
      </worldbody>{rest}
    </mujoco>"""


def leg(side: str, *, geom: str = "", body: str = "", inside: str = "") -> str:
    """A leg on a hinge: a capsule down from its hip."""
    y = 0.2 if side == "left" else -0.2
    return f"""
    <body name="{side}" pos="0.1 {y} 0" {body}><joint name="{side}" axis="0 1 0"/>
      <geom name="{side}" type="capsule" fromto="0 0 0 0.1 0 -0.3" size="0.04" {geom}/>{inside}
    </body>"""


# Masks of the two sides exchanged: the left leg says whom it touches, the right leg who touches it.
MASKS = robot(
    leg("left", geom='contype="2" conaffinity="0"'),
    leg("right", geom='contype="0" conaffinity="2"'),
    floor='<geom name="floor" type="plane" size="9 9 1" contype="2" conaffinity="2"/>',
)


def shifted_leg(side: str, y: float, away: float) -> str:
    """A leg whose origin is `away` along its own hinge, with everything on it where it was."""
    return f"""
    <body name="{side}" pos="0.1 {y + away} 0"><joint name="{side}" axis="0 1 0"/>
      <geom name="{side}" type="capsule" fromto="0 {-away} 0 0.1 {-away} -0.3" size="0.04"/>
      <body name="{side}_foot" pos="0.1 {-away} -0.3"><joint axis="0 1 0"/>
        <geom name="{side}_foot" size="0.05"/></body>
    </body>"""


ALONG_THE_HINGE = robot(shifted_leg("left", 0.2, 0.07), shifted_leg("right", -0.2, 0))


def rod(side: str, y: float, *, from_knee: bool) -> str:
    """A rod on a hinge at its upper end, written from there or from its lower end."""
    origin, hinge, middle = (-0.3, 0.3, 0.15) if from_knee else (0, 0, -0.15)
    return f"""
    <body name="{side}" pos="0.1 {y} {origin}"><joint name="{side}" axis="0 1 0" pos="0 0 {hinge}"/>
      <inertial mass="1" pos="0.01 0 {middle}" diaginertia="0.02 0.03 0.01"/>
      <geom name="{side}" type="capsule" pos="0 0 {middle}" size="0.04 0.1"/>
    </body>"""


OTHER_END = robot(rod("left", 0.2, from_knee=False), rod("right", -0.2, from_knee=True))


def arm(side: str, y: float, mass: float, base: str) -> str:
    """An arm on a base that is welded to the world."""
    return f"""
    <body name="{side}_base" pos="0 {y} 0">{base}
      <body name="{side}"><joint name="{side}" axis="1 0 0"/>
        <geom name="{side}" type="capsule" fromto="0 0 0 0.3 0 0" size="0.04" mass="{mass}"/></body>
    </body>"""


def arms(mass: float = 1.0) -> str:
    bases = (
        '<inertial mass="3" pos="0.1 0 0" diaginertia="1 2 2.5"/>',
        '<inertial mass="2" pos="0 0 0.3" diaginertia="1 1 1"/>',
    )
    return (
        "<mujoco><worldbody>"
        + arm("left", 0.3, 1.0, bases[0])
        + arm("right", -0.3, mass, bases[1])
        + "</worldbody></mujoco>"
    )


def on_fixed_hinges(away: float, turned: float = 0.0) -> str:
    """Two doors; the mass of one is `away` along its hinge, and `turned` from its place across it."""
    door = """
    <body name="{0}" pos="0 {1} 0"><joint name="{0}" axis="0 0 1"/>
      <inertial mass="1" pos="0.2 {3} {2}" diaginertia="0.1 0.1 0.1"/></body>"""
    return (
        '<mujoco><option gravity="0 0 0"/><worldbody>'
        + door.format("left", 0.3, 0, 0)
        + door.format("right", -0.3, away, turned)
        + "</worldbody></mujoco>"
    )


def tied(first: str, second: str) -> str:
    """Two connect constraints between each leg and the trunk, in some order."""
    ties = "".join(
        f'<connect name="{side}_{place}" body1="{side}" body2="trunk" anchor="{anchor}" solref="0.05 1"/>'
        for side, order in (("left", (first, second)), ("right", ("0.1 0 -0.3", "0 0 0")))
        for place, anchor in enumerate(order)
    )
    return robot(leg("left"), leg("right"), rest=f"<equality>{ties}</equality>")


def marked(touching: str = 'contype="0" conaffinity="0"') -> str:
    """A marker on one side: a body without mass, a geom that cannot touch, a site that nothing reads."""
    marker = f"""
    <body name="marker" pos="0.03 0.02 0.01"><geom name="marker" size="0.02" mass="0" {touching}/></body>
    <geom name="label" type="box" size="0.05 0.01 0.01" mass="0" contype="4" conaffinity="8"/>
    <site name="spot" pos="0.1 0.05 0"/>"""
    return robot(leg("left"), leg("right"), trunk=marker)


CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [0.05, 0.03, 0.04]
INSIDE = np.array([[0.01, 0.02, 0.01], [0.05, 0.0, 0.01], [0.0, 0.03, -0.04]])


def hulls(wide: float = 1.0) -> str:
    """Feet with the same convex hull: one of eight corners, one with points inside and on its faces."""

    def mesh(side: str, points: np.ndarray) -> str:
        numbers = " ".join(f"{number:.12g}" for number in points.ravel())
        return f'<mesh name="{side}" inertia="shell" vertex="{numbers}"/>'

    def foot(side: str) -> str:
        inertial = '<inertial mass="1" pos="0.1 0 -0.2" diaginertia="0.01 0.01 0.01"/>'
        mesh = f'<geom name="{side}_foot" type="mesh" mesh="{side}" pos="0.1 0 -0.34"/>'
        return leg(side, inside=inertial + mesh, geom='contype="0" conaffinity="0"')

    meshes = mesh("left", CUBE) + mesh("right", np.concatenate([CUBE * [wide, 1, 1] + 1e-9, INSIDE])[::-1])
    return robot(foot("left"), foot("right"), rest=f"<asset>{meshes}</asset>")


CASES: dict[str, tuple[str, str, str, str]] = {
    "masks exchanged between sides": (
        MASKS,
        MASKS.replace('contype="2" conaffinity="0"', 'contype="4" conaffinity="0"'),
        "geom contacts",
        "left",
    ),
    "an origin shifted along its hinge": (
        ALONG_THE_HINGE,
        ALONG_THE_HINGE.replace('pos="0.1 -0.07 -0.3"', 'pos="0.1 -0.06 -0.3"'),
        "body pos",
        "left_foot",
    ),
    "an origin at the other end of a body": (
        OTHER_END,
        OTHER_END.replace('pos="0.01 0 0.15"', 'pos="0.01 0 0.16"'),
        "body ipos",
        "right",
    ),
    "the inertia of what is welded to the world": (arms(), arms(mass=1.01), "body mass", "right"),
    "a mass moved along a hinge that stays": (
        on_fixed_hinges(0.1),
        on_fixed_hinges(0.1, turned=0.1),
        "body ipos",
        "right",
    ),
    "two connect constraints of the same bodies": (
        tied("0 0 0", "0.1 0 -0.3"),
        tied("0 0 0", "0.1 0 -0.28"),
        "equality data",
        "left_1",
    ),
    "markers and geoms that cannot touch": (marked(), marked('contype="1"'), "body pos", "marker"),
    "hulls with other corners": (hulls(), hulls(wide=1.001), "geom hull", "right_foot"),
}


def compiled(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


@pytest.mark.parametrize("case", CASES)
def test_other_notation_of_the_same_physics_is_no_finding(case: str) -> None:
    model = compiled(CASES[case][0])
    found = reflection(model)
    assert found.findings == []
    stored_coarsely = case.startswith("hulls")  # MuJoCo keeps corners in single precision
    assert simulated_error(model, found, samples=60) < (BROKEN if stored_coarsely else EXACT)


@pytest.mark.parametrize("case", CASES)
def test_one_edit_of_the_physics_is_caught_and_named(case: str) -> None:
    _, xml, parameter, element = CASES[case]
    found = reflection(compiled(xml)).findings
    assert any(f.parameter == parameter and element in f"{f.first} {f.second} {f.why}" for f in found), found
