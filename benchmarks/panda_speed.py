"""Environment steps a second on Push: ours against panda-gym, single and in Gymnasium's vector environments.

python benchmarks/panda_speed.py [--counts 1 16 64]

All take turns in one run, on the same cores, under uniform actions. The last table is per core: one thread
each, in the processor's time.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import tyro
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from augury.envs.panda import PANDA_TASKS

SECONDS = 3.0
Clock = Callable[[], float]


def main(counts: tuple[int, ...] = (1, 16, 64), turns: int = 3) -> None:
    """Print tables of steps a second, and how many times as fast ours is."""
    importlib.import_module("panda_gym")
    single = best({"panda-gym": one_panda_gym()}, turns)["panda-gym"]
    print(f"panda-gym, a single environment: {single:,.0f} steps/s")
    for count in counts:
        engines = {
            "ours": PANDA_TASKS["panda-push"].vector(count),
            "ours, coarse": PANDA_TASKS["panda-push-coarse"].vector(count),
            "Sync": SyncVectorEnv([panda_gym] * count, autoreset_mode=AutoresetMode.SAME_STEP),
            "Async": AsyncVectorEnv(
                [panda_gym] * count, context="forkserver", autoreset_mode=AutoresetMode.SAME_STEP
            ),
        }
        speeds = best(engines, turns)
        cells = (
            f"{name} {speed:,.0f} ({speeds['ours'] / speed:.1f}×)"
            for name, speed in [*speeds.items(), ("single", single)]
        )
        print(f"{count:4d} environments: " + "   ".join(cells), flush=True)
        for engine in engines.values():
            engine.close()
    print("per core, processor time:")
    reference = one_panda_gym()
    for count in counts:
        engines = {
            "panda-gym": reference,
            "ours": PANDA_TASKS["panda-push"].vector(count, threads=1),
            "ours, coarse": PANDA_TASKS["panda-push-coarse"].vector(count, threads=1),
        }
        speeds = best(engines, turns, time.process_time)
        print(
            f"{count:4d} environments: "
            + "   ".join(
                f"{name} {speed:,.0f} ({speed / speeds['panda-gym']:.1f}×)" for name, speed in speeds.items()
            ),
            flush=True,
        )


def panda_gym() -> gymnasium.Env[Any, Any]:
    """panda-gym's own environment, made where it runs."""
    importlib.import_module("panda_gym")
    return gymnasium.make("PandaPush-v3")


def one_panda_gym() -> Any:
    """A single one, that starts again by itself."""
    return SyncVectorEnv([panda_gym], autoreset_mode=AutoresetMode.SAME_STEP)


def best(engines: dict[str, Any], turns: int, clock: Clock = time.perf_counter) -> dict[str, float]:
    """Steps a second of each, the best of its turns."""
    for engine in engines.values():
        engine.reset(seed=0)
        speed(engine, clock, 0.2)
    return {
        name: max(values)
        for name, values in zip(
            engines,
            zip(
                *([speed(engine, clock, SECONDS) for engine in engines.values()] for _ in range(turns)),
                strict=True,
            ),
            strict=True,
        )
    }


def speed(engine: Any, clock: Clock, seconds: float) -> float:
    """Of one engine."""
    actions = np.random.default_rng(0).uniform(-1, 1, (20, *engine.action_space.shape)).astype(np.float32)
    began, done = clock(), 0
    while clock() - began < seconds:
        engine.step(actions[done % 20])
        done += 1
    return float(done * engine.num_envs / (clock() - began))


if __name__ == "__main__":
    tyro.cli(main)
