"""Does the drop-in learn as the fleet does? TD3 on Goal2D with the paper's settings, by SB3 and by Augury.

    python benchmarks/drop_in.py [--seeds 5] [--steps 80000] [--save docs/drop_in]

SB3's runs share the cores, one process each. Prints the IQM success of evaluation episodes, draws the curves
and keeps the scores: `docs/drop_in.png` and `docs/drop_in.npz`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]

ARMS: dict[str, dict[str, Any]] = {
    "no augmentation": {},
    "translate m = α = 1": {"augmentation": "goal2d/translate", "ratio": 1, "update_ratio": 1},
}
FROM_ZERO = " from zero biases"
"""Augury's networks start with biases at zero, PyTorch's do not: a third kind of run tells what that does."""
EVERY, EPISODES = 10_000, 80


def sb3_run(steps: int, arm: str, from_zero: bool, seed: int) -> list[float]:
    """Success of one SB3 agent at every evaluation."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import gymnasium
    import torch
    from stable_baselines3 import TD3
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.noise import NormalActionNoise

    from augury.sb3 import AugmentedReplayBuffer

    torch.set_num_threads(1)
    success: list[float] = []

    class Evaluate(BaseCallback):
        """Play episodes without exploration."""

        def _on_step(self) -> bool:
            if self.num_timesteps % EVERY == 0:
                env = gymnasium.make("augury:augury/Goal2D-v0")
                reached = [
                    play(env, self.model, 10_000 * (seed + 1) + episode) for episode in range(EPISODES)
                ]
                success.append(float(np.mean(reached)))
            return True

    model = TD3(
        "MlpPolicy",
        gymnasium.make("augury:augury/Goal2D-v0"),
        batch_size=128,
        train_freq=64,
        gradient_steps=32,
        learning_starts=10_000,
        learning_rate=1e-3,
        buffer_size=steps,
        action_noise=NormalActionNoise(np.zeros(2), 0.1 * np.ones(2)),
        policy_kwargs={"net_arch": [64, 64]},
        replay_buffer_class=AugmentedReplayBuffer,
        replay_buffer_kwargs=ARMS[arm],
        seed=seed,
        device="cpu",
    )
    if from_zero:
        with torch.no_grad():
            for name, parameter in model.policy.named_parameters():
                if name.endswith("bias"):
                    parameter.zero_()
    model.learn(steps, callback=Evaluate())
    return success


def play(env: Any, model: Any, seed: int) -> bool:
    """Whether an episode succeeds."""
    observation, info = env.reset(seed=seed)
    over = False
    while not over:
        action, _ = model.predict(observation, deterministic=True)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return bool(info["is_success"])


def draw(scores: Mapping[str, Scores], path: Path) -> None:
    """IQM and 95% belts, SB3 beside the fleet: the arm is the colour, the implementation the line."""
    from matplotlib.figure import Figure

    from augury.report.figures import COLOURS
    from augury.runs.statistics import iqm_curve

    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    panels = {"SB3": "SB3 as it is", f"SB3{FROM_ZERO}": "SB3 from zero biases, as the fleet"}
    for axes, (ours, title) in zip(figure.subplots(1, 2, sharey=True), panels.items(), strict=True):
        for implementation, style in ((ours, "--"), ("fleet", "-")):
            for arm, colour in zip(ARMS, COLOURS, strict=False):
                values = scores[f"{implementation}, {arm}"]
                thousands = EVERY / 1000 * np.arange(1, values.shape[1] + 1)
                curve = iqm_curve(values)
                label = f"{implementation.split()[0]}, {arm} ({len(values)} agents)"
                axes.plot(thousands, curve.middle, style, color=colour, label=label)
                axes.fill_between(thousands, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        axes.set(title=title, xlabel="environment steps (thousands)", ylim=(-0.02, 1.02), xlim=(0, None))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    figure.axes[0].set_ylabel("success rate (IQM, 95% bootstrap belt)")
    figure.savefig(path, dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=80_000)
    parser.add_argument("--save", type=Path, default=Path("docs/drop_in"))
    parser.add_argument("--only", choices=("sb3", "fleet", "drawing"), help="one part of the work")
    options = parser.parse_args()
    kept = options.save.with_suffix(".npz")
    scores: dict[str, Scores] = {}
    if kept.exists() and options.only:
        with np.load(kept) as before:
            scores.update(before)
    if options.only in (None, "sb3"):
        scores |= sb3_scores(options.seeds, options.steps)
        np.savez_compressed(kept, **scores)  # type: ignore[arg-type]
    if options.only in (None, "fleet"):
        scores |= fleet_scores(options.seeds, options.steps)
        np.savez_compressed(kept, **scores)  # type: ignore[arg-type]
    report(scores)
    draw(scores, options.save.with_suffix(".png"))


def sb3_scores(seeds: int, steps: int) -> dict[str, Scores]:
    """Success of SB3's agents, (agents, evaluations) for each arm."""
    with multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0)), maxtasksperchild=1) as pool:
        running = {
            f"SB3{FROM_ZERO if from_zero else ''}, {arm}": pool.map_async(
                partial(sb3_run, steps, arm, from_zero), range(seeds), chunksize=1
            )
            for from_zero in (False, True)
            for arm in ARMS
        }
        return {name: np.array(runs.get()) for name, runs in running.items()}


def fleet_scores(seeds: int, steps: int) -> dict[str, Scores]:
    """The same for fleets."""
    from augury.fleet import Arm, train, use_all_cores

    use_all_cores()
    arms = {
        f"fleet, {arm}": Arm(
            agents=seeds, steps=steps, evaluate_every=EVERY, evaluation_episodes=EPISODES, **settings
        )
        for arm, settings in ARMS.items()
    }
    return {name: train([arm])[0].curves() for name, arm in arms.items()}


def report(scores: Mapping[str, Scores]) -> None:
    """IQM and belt at every evaluation."""
    from augury.runs.statistics import iqm_curve

    for name, values in scores.items():
        curve = iqm_curve(values)
        cells = [f"{m:.2f} [{a:.2f}, {b:.2f}]" for m, a, b in zip(*curve, strict=True)]
        print(f"{name:28s}", "  ".join(cells))


if __name__ == "__main__":
    main()
