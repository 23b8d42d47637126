"""Are the families learned, how soon and how fast? Each with its default knobs and settings.

    python benchmarks/families.py [--agents 10] [--only pendulum maze] [--sb3]

Prints the IQM of evaluation episodes at the start and at the end, the steps at which it first is half of the
final one, and agent-steps per second of one core, evaluations included and compilation not. With --sb3 only
the speed of one core with SB3's TD3, with the families' settings on Gymnasium's Pendulum.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

from augury import envs
from augury.envs.families import FAMILIES
from augury.envs.families.base import TRAINING
from augury.fleet import Arm, resolved, train_fleet
from augury.fleet.training import Progress
from augury.report import interquartile_mean

VARIANTS = ("family/point(discrete=True)", "family/point(reward='dense')")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="families whose name contains one of these")
    parser.add_argument("--sb3", action="store_true")
    options = parser.parse_args()
    if options.sb3:
        print(f"SB3's TD3: {_sb3_speed():,.0f} steps/s of a core, without augmentation or evaluation")
        return
    jax.config.update("jax_platforms", "cpu")
    print("task                          measure   first  last  half at  agent-steps/s of a core", flush=True)
    for name in (*FAMILIES, *VARIANTS):
        if not options.only or any(one in name for one in options.only):
            print(_line(name, options.agents), flush=True)


def _line(name: str, agents: int) -> str:
    arm = resolved(Arm(environment=name, agents=agents))
    stood: list[tuple[int, float]] = []

    def watch(standing: Progress) -> None:
        if standing.evaluated is not None:
            stood.append((standing.steps, time.process_time()))

    (result,) = train_fleet([arm], watch=watch)
    measure = envs.make(name).measure
    curve = np.array([float(interquartile_mean(scores)) for scores in result.curves(measure).T])
    half = result.evaluations["steps"][np.argmax(curve >= curve[-1] / 2)]
    # From the second evaluation on: before it the program was compiled, and actions were random.
    (first, began), (last, ended) = stood[1], stood[-1]
    speed = agents * (last - first) / (ended - began)
    return f"{name:29} {measure:8} {curve[0]:6.2f} {curve[-1]:6.2f} {half:7,} {speed:10,.0f}"


def _sb3_speed(steps: int = 6_000) -> float:
    """Steps per second of processor time, once updates have begun; a batch has 2b rows, as with α = 1."""
    import torch
    from stable_baselines3 import TD3
    from stable_baselines3.common.callbacks import BaseCallback

    class Clock(BaseCallback):
        began = 0.0

        def _on_step(self) -> bool:
            if self.num_timesteps == TRAINING["random_steps"]:
                self.began = time.process_time()
            return True

    torch.set_num_threads(1)
    clock = Clock()
    TD3(
        "MlpPolicy",
        "Pendulum-v1",
        learning_starts=TRAINING["random_steps"],
        train_freq=TRAINING["collect"],
        gradient_steps=TRAINING["updates"],
        batch_size=2 * TRAINING["batch_size"],
        policy_kwargs={"net_arch": list(TRAINING["hidden"])},
        device="cpu",
    ).learn(steps, callback=clock)
    return (steps - TRAINING["random_steps"]) / (time.process_time() - clock.began)


if __name__ == "__main__":
    main()
