"""Does a fleet learn what SB3 learns? TD3 on a Gymnasium environment, with the same steps and settings.

    python benchmarks/scores.py HalfCheetah-v5 --steps 300000 --agents 5 --out scores

SB3's agents train at the same time, each in a process of its own with one thread, and the fleet after them.
`--learner` asks for one of the two only. Returns go into OUT at every evaluation, so a run that is stopped
leaves what it had; `--learner none` prints the table of what lies there.
"""

from __future__ import annotations

import argparse
import multiprocessing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from augury.runs.statistics import iqm_curve

EPISODES = 10
"""Of an evaluation."""
RANDOM_STEPS = 10_000
SETTINGS: dict[str, Any] = {"batch_size": 256, "learning_rate": 1e-3}
"""Those of TD3's authors, in words that both understand."""


def train_fleet(name: str, agents: int, steps: int, every: int, out: Path) -> None:
    """Train a fleet of ours."""
    from augury import fleet

    arm = fleet.resolved(
        fleet.Arm(
            environment=f"gymnasium:{name}",
            algorithm="td3",
            agents=agents,
            steps=steps,
            random_steps=RANDOM_STEPS,
            collect=1,
            updates=1,
            hidden=(256, 256),
            exploration_noise=0.1,
            evaluate_every=every,
            evaluation_episodes=EPISODES,
            **SETTINGS,
        )
    )
    taken, returns = [], []

    def note(progress: fleet.Progress) -> None:
        if progress.evaluated is not None:
            taken.append(progress.steps)
            returns.append(progress.evaluated.returns)
            np.savez(out / "augury.npz", steps=taken, returns=np.stack(returns, 1))
            print(f"augury {progress.steps:9,d} {np.mean(returns[-1]):9.1f}", flush=True)

    fleet.train_fleet([arm], watch=note)


def train_sb3(name: str, seed: int, steps: int, every: int, out: Path) -> None:
    """Train one agent of SB3."""
    import torch
    from stable_baselines3 import TD3
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.noise import NormalActionNoise

    torch.set_num_threads(1)
    environment, evaluation = (Monitor(gymnasium.make(name)) for _ in range(2))
    (size,) = environment.action_space.shape or (0,)
    model = TD3(
        "MlpPolicy",
        environment,
        seed=seed,
        device="cpu",
        learning_starts=RANDOM_STEPS,
        train_freq=1,
        gradient_steps=1,
        action_noise=NormalActionNoise(np.zeros(size), np.full(size, 0.1)),
        policy_kwargs={"net_arch": [256, 256]},
        **SETTINGS,
    )
    taken, returns = [], []
    while model.num_timesteps < steps:
        model.learn(every, reset_num_timesteps=False)
        taken.append(model.num_timesteps)
        returns.append(evaluate_policy(model, evaluation, EPISODES)[0])
        np.savez(out / f"sb3-{seed}.npz", steps=taken, returns=np.array([returns]))
        print(f"sb3 {seed} {model.num_timesteps:9,d} {returns[-1]:9.1f}", flush=True)


def table(out: Path) -> None:
    """Interquartile means of what both have reached."""
    sides = {"augury": sorted(out.glob("augury.npz")), "SB3": sorted(out.glob("sb3-*.npz"))}
    curves = {}
    for side, files in sides.items():
        read = [np.load(file) for file in files]
        if read:
            shared = min(len(each["steps"]) for each in read)
            returns = np.concatenate([each["returns"][:, :shared] for each in read])
            curves[side] = read[0]["steps"][:shared], returns
    if not curves:
        raise SystemExit(f"{out} holds no returns")
    shared = min(len(steps) for steps, _ in curves.values())
    shown = np.unique(np.linspace(0, shared - 1, 10).round().astype(int))
    for side, (steps, returns) in curves.items():
        curve = iqm_curve(returns[:, shown])
        print(f"{side}, {len(returns)} agents")
        for place, value, low, high in zip(shown, *curve, strict=True):
            print(f"{steps[place]:10,d}{value:10.0f}   ({low:.0f} to {high:.0f})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("environment", help="Gymnasium's id")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--agents", type=int, default=5)
    parser.add_argument("--every", type=int, default=10_000, help="steps between evaluations")
    parser.add_argument("--learner", choices=("both", "augury", "sb3", "none"), default="both")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    asked = options.environment, options.steps, options.every, options.out
    if options.learner in ("both", "sb3"):
        name, *rest = asked
        context = multiprocessing.get_context("spawn")
        processes = [
            context.Process(target=train_sb3, args=(name, seed, *rest)) for seed in range(options.agents)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    if options.learner in ("both", "augury"):
        train_fleet(options.environment, options.agents, *asked[1:])
    table(options.out)


if __name__ == "__main__":
    main()
