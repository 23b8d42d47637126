"""Observations of named terms are mirrored: in any joint order, for arrays and tensors, without JAX."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import augury.symmetry
from augury.errors import UserError
from augury.symmetry.observed.listing import described
from tests.quadruped import EXAMPLES

MODEL = EXAMPLES / "quadruped.xml"
FEET = [f"{end}_{side}_foot" for end in ("front", "hind") for side in ("left", "right")]
BREADTH_FIRST = [
    f"{end}_{side}_{part}"
    for part in ("hip", "thigh", "shin")
    for end in ("front", "hind")
    for side in ("left", "right")
]


def mirror(*terms, **settings):
    return augury.symmetry.terms(MODEL, list(terms), **settings)


def image(given, size):
    """The mirror image of 1, 2, 3, …: signs and places in one."""
    return given.observation(np.arange(1.0, size + 1)).tolist()


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("base_linear_velocity", [1, -2, 3]),
        ("base_angular_velocity", [-1, 2, -3]),
        ("projected_gravity", [1, -2, 3]),
        ("command", [1, -2, -3]),
        ("base_height", [1]),
        ("joint_offsets", [-4, 5, 6, -1, 2, 3, -10, 11, 12, -7, 8, 9]),
        ("previous_action", [-4, 5, 6, -1, 2, 3, -10, 11, 12, -7, 8, 9]),
        ({"kind": "sensor", "sensor": "gyro"}, [-1, 2, -3]),
        ({"kind": "gait_phase", "feet": FEET}, [2, 1, 4, 3]),
        ({"kind": "gait_phase", "feet": FEET[:2] * 2}, [2, 1, 4, 3]),
        ({"kind": "contacts", "feet": FEET, "history": 2}, [2, 1, 4, 3, 6, 5, 8, 7]),
        ("gait_clock", [-1, -2]),
        ({"kind": "height_scan", "x": 2, "y": 3}, [5, 6, 3, 4, 1, 2]),
        ({"kind": "height_scan", "x": 2, "y": 3, "fastest": "y"}, [3, 2, 1, 6, 5, 4]),
        ({"kind": "custom", "signs": [1, -1, -1], "exchange": [0, 2, 1]}, [1, -3, -2]),
        ({"kind": "custom", "signs": [-1, 1]}, [-1, 2]),
    ],
)
def test_each_kind_of_term_has_its_mirror(term, expected):
    assert image(mirror(term), len(expected)) == expected


def test_joints_are_mirrored_in_the_order_in_which_they_are_listed():
    given = mirror("joint_velocities", joints=BREADTH_FIRST)
    assert image(given, 12) == [-2, -1, -4, -3, 6, 5, 8, 7, 10, 9, 12, 11]
    assert given.action(np.arange(1.0, 13)).tolist() == [-2, -1, -4, -3, 6, 5, 8, 7, 10, 9, 12, 11]


def test_the_image_of_a_joint_may_be_in_another_term():
    left, right = (
        {"name": side, "kind": "joint_offsets", "joints": [f"front_{side}_hip", f"front_{side}_shin"]}
        for side in ("left", "right")
    )
    assert image(mirror(left, right), 4) == [-3, 4, -1, 2]
    with pytest.raises(UserError, match=r"mirror image of front_left_hip angle from default .* not observed"):
        mirror(left)


def test_a_history_is_mirrored_frame_by_frame():
    terms = ["command", {"kind": "gait_phase", "feet": FEET[:2]}]
    stack = augury.symmetry.terms(MODEL, {"policy": {"terms": terms, "history": 2}})
    assert image(stack, 10) == [1, -2, -3, 5, 4, 6, -7, -8, 10, 9]


def test_a_default_pose_that_is_not_symmetric_gives_an_offset(tmp_path):
    lopsided = tmp_path / "lopsided.xml"
    lopsided.write_text(MODEL.read_text().replace("1 0 0 0  0 0.8 -1.6", "1 0 0 0  0.1 0.9 -1.6"))
    hips = ["front_left_hip", "front_right_hip", "front_left_thigh", "front_right_thigh"]
    given = augury.symmetry.terms(lopsided, [{"kind": "joint_offsets", "joints": hips}])
    np.testing.assert_allclose(given.observation(np.zeros(4)), [-0.1, -0.1, -0.1, 0.1])


def test_tensors_keep_their_type_and_arrays_theirs():
    given = mirror("command", {"kind": "gait_phase", "feet": FEET})
    rows = np.random.default_rng(0).normal(size=(5, 3, 7)).astype(np.float32)
    seen = given.observation(rows)
    assert seen.dtype == np.float32
    tensors = given.observation(torch.tensor(rows, requires_grad=True))
    assert tensors.dtype == torch.float32
    np.testing.assert_array_equal(tensors.detach().numpy(), seen)
    assert given.observation(torch.zeros(7, dtype=torch.float16)).dtype == torch.float16
    assert given.observation(torch.zeros(2, 7, device="meta")).device.type == "meta"
    np.testing.assert_array_equal(given.observation(seen), rows)


def test_a_map_that_is_first_used_in_inference_serves_in_training():
    given = mirror("command")
    with torch.inference_mode():
        given.observation(torch.zeros(3))
    values = torch.zeros(3, requires_grad=True)
    given.observation(values).sum().backward()
    assert values.grad.tolist() == [1, -1, -1]


def test_groups_are_named():
    given = augury.symmetry.terms(MODEL, {"policy": ["command"], "critic": ["command", "base_height"]})
    assert given.observation(np.ones(4), "critic").tolist() == [1, -1, -1, 1]
    with pytest.raises(UserError, match="say which observation group is meant: policy, critic"):
        given.observation(np.ones(3))
    with pytest.raises(UserError, match="unknown observation group 'polcy': did you mean 'policy'"):
        given.observation(np.ones(3), "polcy")


@pytest.mark.parametrize(
    ("terms", "settings", "message"),
    [
        (
            ["joint_offsets"],
            {"joints": ["front_left_hpi"]},
            "no hinge or slide 'front_left_hpi': did you mean",
        ),
        (["joint_offsets"], {"joints": ["front_left_hip"] * 2}, "'front_left_hip' is listed twice"),
        (["joint_ofsets"], {}, "unknown kind of term 'joint_ofsets': did you mean 'joint_offsets'"),
        ([{"name": "x"}], {}, "has no 'kind'"),
        (["command", "command"], {}, "lists 'command' twice: give one of them a name"),
        ([{"kind": "contacts", "foot": ["a"]}], {}, "contacts: .*'foot'.*did you mean 'feet'"),
        ([{"kind": "contacts"}], {}, "contacts: 'feet' is missing"),
        ([{"kind": "contacts", "feet": ["front_left_fot"]}], {}, "no body, geom or site .*front_left_foot"),
        ([{"kind": "contacts", "feet": FEET[:1]}], {}, "not its mirror image, front_right_shin"),
        ([{"kind": "contacts", "feet": FEET[:3]}], {}, "not its mirror image, hind_right_shin"),
        ([{"kind": "contacts", "feet": [*FEET[:2], FEET[0]]}], {}, "some feet more often than others"),
        ([{"kind": "custom", "signs": [1, 0.5]}], {}, "signs are 1 or -1"),
        ([{"kind": "custom", "signs": [1, 1, 1], "exchange": [1, 2, 0]}], {}, "mirrored twice, number 0"),
        ([{"kind": "custom", "signs": [1, 1], "exchange": [0, 0]}], {}, "the numbers 0 to 1 once each"),
        ([{"kind": "sensor", "sensor": "giro"}], {}, "did you mean 'gyro'"),
        (
            [{"kind": "height_scan", "x": 0, "y": 1}],
            {},
            "height_scan: 'x' must be a whole number of at least 1",
        ),
        (["command"], {"actions": "torques"}, "unknown kind of term 'torques'"),
        (["command"], {"sizes": {"observation": 4}}, "has 4 numbers, but its terms describe 3: command 3"),
        (["command"], {"sizes": {"action": 8}}, "'action' has 8 numbers, but its terms describe 12"),
        (["command"], {"sizes": {"actions": 8}}, "no group 'actions': did you mean 'action'"),
    ],
)
def test_what_is_wrong_is_named(terms, settings, message):
    with pytest.raises(UserError, match=message):
        mirror(*terms, **settings)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"terms": ["command"], "history": 0}, r"in \[observations\], 'history' must be .* of at least 1"),
        ({"term": ["command"]}, r"in \[observations\], unknown key 'term': did you mean 'terms'"),
        ([7], "item 1 of a value of 'observations' must be a string or a table, not a whole number"),
    ],
)
def test_what_is_wrong_in_a_group_is_named(group, message):
    with pytest.raises(UserError, match=f"^terms: {message}"):
        described({"observations": {"policy": group}})


def test_a_model_that_is_not_symmetric_is_refused_and_one_that_almost_is_warned_of(tmp_path):
    path = tmp_path / "lame.xml"
    hip = 'name="front_left_hip" class="hip"'
    almost, lame = (pytest.warns, UserWarning), (pytest.raises, UserError)
    for armature, (expected, kind) in ((0.0101, almost), (0.02, lame)):
        path.write_text(MODEL.read_text().replace(hip, f'{hip} armature="{armature}"', 1))
        with expected(kind, match="joint armature: front_left_hip has"):
            augury.symmetry.terms(path, ["command"])
        augury.symmetry.terms(path, ["command"], tolerance=0.6)


def test_rows_of_another_size_are_refused():
    with pytest.raises(UserError, match="'observation' has 4 numbers, but its terms describe 3"):
        mirror("command").observation(np.ones((2, 4)))


def test_files_say_the_same(tmp_path):
    path = tmp_path / "terms.toml"
    path.write_text('actions = "controls"\n[observations]\npolicy = ["command", "base_height"]\n')
    given = augury.symmetry.terms(MODEL, path)
    assert image(given, 4) == [1, -2, -3, 4]
    path.write_text("observations = [")
    with pytest.raises(UserError, match=r"terms\.toml is not TOML"):
        augury.symmetry.terms(MODEL, path)
    with pytest.raises(UserError, match=r"cannot read .*nowhere\.toml"):
        augury.symmetry.terms(MODEL, tmp_path / "nowhere.toml")


@pytest.mark.slow
def test_tensors_are_mirrored_in_a_process_without_jax():
    script = (
        "import sys, torch, augury.symmetry\n"
        f"mirror = augury.symmetry.terms({str(MODEL)!r}, ['command'])\n"
        "print(mirror.observation(torch.tensor([1.0, 2.0, 3.0])).tolist(), 'jax' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[1.0, -2.0, -3.0] False"
