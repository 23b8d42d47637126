"""The README's code runs as it is printed."""

import re
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stable_baselines3 import TD3

import augury
from augury import Transition
from augury.envs import goal2d
from augury.fleet import Arm, train

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.slow
def test_the_snippet_that_trains_several_arms(monkeypatch, capsys):
    def small(arms):
        return train([replace(arm, agents=2, steps=512, random_steps=64, hidden=(8,)) for arm in arms])

    monkeypatch.setattr(augury, "train", small)
    monkeypatch.setattr(augury, "use_all_cores", lambda: None)  # the tests have chosen their devices
    exec(BLOCKS[0], {})
    assert re.findall(r"translate m=(\d)", capsys.readouterr().out) == ["1", "2", "4", "8"]


def test_the_snippet_that_gives_sb3_an_augmented_buffer(monkeypatch):
    learn = TD3.learn
    monkeypatch.setattr(TD3, "learn", lambda model, steps: learn(model, min(steps, 150)))
    names: dict = {}
    exec(BLOCKS[1], names)
    buffer = names["model"].replay_buffer
    assert (buffer.size(), buffer.augmented_size) == (150, 600)
    assert buffer.drawn_observed == buffer.drawn_augmented == 50 * 256  # SB3 waits for 100 steps


def test_the_snippet_that_proves_a_mirror():
    exec(BLOCKS[2], {})


@pytest.mark.slow
def test_the_snippet_that_writes_an_augmentation():
    names: dict = {}
    exec(BLOCKS[3], names)
    mirror = names["mirror"]
    observation, action = jnp.array([0.2, -0.7, 0.9, 0.1]), jnp.array([0.8, 2.5])
    following, reward, terminated = goal2d.step(observation, action)
    seen = Transition(observation, action, reward, following, terminated, terminated, {})
    mirrored = mirror(jax.random.key(0), seen)
    expected, _, _ = goal2d.step(mirrored.observation, mirrored.action)
    np.testing.assert_allclose(mirrored.next_observation, expected, atol=1e-6)
    twice = mirror(jax.random.key(0), mirrored)
    np.testing.assert_allclose(twice.action, action, atol=1e-6)
    arm = Arm(augmentation=mirror, agents=1, steps=512, random_steps=64, hidden=(8,))
    assert train([arm])[0].evaluations["augmented_coverage"][0, -1] > 0
