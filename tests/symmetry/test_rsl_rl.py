"""What is exported for rsl_rl is what its PPO calls: TensorDicts in, and twice as many rows out."""

from __future__ import annotations

import importlib.util

import pytest

import augury.symmetry
from augury.symmetry.export.writing import Source, export
from tests.quadruped import EXAMPLES

torch = pytest.importorskip("torch")
TensorDict = pytest.importorskip("tensordict").TensorDict  # which comes with rsl_rl

pytestmark = pytest.mark.slow  # rsl_rl and what it needs are slow to import; the how-to trains with it


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model = EXAMPLES / "quadruped.xml"
    groups = {"policy": ["command", "joint_offsets"], "critic": ["base_linear_velocity"]}
    path = tmp_path_factory.mktemp("rsl_rl") / "mirror.py"
    export(augury.symmetry.terms(model, groups), "rsl_rl", path, Source(model))
    spec = importlib.util.spec_from_file_location("mirror", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def observed(**sizes):
    return TensorDict({name: torch.randn(6, size) for name, size in sizes.items()}, batch_size=[6])


def test_mirror_images_follow_the_rows_that_they_are_of(exported):
    before, actions = observed(policy=15, critic=3), torch.randn(6, 12)
    both, acted = exported.augment(env=None, obs=before, actions=actions)
    assert both.batch_size == (12,)
    assert acted.shape == (12, 12)
    torch.testing.assert_close(both[:6].to_dict(), before.to_dict())
    torch.testing.assert_close(both["critic"][6:], before["critic"] * torch.tensor([1.0, -1.0, 1.0]))
    torch.testing.assert_close(both["policy"][6:], exported.mirror_observation(before["policy"], "policy"))
    torch.testing.assert_close(acted[6:], exported.mirror_action(actions))


def test_what_is_not_given_is_not_mirrored(exported):
    assert exported.augment(env=None, obs=None, actions=torch.zeros(2, 12))[0] is None
    assert exported.augment(env=None, obs=observed(policy=15), actions=None)[1] is None


def test_gradients_flow_through_mirrored_actions(exported):
    with torch.inference_mode():
        exported.mirror_action(torch.zeros(1, 12))
    actions = torch.zeros(1, 12, requires_grad=True)
    exported.augment(env=None, obs=None, actions=actions)[1][1, 0].backward()
    assert actions.grad[0].tolist() == [0, 0, 0, -1] + [0] * 8


def test_groups_and_sizes_that_were_not_described_are_named(exported):
    with pytest.raises(KeyError, match="the observation group 'images' has no map"):
        exported.augment(env=None, obs=observed(policy=15, images=4), actions=None)
    with pytest.raises(ValueError, match="'policy' has 14 numbers, but its map has 15"):
        exported.augment(env=None, obs=observed(policy=14), actions=None)
