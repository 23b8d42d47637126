"""Exported maps are the derived ones; the tests beside them ask the simulator, and find mistakes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
import torch

import augury.symmetry
from augury.cli import main
from augury.envs.mujoco import terms as task_terms
from augury.errors import UserError
from augury.symmetry import observation_map, reflection
from augury.symmetry.export.asking import tolerances
from augury.symmetry.export.writing import Source, export
from augury.symmetry.observed.mirror import mirror_of
from augury.symmetry.observed.of_task import observed_by
from tests.quadruped import EXAMPLES, quadruped

__all__ = ["quadruped"]

MODEL = EXAMPLES / "quadruped.xml"
FEET = [f"{end}_{side}_foot" for end in ("front", "hind") for side in ("left", "right")]
DEPTH_FIRST = [
    f"{end}_{side}_{part}"
    for end in ("front", "hind")
    for side in ("left", "right")
    for part in ("hip", "thigh", "shin")
]
BREADTH_FIRST = sorted(DEPTH_FIRST, key=lambda joint: ["hip", "thigh", "shin"].index(joint.split("_")[-1]))
OBSERVATIONS = {
    "policy": [
        "base_linear_velocity",
        "base_angular_velocity",
        "projected_gravity",
        "command",
        "joint_offsets",
        {"kind": "joint_velocities", "history": 2},
        "previous_action",
        {"name": "phase", "kind": "gait_phase", "feet": [*FEET, *FEET]},
        {"kind": "height_scan", "x": 5, "y": 3},
    ],
    "critic": ["base_height", {"kind": "contacts", "feet": FEET}, "gait_clock"],
}


@pytest.fixture(scope="module")
def mirror():
    return augury.symmetry.terms(MODEL, OBSERVATIONS, joints=BREADTH_FIRST)


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def exported(mirror, form, folder):
    """The paths of the map and of its tests."""
    return export(
        mirror, form, folder / f"mirror.{'json' if form == 'json' else 'py'}", Source(MODEL, "terms")
    )


@pytest.fixture(scope="module")
def written(mirror, tmp_path_factory):
    """The tests beside a map for NumPy, and what they ask."""
    tests = module(exported(mirror, "numpy", tmp_path_factory.mktemp("numpy"))[1])
    return tests, simulator_of(tests)


def simulator_of(tests):
    """As their fixture makes it."""
    model = mujoco.MjModel.from_xml_path(str(tests.MODEL))
    state = (tests.QPOS, tests.QPOS_OFFSETS), tests.QVEL
    return tests.Simulator(model, tests.PLANE, *state, tests.BODIES, tests.DEFAULT, tests.STILL)


def wrong_terms(written):
    """The terms that the generated tests find wrong, by what they say."""
    tests, simulator = written
    found = []
    for group, name in tests.CASES:
        try:
            tests.test_simulator_agrees(simulator, group, name)
        except AssertionError as error:
            found.append(str(error).split(": number")[0])
    return found


def all_pass(written):
    """Run the generated tests."""
    tests, simulator = written
    assert wrong_terms(written) == []
    tests.test_states_are_mirrored_as_the_plane_says(simulator)
    tests.test_symmetric_policy_does_the_mirrored_thing(simulator)
    for number in tests.ACTIONS:
        tests.test_action_does_the_mirrored_thing(simulator, number)
    for group in tests.TERMS:
        tests.test_mirrored_twice_is_the_same(group)


def test_the_simulator_agrees_with_what_was_exported(written):
    all_pass(written)


@pytest.mark.parametrize("form", ["numpy", "torch", "jax", "rsl_rl", "json"])
def test_every_form_says_the_same(mirror, form, tmp_path):
    path, _ = exported(mirror, form, tmp_path)
    rows = np.random.default_rng(0).normal(size=(4, len(mirror.vectors["policy"]))).astype(np.float32)
    expected = mirror.observation(rows, "policy")
    if form == "json":
        numbers = json.loads(path.read_text())["maps"]["policy"]
        found = [sum(f * rows[:, int(s)] for s, f in number["sources"].items()) for number in numbers]
        assert [number["name"] for number in numbers[:2]] == ["base velocity x", "base velocity y"]
        np.testing.assert_array_equal(np.stack(found, 1), expected)
        return
    loaded = module(path)
    assert loaded.JOINTS == BREADTH_FIRST
    as_values = {"numpy": np.asarray, "jax": jnp.asarray}.get(form, torch.as_tensor)
    apply = jax.jit(loaded.mirror_observation) if form == "jax" else loaded.mirror_observation
    np.testing.assert_array_equal(np.asarray(apply(as_values(rows))), expected)
    actions = rows[:, :12]
    np.testing.assert_array_equal(loaded.mirror_action(as_values(actions)), mirror.action(actions))
    with pytest.raises(ValueError, match="'policy' has 12 numbers"):
        loaded.mirror_observation(as_values(actions))


# Each is a mistake that somebody's hand-written map had, or could have: a function of a term's rows (sources
# within the term, factors), in the order of its numbers.
def signs(*factors):
    return lambda rows: [(source, factor) for (source, _), factor in zip(rows, factors, strict=True)]


def exchanged(order):
    return lambda rows: [(order[place], factor) for place, (_, factor) in enumerate(rows)]


def identity(rows):
    return [(place, 1.0) for place in range(len(rows))]


def unsigned(rows):
    return [(source, 1.0) for source, _ in rows]


def in_depth_first_order(rows):
    """Right for the joint order of another simulator."""
    own = dict(zip(BREADTH_FIRST, rows, strict=True))
    images = {joint: (BREADTH_FIRST[source], factor) for joint, (source, factor) in own.items()}
    return [(DEPTH_FIRST.index(images[joint][0]), images[joint][1]) for joint in DEPTH_FIRST]


def in_each_frame(change):
    """The same mistake in both frames of a history."""

    def changed(rows):
        size = len(rows) // 2
        later = change([(source - size, factor) for source, factor in rows[size:]])
        return [*change(rows[:size]), *((source + size, factor) for source, factor in later)]

    return changed


def flipped_ends(rows):
    """Front and back exchanged, instead of left and right."""
    swap = {"front": "hind", "hind": "front"}
    names = [joint.split("_", 1) for joint in BREADTH_FIRST]
    return [(BREADTH_FIRST.index(f"{swap[end]}_{rest}"), rows[i][1]) for i, (end, rest) in enumerate(names)]


WRONG = {
    "phase negated": ("phase", signs(*[-1.0] * 8)),
    "phase negated in place": ("phase", lambda rows: [(place, -1.0) for place in range(8)]),
    "phase unchanged": ("phase", identity),
    "phase of the diagonal foot": ("phase", exchanged([3, 2, 1, 0, 7, 6, 5, 4])),
    "sines exchanged with cosines": ("phase", exchanged([5, 4, 7, 6, 1, 0, 3, 2])),
    "joint order of another simulator": ("joint_offsets", in_depth_first_order),
    "velocities in another order": ("joint_velocities", in_each_frame(in_depth_first_order)),
    "roll sign": ("joint_offsets", unsigned),
    "pitch sign": ("joint_offsets", signs(*[-1.0] * 12)),
    "one sign": ("joint_offsets", signs(*[-1.0] * 3, *[1.0] * 9)),
    "one pair not exchanged": ("joint_offsets", exchanged([1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 10, 11])),
    "front and back exchanged": ("joint_offsets", flipped_ends),
    "roll velocity's sign": ("joint_velocities", unsigned),
    "history reversed": ("joint_velocities", lambda rows: [((s + 12) % 24, f) for s, f in rows]),
    "command unmirrored": ("command", identity),
    "command's turning unmirrored": ("command", signs(1.0, -1.0, 1.0)),
    "command's forward negated": ("command", signs(-1.0, -1.0, -1.0)),
    "gravity's y": ("projected_gravity", identity),
    "gravity as a pseudovector": ("projected_gravity", signs(-1.0, 1.0, -1.0)),
    "angular velocity as a vector": ("base_angular_velocity", signs(1.0, -1.0, 1.0)),
    "velocity as a pseudovector": ("base_linear_velocity", signs(-1.0, 1.0, -1.0)),
    "previous action unmirrored": ("previous_action", identity),
    "previous action without signs": ("previous_action", unsigned),
    "scan unmirrored": ("height_scan", identity),
    "scan flipped along x": ("height_scan", exchanged([5 * (n // 5) + 4 - n % 5 for n in range(15)])),
    "scan with y fastest": ("height_scan", exchanged([3 * (n // 3) + 2 - n % 3 for n in range(15)])),
    "contacts unmirrored": ("contacts", identity),
    "contacts negated": ("contacts", signs(*[-1.0] * 4)),
    "clock unmirrored": ("gait_clock", identity),
    "height negated": ("base_height", signs(-1.0)),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_map_is_caught_and_its_term_named(written, monkeypatch, mistake):
    tests, _ = written
    term, change = WRONG[mistake]
    group = "critic" if term in ("contacts", "gait_clock", "base_height") else "policy"
    spoil(tests, monkeypatch, group, term, change)
    assert wrong_terms(written) == [f"{group}, {term}"]


@pytest.mark.parametrize("change", [identity, unsigned, in_depth_first_order, flipped_ends])
def test_a_wrong_map_of_actions_is_caught_by_what_they_do(written, monkeypatch, change):
    tests, simulator = written
    spoil(tests, monkeypatch, "action", "joint_offsets", change)
    assert wrong_terms(written) == ["action, joint_offsets"]
    with pytest.raises(AssertionError, match="action 0 does another thing in the mirror"):
        tests.test_action_does_the_mirrored_thing(simulator, 0)
    with pytest.raises(AssertionError, match="policy: what it does is off by"):
        tests.test_symmetric_policy_does_the_mirrored_thing(simulator)


def spoil(tests, monkeypatch, group, term, change):
    """Change the rows of one term in an exported map."""
    sizes = {name: own["size"] * own["history"] for name, own in tests.TERMS[group]["terms"].items()}
    start = sum([*sizes.values()][: [*sizes].index(term)])
    stop = start + sizes[term]
    rows = [*tests.MIRROR.MAPS[group]]
    own = [(source - start, factor) for row in rows[start:stop] for source, factor in row.items()]
    spoilt = [{start + source: factor} for source, factor in change(own)]
    assert spoilt != rows[start:stop]
    monkeypatch.setitem(tests.MIRROR.MAPS, group, [*rows[:start], *spoilt, *rows[stop:]])
    # The map that is held for speed is another.
    monkeypatch.setattr(tests.MIRROR, "_map", tests.MIRROR._map.__wrapped__)


TERMS = """
actions = "controls"

