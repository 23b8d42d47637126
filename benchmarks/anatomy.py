"""Where does a round's time go? Rounds with one part after the other left out, on the CPU's cores.

    python benchmarks/anatomy.py

Milliseconds per round of one agent (64 steps, 32 updates) on one core; the differences are the parts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from augury.agents import TD3, Hyperparameters
from augury.agents.deterministic import DeterministicLearner
from augury.fleet import Arm, resolved, use_all_cores
from augury.fleet.devices import mesh_for
from augury.fleet.jax_trainer import JaxTrainer, compiled
from augury.fleet.program.base import Program
from augury.replay import Batch
from augury.transition import Array

AGENTS, ROUNDS = 10, 24


@dataclass(frozen=True)
class Reads(TD3):
    """Looks at every number of a batch and learns nothing."""

    def update(
        self, noise: Array, learner: DeterministicLearner, batch: Batch, hyper: Hyperparameters, count: Array
    ) -> DeterministicLearner:
        total = sum(leaf.astype(jnp.float32).sum() for leaf in jax.tree.leaves((batch.transitions, noise)))
        return learner._replace(actor=jax.tree.map(lambda leaf: leaf + 1e-20 * total, learner.actor))


def milliseconds(fleet: JaxTrainer, program: Program) -> float:
    """One agent's round on one core, the best of three."""
    mesh = mesh_for(AGENTS)
    functions = compiled(program, mesh)
    agents = functions.init(fleet.settings)
    times = []
    for turn in range(4):  # the first compiles
        began = time.perf_counter()
        rounds = jnp.int32(ROUNDS if turn else 1)
        agents = jax.block_until_ready(functions.advance(agents, fleet.settings, jnp.int32(1), rounds))
        times.append(time.perf_counter() - began)
    return min(times[1:]) / ROUNDS / (AGENTS / mesh.size) * 1e3


def product_rate() -> float:
    """GFLOP/s of the product that dominates: 64×64 by 64×256, on one core."""
    weights, columns = jnp.full((64, 64), 1e-3), jnp.ones((64, 256))
    many = jax.jit(lambda x: jax.lax.fori_loop(0, 5_000, lambda _, x: weights @ x, x))
    jax.block_until_ready(many(columns))
    began = time.perf_counter()
    jax.block_until_ready(many(columns))
    return 5_000 * 2 * 64 * 64 * 256 / (time.perf_counter() - began) / 1e9


def update_flops(rows: int, width: int = 64) -> float:
    """Operations of the products in one TD3 update on Goal2D; the policy's count half, being every second."""

    def layers(inputs: int, outputs: int) -> tuple[float, float]:
        first, middle, last = inputs * width, width * width, width * outputs
        return first + middle + last, middle + last  # forward (and weights' gradient); inputs' gradient

    critic, critic_back = layers(6, 1)
    actor, actor_back = layers(4, 2)
    critics = 2 * (critic + critic + critic + critic_back)  # target, online, gradients
    policy = actor + critic + critic_back + 2 * width + actor + actor_back
    return 2 * rows * (actor + critics + policy / 2)


def main() -> None:
    use_all_cores()
    arm = resolved(Arm(augmentation="goal2d/translate", agents=AGENTS, random_steps=0))
    fleet = JaxTrainer([arm])
    program = fleet.program
    whole = milliseconds(fleet, program)
    collecting = milliseconds(fleet, replace(program, random_steps=10**9))
    drawing = milliseconds(fleet, replace(program, algorithm=Reads(2, (64, 64)))) - collecting
    narrow = milliseconds(fleet, replace(program, algorithm=TD3(2, (8, 8)))) - collecting - drawing
    rate = product_rate()
    products = arm.updates * update_flops(2 * arm.batch_size) / (rate * 1e9) * 1e3
    rows = {
        "whole round": whole,
        "collect and store 64 steps": collecting,
        "draw and augment 32 batches": drawing,
        "products, at the core's rate for them": products,
        "updates with 8×8 networks: Adam, targets, overhead": narrow,
        "rest: activations, narrow first and last layers": whole - collecting - drawing - products - narrow,
    }
    for name, value in rows.items():
        print(f"{name:52s}{value:8.2f} ms {value / whole:6.0%}")
    print(f"one core multiplies 64×64 by 64×256 at {rate:.0f} GFLOP/s")


if __name__ == "__main__":
    main()
