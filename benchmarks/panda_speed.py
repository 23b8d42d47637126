"""Environment steps a second and core on Push: ours against panda-gym's, single and in Gymnasium's vectors.

python benchmarks/panda_speed.py [--counts 1 16 64]

A second is one of processor time, of all threads and of AsyncVectorEnv's workers too: so what else runs on a
machine matters little, and waiting costs nobody anything. All take turns in one run, under uniform actions,
each in one thread; the best turn counts. Needs Linux, for the workers' clocks.
"""

from __future__ import annotations

import importlib
import multiprocessing
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import tyro
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from augury.envs.panda.tasks import PANDA_TASKS

SECONDS = 2.0
"""Of processor time, that a turn takes."""
SAME_STEP = AutoresetMode.SAME_STEP


class Contestant(NamedTuple):
    """One that steps."""

    engine: Any
    step: Callable[[Any], Any]
    environments: int = 1
    workers: tuple[int, ...] = ()
    """Processes beside this one that work for it."""

    def clock(self) -> float:
        """Seconds that processors worked for it."""
        return time.process_time() + sum(time.clock_gettime((~pid << 3) | 2) for pid in self.workers)


def main(counts: tuple[int, ...] = (1, 16, 64), turns: int = 3) -> None:
    """Print a table of steps a second and core, and how many times as fast ours is."""
    multiprocessing.set_forkserver_preload(["panda_gym"])
    print("Environment steps per second of processor time (ours are so many times as fast)")
    print(f"{'environments':>12}" + "".join(f"{name:>18}" for name in contestants(0)))
    for count in counts:
        asked = {name: make() for name, make in contestants(count).items()}
        speeds = best(asked, turns)
        cells = (f"{speed:,.0f} ({speeds['ours'] / speed:.1f}×)" for speed in speeds.values())
        print(f"{count:12d}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
        for contestant in asked.values():
            contestant.engine.close()


def contestants(count: int) -> dict[str, Callable[[], Contestant]]:
    """Who takes part, and how each is made."""
    return {
        "ours": lambda: vector(PANDA_TASKS["panda-push"].vector(count, threads=1)),
        "ours, coarse": lambda: vector(PANDA_TASKS["panda-push-coarse"].vector(count, threads=1)),
        "panda-gym": single,
        "Sync": lambda: vector(SyncVectorEnv([panda_gym] * count, autoreset_mode=SAME_STEP)),
        "Async": lambda: vector(
            AsyncVectorEnv([panda_gym] * count, context="forkserver", autoreset_mode=SAME_STEP)
        ),
    }


def vector(engine: Any) -> Contestant:
    """Many environments, that start again by themselves."""
    engine.reset(seed=0)
    workers = tuple(process.pid for process in getattr(engine, "processes", ()))
    return Contestant(engine, engine.step, engine.num_envs, workers)


def single() -> Contestant:
    """One of panda-gym's alone, started again when an episode is over."""
    env = panda_gym()
    env.reset(seed=0)

    def step(actions: Any) -> None:
        _, _, terminated, truncated, _ = env.step(actions[0])
        if terminated or truncated:
            env.reset()

    return Contestant(env, step)


def panda_gym() -> gymnasium.Env[Any, Any]:
    """panda-gym's own environment, made where it runs."""
    importlib.import_module("panda_gym")
    return gymnasium.make("PandaPush-v3")


def best(asked: dict[str, Contestant], turns: int) -> dict[str, float]:
    """Steps a second of each, the best of its turns."""
    for contestant in asked.values():
        speed(contestant, SECONDS / 10)
    rounds = [{name: speed(contestant, SECONDS) for name, contestant in asked.items()} for _ in range(turns)]
    return {name: max(taken[name] for taken in rounds) for name in asked}


def speed(contestant: Contestant, seconds: float) -> float:
    """Of one of them."""
    actions = np.random.default_rng(0).uniform(-1, 1, (20, contestant.environments, 3)).astype(np.float32)
    began, done = contestant.clock(), 0
    while contestant.clock() - began < seconds:
        contestant.step(actions[done % 20])
        done += 1
    return float(done * contestant.environments / (contestant.clock() - began))


if __name__ == "__main__":
    tyro.cli(main)