[observations]
policy = ["projected_gravity", "command", "joint_offsets", { name = "own", kind = "custom", signs = [-1] }]

[sizes]
policy = 19
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the model and a list of terms."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.xml").write_text(MODEL.read_text())
    (tmp_path / "terms.toml").write_text(TERMS)
    return tmp_path


def test_the_command_writes_a_map_and_its_tests(folder, capsys):
    main(["symmetry", "robot.xml", "--export", "torch", "--terms", "terms.toml"])
    assert capsys.readouterr().out.endswith("wrote mirror.py\nwrote test_mirror.py\n")
    written = (folder / "mirror.py").read_text()
    assert "The mirror of robot.xml, for observations as terms.toml lists them." in written
    assert "Its symmetry is exact." in written
    assert (
        "{9: -1.0},  # 6 front_left_hip angle from default = - front_right_hip angle from default" in written
    )


@pytest.mark.slow
def test_what_is_written_is_said_apart_from_json(folder, capsys):
    main(["symmetry", "robot.xml", "--json", "--export", "json", "--out", "maps/state.json"])
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["model"] == "robot.xml"
    assert "wrote maps/state.json" in printed.err
    assert [*json.loads((folder / "maps/state.json").read_text())["maps"]] == ["qpos", "qvel", "action"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--export", "rsl_rl"], "--export rsl_rl needs --terms FILE.toml"),
        (["--terms", "terms.toml"], "--terms and --out belong to --export"),
        (["--export", "torch", "--out", "my-mirror.py"], "a map for torch is a file like mirror.py"),
        (["--export", "json", "--out", "mirror.py"], "a map for json is a file like mirror.json"),
        (["--export", "torch", "--terms", "none.toml"], "cannot read none.toml"),
    ],
)
def test_the_command_says_what_it_needs(folder, capsys, arguments, message):
    with pytest.raises(SystemExit) as leaving:
        main(["symmetry", "robot.xml", *arguments])
    assert leaving.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_task_is_exported_as_it_observes_with_its_model_beside(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["symmetry", "walker2d", "--export", "numpy"])
    assert capsys.readouterr().out.endswith("wrote mirror.py\nwrote test_mirror.py\nwrote mirror.mjb\n")
    walker, observed = augury.reflect("walker2d"), np.arange(17.0)
    expected = walker.observation(jnp.array(observed))
    np.testing.assert_array_equal(module(tmp_path / "mirror.py").mirror_observation(observed), expected)
    assert "The mirror of walker2d, for what it observes." in (tmp_path / "mirror.py").read_text()
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mirror.py"]
    assert subprocess.run(run, cwd=tmp_path, check=False).returncode == 0
    swapped = (tmp_path / "mirror.py").read_text().replace("{5: +1.0},  # 2 ", "{2: +1.0},  # 2 ")
    (tmp_path / "mirror.py").write_text(swapped)
    assert subprocess.run(run, cwd=tmp_path, check=False).returncode == 1


