"""RL Zoo trains, resumes and plays agents whose hyperparameter file names this buffer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stable_baselines3.common.save_util import load_from_pkl

from augury.sb3 import AugmentedReplayBuffer

pytest.importorskip(
    "rl_zoo3",
    reason="rl_zoo3 asks for python-dateutil<3 and pillow<12, and constraints.txt pins later ones: "
    "`make test-zoo` runs this in an environment of its own",
)
pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "rl_zoo.yml"
OWN = '''
import math

def mirror(generator, transition):
    """Left becomes right, in NumPy and in place; an action is a distance and an angle."""
    for seen in (transition.observation, transition.next_observation):
        seen[::2] *= -1
    transition.action[1] = (math.pi - transition.action[1]) % (2 * math.pi)
    return transition
'''


def zoo(program, folder, *words):
    """What a program of RL Zoo prints, in a process of its own."""
    common = ("--algo", "td3", "--env", "augury/Goal2D-v0", "--gym-packages", "augury.sb3.zoo")
    done = subprocess.run(
        [sys.executable, "-m", f"rl_zoo3.{program}", *common, "-f", "logs", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(EXAMPLE.parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("augmentation", ["goal2d/translate", "own:mirror"])
def test_the_hyperparameter_file_names_the_buffer_and_the_augmentation(tmp_path, monkeypatch, augmentation):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    settings = EXAMPLE.read_text().replace("goal2d/translate", augmentation)
    (tmp_path / "td3.yml").write_text(settings.replace("learning_starts: 1000", "learning_starts: 100"))
    few = ("--conf-file", "td3.yml", "-n", "150", "--eval-freq", "-1")
    said = zoo("train", tmp_path, *few, "--save-replay-buffer")
    assert "AugmentedReplayBuffer" in said
    run = tmp_path / "logs" / "td3" / "augury-Goal2D-v0_1"
    buffer = load_from_pkl(run / "replay_buffer.pkl")
    assert isinstance(buffer, AugmentedReplayBuffer)
    assert buffer.augmented_size == 4 * 150
    assert buffer.drawn_augmented == buffer.drawn_observed > 0
    zoo("train", tmp_path, *few, "-i", str(run / "augury-Goal2D-v0.zip"))
    zoo("enjoy", tmp_path, "-n", "20", "--no-render")
