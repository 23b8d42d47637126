"""How long do intervals take? IQM learning curves of six arms, 50 agents × 30 evaluations, 2,000 resamples.

    OPENBLAS_NUM_THREADS=1 taskset -c 0 python benchmarks/intervals.py [--turns 5]

On one core. Memory is what is in use at the most beyond the scores, for those agents and for a thousand.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import tyro

from augury.runs.scores import Scores
from augury.runs.statistics import iqm_curve

ARMS, AGENTS, EVALUATIONS, RESAMPLES = 6, 50, 30, 2_000


def arms(agents: int) -> list[Scores]:
    generator = np.random.default_rng(0)
    return [generator.random((agents, EVALUATIONS)).astype(np.float32) for _ in range(ARMS)]


def seconds(curves: list[Scores]) -> float:
    began = time.perf_counter()
    for scores in curves:
        iqm_curve(scores, resamples=RESAMPLES)
    return time.perf_counter() - began


def megabytes(scores: Scores) -> float:
    tracemalloc.start()
    iqm_curve(scores, resamples=RESAMPLES)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def main(turns: int = 5) -> None:
    """Print seconds and megabytes."""
    taken = sorted(seconds(arms(AGENTS)) for _ in range(turns))
    print(f"{ARMS} arms of {AGENTS} agents × {EVALUATIONS} evaluations, {RESAMPLES:,} resamples:")
    print(f"{taken[0]:.2f} s at best, {taken[-1]:.2f} s at worst of {turns}")
    for agents in (AGENTS, 1_000):
        print(f"{agents:5,d} agents: {megabytes(arms(agents)[0]):.1f} MB")


if __name__ == "__main__":
    tyro.cli(main)