def test_the_terms_of_a_task_are_listed_as_it_observes_them(quadruped):
    task = quadruped.Walk()
    found = mirror_of(task.model, observed_by(task), reflection(task.model))
    values = np.random.default_rng(0).normal(size=len(task.table))
    expected = observation_map(reflection(task.model), task.table)(values)
    np.testing.assert_allclose(found.observation(values), expected)
    assert len(tolerances(found)) == 3  # the simulator agrees with every term


def test_a_term_that_no_test_can_measure_is_named(quadruped):
    @task_terms.term(task_terms.vectors("wind", "m/s"))
    def wind(moment):
        return np.zeros((len(moment.qpos), 3))

    class Windy(quadruped.Walk):
        model_file = MODEL
        observed = (task_terms.joint_offsets.skip(1), wind)

    with pytest.raises(UserError, match=r"observes 'wind', which a written test cannot measure: .* --terms"):
        observed_by(Windy())


def test_of_a_sensor_of_which_a_task_skips_numbers_no_map_is_written(quadruped):
    class Partly(quadruped.Walk):
        model_file = MODEL
        observed = (task_terms.joint_offsets, task_terms.sensor("gyro").skip(1))

    with pytest.raises(UserError, match="observes 'sensor gyro'"):
        observed_by(Partly())


