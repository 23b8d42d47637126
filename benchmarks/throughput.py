"""How fast is a fleet? TD3 on Goal2D, 64×64 networks, batch 128+128, 32 updates per 64 steps.

    python benchmarks/throughput.py peers      Augury against SB3 and SBX, one process of theirs per core
    python benchmarks/throughput.py scaling    cost in agents, in m and in buffer size

Speeds are agent-steps per second after compilation, which is stated apart. The three competitors take turns
in one run, several times over, because a machine's speed drifts; compare the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

COLLECT, UPDATES, HIDDEN, BATCH = 64, 32, (64, 64), 128


def measure_fleet(
    agents: int, ratio: float = 1.0, buffer_size: int = 200_000, seconds: float = 5.0
) -> dict[str, float]:
    """Agent-steps per second of a fleet in this process."""
    import jax

    from augury.fleet import Arm, resolved
    from augury.fleet.jax_trainer import JaxTrainer

    arm = resolved(
        Arm(
            augmentation="goal2d/translate",
            ratio=ratio,
            agents=agents,
            batch_size=BATCH,
            random_steps=0,
            buffer_size=buffer_size,
            steps=buffer_size,
            collect=COLLECT,
            updates=UPDATES,
            hidden=HIDDEN,
        )
    )
    fleet = JaxTrainer([arm])
    state = jax.block_until_ready(fleet.init())
    start = time.perf_counter()
    state = fleet.advance(state, 0, 1)
    compilation = time.perf_counter() - start
    start = time.perf_counter()
    state = fleet.advance(state, 1, 4)
    rounds = max(1, int(seconds / ((time.perf_counter() - start) / 4)))
    start = time.perf_counter()
    state = fleet.advance(state, 5, rounds)
    elapsed = time.perf_counter() - start
    memory = sum(leaf.nbytes for leaf in jax.tree.leaves(state) if hasattr(leaf, "nbytes"))
    return {
        "agents": agents,
        "m": ratio,
        "buffer": buffer_size,
        "agent-steps/s": agents * rounds * arm.collect / elapsed,
        "compilation s": compilation,
        "state MB/agent": memory / agents / 1e6,
    }


def measure_peer(library: str, core: int, steps: int) -> float:
    """Steps per second of one agent of SB3 or SBX, confined to one core."""
    os.sched_setaffinity(0, {core})
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import gymnasium
    import numpy as np
    import torch
    from stable_baselines3.common.noise import NormalActionNoise

    torch.set_num_threads(1)
    model = import_module(library).TD3(
        "MlpPolicy",
        gymnasium.make("augury:augury/Goal2D-v0"),
        batch_size=2 * BATCH,
        train_freq=COLLECT,
        gradient_steps=UPDATES,
        learning_starts=256,
        buffer_size=200_000,
        action_noise=NormalActionNoise(np.zeros(2), 0.1 * np.ones(2)),
        policy_kwargs={"net_arch": list(HIDDEN)},
        device="cpu",
    )
    model.learn(64 * 20)  # compiles and fills the buffer
    start = time.perf_counter()
    model.learn(steps, reset_num_timesteps=False)
    return steps / (time.perf_counter() - start)


def together(commands: Sequence[list[str]]) -> list[float]:
    """Run processes at the same time; each prints one number last."""
    script = [sys.executable, str(Path(__file__).resolve())]
    running = [
        subprocess.Popen([*script, *command], stdout=subprocess.PIPE, text=True) for command in commands
    ]
    return [float(process.communicate()[0].split()[-1]) for process in running]


def peers(repeats: int) -> None:
    """Take turns; print medians and ratios."""
    cores = sorted(os.sched_getaffinity(0))
    speeds: dict[str, list[float]] = {"augury": [], "sbx": [], "stable_baselines3": []}
    for _ in range(repeats):
        speeds["augury"].append(together([["fleet", "--agents", str(5 * len(cores))]])[0])
        for library, steps in (("sbx", 64 * 250), ("stable_baselines3", 64 * 80)):
            commands = [
                ["peer", "--library", library, "--core", str(core), "--steps", str(steps)] for core in cores
            ]
            speeds[library].append(sum(together(commands)))
        print({name: round(values[-1]) for name, values in speeds.items()}, flush=True)
    ratios = {
        name: statistics.median(a / b for a, b in zip(speeds["augury"], speeds[name], strict=True))
        for name in ("sbx", "stable_baselines3")
    }
    print(f"{len(cores)} cores, median of {repeats}; agent-steps/s in total")
    for name, values in speeds.items():
        ratio = f"augury is {ratios[name]:.2f} times as fast" if name in ratios else ""
        print(f"{name:18s}{statistics.median(values):10,.0f}   {ratio}")


def scaling(agents: Sequence[int], save: Path | None) -> None:
    """Vary one thing at a time."""
    middle = agents[len(agents) // 2]
    cases: list[dict[str, Any]] = [{"agents": count} for count in agents]
    cases += [{"agents": middle, "ratio": ratio} for ratio in (16, 256)]
    cases += [{"agents": middle, "buffer_size": size} for size in (50_000, 1_000_000)]
    rows = []
    for case in cases:
        rows.append(measure_fleet(**case))
        if len(rows) == 1:
            print("".join(f"{name:>16s}" for name in rows[0]))
        print("".join(f"{value:16,.1f}" for value in rows[-1].values()), flush=True)
        if save is not None:
            save.write_text(json.dumps(rows, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("peers", "scaling", "fleet", "peer"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 2, 10, 20])
    parser.add_argument("--library", choices=("sbx", "stable_baselines3"))
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--steps", type=int, default=64 * 100)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    if options.what == "peer":
        print(measure_peer(options.library, options.core, options.steps))
        return
    if options.what == "peers":
        peers(options.repeats)
        return
    from augury.fleet import use_all_cores

    use_all_cores()
    if options.what == "scaling":
        scaling(options.agents, options.save)
    else:
        print(measure_fleet(options.agents[0])["agent-steps/s"])


if __name__ == "__main__":
    main()
