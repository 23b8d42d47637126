"""How fast a fleet learns with physics on the GPU, and where its time goes.

python benchmarks/warp_fleet.py [panda-push-warp] [--agents 64 400 800] [--updates 1] [--update-ratio 1]

DDPG with translate-goal, m = 1, the paper's settings, 8 environments an agent. Beside the fleet's speed stand
what its simulation alone would allow, and its updates alone: they take turns on the GPU.
"""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.85")  # the rest is for Warp's worlds

import jax
import jax.numpy as jnp
import tyro

from augury.envs import make
from augury.fleet import Arm, resolved
from augury.fleet.trainers import trainer_for

SECONDS = 8.0
STEPS = 600_000


def main(
    environment: Annotated[str, tyro.conf.Positional] = "panda-push-warp",
    agents: tuple[int, ...] = (64, 400, 800),
    environments: int = 8,
    updates: int = 1,
    collect: int = 2,
    update_ratio: float = 1.0,
) -> None:
    """Print a table of agent-steps a second."""
    print(f"{jax.local_devices()[0].device_kind}; agent-steps/s of {environment}")
    print(
        f"{'agents':>8}{'fleet':>10}{'simulation':>12}{'learning':>10}{'evaluation':>12}{'compiled in':>12}{'GiB':>7}"
    )
    for count in agents:
        arm = resolved(
            Arm(
                environment=environment,
                augmentation="panda/translate-goal",
                agents=count,
                environments=environments,
                update_ratio=update_ratio,
                updates=updates,
                collect=collect,
                steps=STEPS,
            )
        )
        began = time.monotonic()
        trainer: Any = trainer_for([arm])
        fleet = trainer.init()
        first = trainer.first_update_round
        fleet = trainer.advance(fleet, 0, first + 5)
        compiled = time.monotonic() - began
        rounds, done, began = 2, 0, time.monotonic()
        while (taken := time.monotonic() - began) < SECONDS:
            fleet = trainer.advance(fleet, first + 5 + done, rounds)
            done += rounds
            rounds = max(rounds, int(done / (time.monotonic() - began)))
        per_round = arm.round_steps * count
        speed = per_round * done / taken
        trainer.evaluate(fleet, first + 5 + done)
        began = time.monotonic()
        trainer.evaluate(fleet, first + 5 + done)
        evaluation = time.monotonic() - began
        simulated = simulation_speed(make(environment), count * environments)
        learned = per_round / (per_round / speed - per_round / simulated)
        memory = (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**30
        print(
            f"{count:8d}{speed:10,.0f}{simulated:12,.0f}{learned:10,.0f}{evaluation:10.1f} s{compiled:10.0f} s{memory:7.0f}",
            flush=True,
        )
        del fleet, trainer


def simulation_speed(environment: Any, worlds: int) -> float:
    """Environment steps a second with random actions, and nothing else."""
    low, high = jnp.asarray(environment.action_low), jnp.asarray(environment.action_high)

    @jax.jit
    def steps(states: Any, key: Any) -> Any:
        def step(states: Any, key: Any) -> Any:
            action = jax.random.uniform(key, (worlds, len(low)), minval=low, maxval=high)
            states, reward, _ = jax.vmap(environment.step)(jax.random.split(key, worlds), states, action)
            return states, reward.sum()

        return jax.lax.scan(step, states, jax.random.split(key, 10))

    states = jax.vmap(environment.reset)(jax.random.split(jax.random.key(0), worlds))
    states, _ = jax.block_until_ready(steps(states, jax.random.key(1)))
    began, done = time.monotonic(), 0
    while (taken := time.monotonic() - began) < SECONDS / 4:
        states, _ = jax.block_until_ready(steps(states, jax.random.key(2 + done)))
        done += 10
    return worlds * done / taken


if __name__ == "__main__":
    tyro.cli(main)