def test_a_map_of_what_is_not_symmetric_is_not_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    heavier = MODEL.read_text().replace(
        '<joint name="front_left_shin"', '<joint name="front_left_shin" damping="99"'
    )
    (tmp_path / "robot.xml").write_text(heavier)
    with pytest.raises(SystemExit) as leaving:
        main(["symmetry", "robot.xml", "--export", "numpy"])
    assert leaving.value.code == 1
    assert "no map was written: see --tolerance" in capsys.readouterr().err
    assert not (tmp_path / "mirror.py").exists()


@pytest.mark.slow
def test_the_generated_tests_pass_and_fail_after_an_edit_by_hand(folder):
    main(["symmetry", "robot.xml", "--export", "torch", "--terms", "terms.toml"])
    code, printed = run_tests(folder)
    assert code == 0, printed
    assert "2 skipped" in printed  # a block of one's own, and a policy that was not given
    right = (folder / "mirror.py").read_text()
    for edit in (("{9: -1.0},  # 6", "{9: +1.0},  # 6"), ("{9: -1.0},  # 6", "{12: -1.0},  # 6")):
        assert edit[0] in right
        (folder / "mirror.py").write_text(right.replace(*edit))
        code, printed = run_tests(folder)
        assert code == 1
        assert "FAILED test_mirror.py::test_simulator_agrees[policy-joint_offsets]" in printed
        assert "policy, joint_offsets: number 6 of the mirror image is" in printed


