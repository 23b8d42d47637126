"""Beside its peers: TD3 on the same task, with equal steps and updates, in one run on one machine.

    python benchmarks/peers.py pendulum --agents 1 10
    python benchmarks/peers.py hopper --agents 1 --steps 2048      two cores
    python benchmarks/peers.py hopper --agents 1 50 300            a GPU

| peer | what it is |
|---|---|
| `augury` | a fleet |
| `rejax` | rejax's TD3, and `jax.vmap` over seeds for many agents, as its documentation does |
| `pure-jax` | `benchmarks/pure_jax.py`: a run in one file, as PureJaxRL writes them, and `jax.vmap` |
| `sbx`, `sb3` | one agent, on the same environment behind a compiled vector environment |

`pendulum` is gymnax's Pendulum-v1 as in rejax's configuration for TD3: one environment, 64×64 networks, batch
100. `hopper` is Brax's hopper as in its benchmark, with 256×256 networks: 128 environments, batch 256. After
every step of all environments there is one update for each of them; the policy learns at every second
update. Observations are not normalised. Nobody evaluates.

Peers take turns, each in a process of its own, because a machine's speed drifts: compare the ratios. Speeds
count all agents together, after compilation, which is stated apart: only the first turn compiles, since Brax
takes a minute; with `--programs FOLDER` compiled programs are kept there for the next run. A peer that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

from augury.errors import UserError

Measured = dict[str, float]


class Work(NamedTuple):
    """What everyone does."""

    environment: str
    in_rejax: str
    environments: int
    batch_size: int
    hidden: tuple[int, ...]
    random_steps: int
    """Before the first update: few, so that speeds are those of learning."""
    steps: int
    """Of an agent."""
    alone: int
    """Steps that are timed of a library that trains one agent in a process, and takes long."""

    @property
    def updates(self) -> int:
        return self.steps - self.random_steps


WORK = {
    "pendulum": Work("gymnax:Pendulum-v1", "Pendulum-v1", 1, 100, (64, 64), 200, 10_000, 1_000),
    "hopper": Work("brax:hopper", "brax/hopper", 128, 256, (256, 256), 512, 128 * 128, 4 * 128),
}


def measure_augury(work: Work, agents: int) -> Measured:
    """A fleet on all devices."""
    from augury import fleet
    from augury.fleet.jax_trainer import JaxTrainer

    fleet.use_all_cores()
    arm = fleet.resolved(
        fleet.Arm(
            environment=work.environment,
            algorithm="td3",
            agents=agents,
            environments=work.environments,
            steps=work.steps,
            random_steps=work.random_steps,
            collect=1,
            updates=1,
            batch_size=work.batch_size,
            buffer_size=work.steps,
            hidden=work.hidden,
            evaluate_every=work.steps,
            evaluation_episodes=1,
        )
    )
    start = time.perf_counter()
    trainer = JaxTrainer([arm])
    state = trainer.advance(trainer.init(), 0, 0)  # no round: compilation alone
    compiled = time.perf_counter()
    trainer.advance(state, 0, arm.rounds)
    return _speeds(work.steps * agents, work.updates * agents, start, compiled)


def measure_rejax(work: Work, agents: int) -> Measured:
    """rejax, without its evaluations."""
    import rejax

    algorithm = rejax.TD3.create(
        env=work.in_rejax,
        num_envs=work.environments,
        num_epochs=work.environments,
        batch_size=work.batch_size,
        buffer_size=work.steps,
        fill_buffer=work.random_steps - 1,  # it learns once it has more
        total_timesteps=work.steps,
        eval_freq=work.steps,
        policy_delay=2,
        skip_initial_evaluation=True,
    )
    algorithm = algorithm.replace(
        actor=algorithm.actor.clone(hidden_layer_sizes=work.hidden),
        critic=algorithm.critic.clone(hidden_layer_sizes=work.hidden),
        eval_callback=lambda *_: (),
    )
    return _in_one_call(algorithm.train, work, agents)


def measure_pure_jax(work: Work, agents: int) -> Measured:
    """The one-file run."""
    from pure_jax import training

    from augury.envs import make

    environment: Any = make(work.environment)
    run = training(
        environment,
        environments=work.environments,
        steps=work.steps,
        random_steps=work.random_steps,
        batch_size=work.batch_size,
        hidden=work.hidden,
    )
    return _in_one_call(run, work, agents)


def measure_sb3(work: Work, agents: int, library: str = "stable_baselines3") -> Measured:
    """One agent of SB3, or of what has its interface."""
    del agents
    from sb3_vector import InJax

    start = time.perf_counter()
    model = import_module(library).TD3(
        "MlpPolicy",
        InJax(work.environment, work.environments),
        batch_size=work.batch_size,
        buffer_size=work.steps,
        learning_starts=work.random_steps,
        train_freq=1,
        gradient_steps=work.environments,
        policy_delay=2,
        policy_kwargs={"net_arch": list(work.hidden)},
    )
    model.learn(work.random_steps + 2 * work.environments)
    compiled = time.perf_counter()
    model.learn(work.alone, reset_num_timesteps=False)
    return _speeds(work.alone, work.alone, start, compiled)


def measure_sbx(work: Work, agents: int) -> Measured:
    """One agent of SBX."""
    return measure_sb3(work, agents, "sbx")


MEASURES: dict[str, Callable[[Work, int], Measured]] = {
    "augury": measure_augury,
    "rejax": measure_rejax,
    "pure-jax": measure_pure_jax,
    "sbx": measure_sbx,
    "sb3": measure_sb3,
}
ALONE = ("sbx", "sb3")
"""Peers that train one agent in a process."""


def _in_one_call(run: Callable[[Any], Any], work: Work, agents: int) -> Measured:
    """A run that is one compiled function of a key."""
    import jax

    keys = jax.random.split(jax.random.PRNGKey(0), agents)
    start = time.perf_counter()
    program = jax.jit(jax.vmap(run)).lower(keys).compile()
    compiled = time.perf_counter()
    jax.block_until_ready(program(keys))
    return _speeds(work.steps * agents, work.updates * agents, start, compiled)


def _speeds(steps: int, updates: int, start: float, compiled: float) -> Measured:
    seconds = time.perf_counter() - compiled
    return {"steps/s": steps / seconds, "updates/s": updates / seconds, "compilation s": compiled - start}


def measured(peer: str, task: str, agents: int, steps: int, programs: str) -> Measured | str:
    """What a peer does in a process of its own, or why it does not; its programs are kept in a folder."""
    asked = [sys.executable, __file__, task, "--agents", str(agents), "--steps", str(steps)]
    kept = os.environ | {"JAX_COMPILATION_CACHE_DIR": programs}
    done = subprocess.run([*asked, "--measure", peer], env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"it ended with code {done.returncode}"
    result: Measured = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(
    task: str, counts: list[int], steps: int, peers: list[str], turns: int, programs: str | None
) -> None:
    """Let peers take turns; print medians and ratios."""
    found: dict[tuple[str, int], list[Measured]] = {}
    missing: set[str] = set()
    with nullcontext(programs) if programs else tempfile.TemporaryDirectory() as programs:
        for turn, (peer, agents) in product(range(turns), list(_cases(peers, counts))):
            if peer in missing:
                continue
            result = measured(peer, task, agents, steps, programs)
            if isinstance(result, str):
                print(f"{task}: {peer} with {agents} agents is left out: {result}", flush=True)
                if "No module" in result:
                    missing.add(peer)
                continue
            found.setdefault((peer, agents), []).append(result)
            speed = f"{result['updates/s']:,.0f} updates/s"
            print(f"{task}, turn {turn + 1}: {peer} with {agents} agents, {speed}", flush=True)
    print(f"\n{task}: {WORK[task]._replace(steps=steps)}")
    print(f"{'':12s}{'agents':>8s}{'steps/s':>14s}{'updates/s':>14s}{'compilation s':>16s}  augury is")
    for (peer, agents), results in found.items():
        steps_s, updates_s = (
            statistics.median(result[name] for result in results) for name in ("steps/s", "updates/s")
        )
        numbers = f"{steps_s:14,.0f}{updates_s:14,.0f}{results[0]['compilation s']:16.1f}"
        print(f"{peer:12s}{agents:8d}{numbers}  {_ratios(found, peer, agents, counts)}", flush=True)


def _cases(peers: list[str], counts: list[int]) -> Iterator[tuple[str, int]]:
    for agents in counts:
        yield from ((peer, agents) for peer in peers if peer not in ALONE)
    yield from ((peer, 1) for peer in peers if peer in ALONE)


def _ratios(found: dict[tuple[str, int], list[Measured]], peer: str, agents: int, counts: list[int]) -> str:
    """How much faster a fleet updates: of the same size, or of each size where a peer trains one agent."""
    if peer == "augury":
        return ""
    theirs = found[peer, agents]
    texts = []
    for count in counts if peer in ALONE else [agents]:
        pairs = zip(found.get(("augury", count), []), theirs, strict=False)
        if ratios := [ours["updates/s"] / other["updates/s"] for ours, other in pairs]:
            texts.append(f"{statistics.median(ratios):.2f} × with {count}")
    return ", ".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="+", choices=list(WORK))
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--steps", type=int, help="of an agent; by default 10,000 and 16,384")
    parser.add_argument("--peers", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--programs", help="a folder that keeps compiled programs; by default none does")
    parser.add_argument("--measure", choices=list(MEASURES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    for task in options.tasks:
        work = WORK[task]
        work = work._replace(steps=options.steps or work.steps)
        if options.measure is None:
            compare(task, options.agents, work.steps, options.peers, options.turns, options.programs)
            continue
        try:
            print(json.dumps(MEASURES[options.measure](work, options.agents[0])))
        except ImportError as error:
            sys.exit(f"{error}: pip install 'augury[dev,sb3]'")
        except UserError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
