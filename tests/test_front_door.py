"""What `import augury` gives, and what it costs."""

import subprocess
import sys

import gymnasium
import pytest

import augury
from augury import gymnasium_ids
from augury.envs.goal2d import HORIZON
from augury.envs.mujoco.locomotion import TASKS
from augury.envs.panda.tasks import PANDA_TASKS

HEAVY = {
    "jax",
    "flax",
    "mujoco",
    "scipy",
    "matplotlib",
    "torch",
    "stable_baselines3",
    "pybullet",
    "ray",
    "warp",
}


def test_importing_loads_nothing_heavy():
    code = "import sys, augury; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "augury" in loaded.split()
    assert not HEAVY & set(loaded.split())


@pytest.mark.parametrize("name", augury.__all__)
def test_every_name_is_there_and_documented(name):
    found = getattr(augury, name)
    assert name == "__version__" or found.__doc__
    assert name in dir(augury)


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        augury.trian  # noqa: B018


def test_verify_is_a_function_and_a_package():
    from augury.verify import verify

    assert augury.verify("goal2d/rotate", samples=20) == verify("goal2d/rotate", samples=20)


def test_gymnasium_knows_every_task():
    assert set(gymnasium_ids.ROBOTS) == set(TASKS)
    assert set(gymnasium_ids.PANDA_TASKS) == set(PANDA_TASKS)
    known = {
        name: spec.max_episode_steps
        for spec in gymnasium.registry.values()
        if (name := spec.kwargs.get("robot") or spec.kwargs.get("task")) and spec.namespace == "augury"
    }
    assert known == {task.name: task.horizon for task in (*TASKS.values(), *PANDA_TASKS.values())}
    goal2d = [gymnasium.spec(f"augury/{name}-v0") for name in ("Goal2D", "Goal2DQuadrant")]
    assert [spec.max_episode_steps for spec in goal2d] == [HORIZON] * 2