def run_tests(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mirror.py"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def agreed(mirror, path, folder, form="numpy"):
    """The generated tests of an exported map, all of which the simulator passes."""
    out = folder / ("mirror.json" if form == "json" else "mirror.py")
    tests = module(export(mirror, form, out, Source(path))[1])
    all_pass((tests, simulator_of(tests)))
    return tests


def test_of_a_part_only_the_part_is_asked_about(tmp_path):
    model = mujoco.MjModel.from_xml_path(str(MODEL))
    part = augury.symmetry.reflection(model, only="front")
    tests = agreed(augury.symmetry.terms(model, ["command", "joint_offsets"], mirror=part), MODEL, tmp_path)
    assert tests.ACTIONS == [0, 1, 2, 3, 4, 5]
    assert [joint for joint in DEPTH_FIRST if joint.startswith("hind")] == tests.STILL
    assert "Not mirrored: hind_left_hip, hind_left_thigh" in tests.MIRROR.__doc__


ARMS = """
<mujoco model="arms">
  <compiler angle="radian"/>
  <worldbody>
    {arms}
  </worldbody>
  <actuator><motor name="left" joint="left"/><motor name="right" joint="right"/></actuator>
</mujoco>
"""
ARM = """
    <body name="{side}" pos="0 {y} 0.5">
      <joint name="{side}" axis="1 0 0" ref="0.3"/><geom type="capsule" fromto="0 0 0 0.1 0 0.3" size="0.02"/>
    </body>
"""


def test_a_plane_off_the_origin_and_joints_that_count_from_elsewhere_are_asked_about(tmp_path):
    path = tmp_path / "arms.xml"
    path.write_text(ARMS.format(arms=ARM.format(side="left", y=1.2) + ARM.format(side="right", y=0.6)))
    mirror = augury.symmetry.terms(path, ["joint_positions"], actions="controls")
    np.testing.assert_allclose(mirror.observation(np.zeros(2)), [0.6, 0.6])
    tests = agreed(mirror, path, tmp_path)
    assert tests.PLANE[1] == pytest.approx([0, 1.8, 0])


@pytest.mark.parametrize("form", ["numpy", "torch", "json"])
def test_numbers_that_mix_in_the_mirror_are_sums(tmp_path, form):
    """The trunk's own axes are oblique to the mirror plane, so that x and y of its vectors mix."""
    path, text = tmp_path / "oblique.xml", MODEL.read_text()
    for old, new in (
        ('name="trunk" pos="0 0 0.3"', 'name="trunk" pos="0 0 0.3" quat="0.8 0 0 0.6"'),
        ('<geom name="trunk"', '<body name="legs" quat="0.8 0 0 -0.6"><geom name="trunk"'),
        ("  </worldbody>", "</body></worldbody>"),
        ("0.27 1 0 0 0 ", "0.27 0.8 0 0 0.6 "),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    mirror = augury.symmetry.terms(path, ["projected_gravity", "base_angular_velocity", "positions"])
    assert (mirror.vectors["observation"].map.matrix[:2, :2] != 0).all()
    agreed(mirror, path, tmp_path, form)


def test_a_map_that_the_simulator_contradicts_is_not_written(tmp_path):
    right, path = mujoco.MjModel.from_xml_path(str(MODEL)), tmp_path / "bent.xml"
    joint = 'name="front_left_shin" class="shin"'
    path.write_text(MODEL.read_text().replace(joint, f'{joint} axis="1 0 0"', 1))
    bent = augury.symmetry.terms(path, ["joint_offsets"], mirror=augury.symmetry.reflection(right))
    message = r"the simulator does not agree with the map: front_(left|right)_shin is off by"
    with pytest.raises(UserError, match=message):
        export(bent, "numpy", tmp_path / "mirror.py", Source(path))
    assert not (tmp_path / "mirror.py").exists()


def test_a_map_is_not_written_without_its_tests(mirror, tmp_path):
    (tmp_path / "test_mirror.py").mkdir()
    (tmp_path / "mirror.py").write_text("old")
    with pytest.raises(UserError, match=r"cannot write .*test_mirror\.py: Is a directory"):
        exported(mirror, "numpy", tmp_path)
    assert (tmp_path / "mirror.py").read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mirror.py", "test_mirror.py"]
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*file/mirror\.py: "):
        exported(mirror, "numpy", tmp_path / "file")
