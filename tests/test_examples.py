"""The examples run, at a small size; what they show at full size stands in their own docstrings."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from augury import Transition

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
TASK = "quadruped"  # no program: see tests/envs/mujoco/test_task.py
SMALL = {
    "goal2d_translate": ["--steps", "600"],
    "cartpole_mirror": ["--steps", "300"],
    "own_environment": ["--steps", "120"],
    "goal_relabelling": ["--steps", "1500", "--bits", "5"],
}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem != TASK], ids=lambda path: path.stem)
def test_an_example_runs(path, capsys):
    result = load(path).main(SMALL[path.stem])
    assert "after" in capsys.readouterr().out
    if path.stem == "goal_relabelling":
        assert result > 0.8  # five bits are learnt at once


def test_the_examples_own_augmentation_agrees_with_its_environment():
    example = load(next(path for path in EXAMPLES if path.stem == "own_environment"))
    env, generator = example.Puck(), np.random.default_rng(0)
    for seed in range(20):
        start, _ = env.reset(seed=seed)
        for _ in range(3):
            action = env.action_space.sample()
            end, reward, *_ = env.step(action)
            observed = Transition(start, action, reward, end, False, False, {})
            turned = example.turned(generator, observed)
            env.state = np.asarray(turned.observation, np.float32)
            following, same, *_ = env.step(turned.action)
            np.testing.assert_allclose(following, turned.next_observation, atol=1e-5)
            assert same == pytest.approx(turned.reward, abs=1e-5)
            env.state = start = end
