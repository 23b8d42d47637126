"""What does augmentation cost an SB3 run? TD3 on Goal2D, against SB3's own buffer.

    python benchmarks/sb3.py [--turns 9]

The buffers take turns in one process, because a machine's speed drifts: the ratio inside a turn counts.
`burst` is the paper's setting for Goal2D: 64×64 networks, b = 128, 32 updates after every 64 steps. `single`
is SB3's own: 400×300, b = 256, one update after every step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import TD3
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import NormalActionNoise

from augury import Transition
from augury.augmentations import from_numpy
from augury.sb3 import AugmentedReplayBuffer

SETTINGS: dict[str, dict[str, Any]] = {
    "burst": {"hidden": [64, 64], "batch": 128, "train_freq": 64, "gradient_steps": 32, "steps": 64 * 12},
    "single": {"hidden": [400, 300], "batch": 256, "train_freq": 1, "gradient_steps": 1, "steps": 150},
}
FILLED = 10_000


def mirrored(generator: np.random.Generator, transition: Transition) -> Transition:
    """A NumPy function as a user would write it."""
    flip = np.array([-1, 1, -1, 1], np.float32)
    radius, angle = transition.action
    return transition._replace(
        observation=flip * transition.observation,
        action=np.array([radius, (np.pi - angle) % (2 * np.pi)]),  # type: ignore[arg-type]
        next_observation=flip * transition.next_observation,
    )


CASES: dict[str, dict[str, Any]] = {
    "plain buffer": {},
    "m = 1, α = 0": {"ratio": 1, "update_ratio": 0},
    "m = 16, α = 0": {"ratio": 16, "update_ratio": 0},
    "plain buffer, batch 2b": {"batches": 2},
    "m = 1, α = 1": {"ratio": 1, "update_ratio": 1},
    "m = 16, α = 1": {"ratio": 16, "update_ratio": 1},
    "NumPy function, m = 1, α = 0": {"ratio": 1, "update_ratio": 0, "augmentation": from_numpy(mirrored)},
    "NumPy function, m = 1, α = 1": {"ratio": 1, "update_ratio": 1, "augmentation": from_numpy(mirrored)},
}


def model(setting: dict[str, Any], case: dict[str, Any]) -> TD3:
    """A run whose buffer is filled and whose programs are compiled."""
    kwargs = {"augmentation": "goal2d/translate"} | case
    batches = kwargs.pop("batches", 1)
    run = TD3(
        "MlpPolicy",
        gymnasium.make("augury:augury/Goal2D-v0"),
        batch_size=batches * setting["batch"],
        buffer_size=100_000,
        learning_starts=FILLED,
        train_freq=setting["train_freq"],
        gradient_steps=setting["gradient_steps"],
        action_noise=NormalActionNoise(np.zeros(2), 0.1 * np.ones(2)),
        policy_kwargs={"net_arch": setting["hidden"]},
        replay_buffer_class=AugmentedReplayBuffer if "ratio" in case else ReplayBuffer,
        replay_buffer_kwargs=kwargs if "ratio" in case else {},
        device="cpu",
        seed=0,
    )
    run.learn(FILLED + setting["steps"])
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=9)
    options = parser.parse_args()
    for name, setting in SETTINGS.items():
        runs = {case: model(setting, kwargs) for case, kwargs in CASES.items()}
        seconds: dict[str, list[float]] = {case: [] for case in CASES}
        for _ in range(options.turns):
            for case, run in runs.items():
                start = time.perf_counter()
                run.learn(setting["steps"], reset_num_timesteps=False)
                seconds[case].append(time.perf_counter() - start)
        print(f"{name}: median over {options.turns} turns of the wall time relative to a plain buffer's")
        for case, times in seconds.items():
            double = CASES[case].get("update_ratio") == 1
            reference = "plain buffer, batch 2b" if double else "plain buffer"
            ratio = statistics.median(a / b for a, b in zip(times, seconds[reference], strict=True))
            speed = setting["steps"] / statistics.median(times)
            print(f"  {case:30s}{ratio:6.2f} × {reference:24s}{speed:8.0f} steps/s", flush=True)


if __name__ == "__main__":
    main()
