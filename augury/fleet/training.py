"""The host's part of training: call the compiled program, evaluate, checkpoint, report.

until the last round:
    advance to the next evaluation, in calls of a few seconds
    evaluate every agent
    save a checkpoint now and then
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from augury.errors import UserError
from augury.fleet import checkpoint as checkpoints
from augury.fleet.arm import Arm
from augury.fleet.checkpoint import Checkpoint
from augury.fleet.devices import record
from augury.fleet.fleet import Fleet, fleets_of
from augury.fleet.halves import Halves, fleet_for
from augury.fleet.host_fleet import HostFleet
from augury.fleet.program.base import Measured
from augury.runs.arrays import Arrays
from augury.runs.interrupts import deferred_interrupt
from augury.runs.results import Result

CALL_SECONDS = 3.0
"""Length of one call of the compiled program: how often progress is shown and an interrupt noticed."""
HOST_CALL_SECONDS = 0.2
"""The same where environments run on the host: nothing is copied, so an interrupt can be noticed sooner."""
CALL_SECONDS_PER_BYTE = 2e-8
"""Calls are longer where every call copies large buffers, as it does on a CPU."""
CHECKPOINT_SHARE = 0.05
"""Largest share of the time that checkpoints may take."""


class Progress(NamedTuple):
    """Where a fleet stands."""

    steps: int
    """Of each agent."""
    speed: float
    """Steps per second of all agents together, since the last report, evaluations not counted."""
    evaluated: Measured | None
    """The newest measurement, where one was just made."""


Watcher = Callable[[Progress], None]


class Interrupted(Exception):  # noqa: N818
    """Training stopped on request; its checkpoint is saved, if it has one."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"stopped after {steps} steps")
        self.steps = steps


def train(arms: Sequence[Arm], watch: Watcher | None = None) -> list[Result]:
    """Train several arms, those that share a program in one fleet; results in the order of the arms."""
    arms = [arm.resolved() for arm in arms]
    results: dict[int, Result] = {}
    for places in fleets_of(arms):
        outcome = train_fleet([arms[place] for place in places], watch=watch)
        results |= dict(zip(places, outcome, strict=True))
    return [results[place] for place in range(len(arms))]


def train_fleet(
    arms: Sequence[Arm],
    *,
    checkpoint: Path | None = None,
    checkpoint_every: float = 60.0,
    watch: Watcher | None = None,
) -> list[Result]:
    """Train arms that share a program; from `checkpoint` on, if that file exists.

    A run that was killed and goes on from its checkpoint ends with the same results, bit for bit.
    """
    arms = [arm.resolved() for arm in arms]
    if len(fleets_of(arms)) != 1:
        raise UserError("these arms cannot train in one fleet: their programs or schedules differ")
    began = saved = time.monotonic()
    asked = [arm.described() for arm in arms]
    fleet, run = _start(arms, checkpoint, asked)
    last, due_rounds = arms[0].rounds, arms[0].evaluation_rounds
    round_steps = fleet.program.round_steps
    all_steps = fleet.program.collect * fleet.program.replay.environments * fleet.agents
    # Where updates begin rounds get slower: a call as long as those before would last too long.
    slower = fleet.program.first_update_round
    stops = sorted({*due_rounds, slower})
    call_seconds = _call_seconds(fleet, run)
    saving, length = 0.0, 1  # the first call compiles: it is short
    unreported, training = 0, 0.0

    with closing(fleet), deferred_interrupt() as interrupted:
        while run.rounds < last:
            stop = next(rounds for rounds in stops if rounds > run.rounds)
            length = min(length, stop - run.rounds)
            called = time.monotonic()
            agents = fleet.advance(run.agents, run.rounds, length)
            run = run._replace(agents=agents, rounds=run.rounds + length)
            took = time.monotonic() - called
            unreported, training = unreported + length, training + took

            measured = None
            if run.rounds in due_rounds:
                measured = fleet.evaluate(run.agents, run.rounds)
                run = run._replace(history=_appended(run.history, measured))
            if watch is not None and (measured is not None or training > CALL_SECONDS / 2):
                speed = all_steps * unreported / training
                watch(Progress(run.rounds * round_steps, speed, measured))
                unreported, training = 0, 0.0
            length = 1 if run.rounds == slower else max(1, int(call_seconds * length / took))

            now = time.monotonic()
            worth_saving = now - saved > max(checkpoint_every, saving / CHECKPOINT_SHARE)
            if run.rounds < last and checkpoint is not None and (worth_saving or interrupted()):
                elapsed = run.seconds + now - began
                checkpoints.save(checkpoint, run._replace(seconds=elapsed), fleet, asked)
                saved = time.monotonic()
                saving = saved - now
            if run.rounds < last and interrupted():
                raise Interrupted(run.rounds * round_steps)

    seconds = run.seconds + time.monotonic() - began
    return _results(arms, asked, run.history, fleet.actors(run.agents), seconds)


def _call_seconds(fleet: Fleet | Halves, run: Checkpoint) -> float:
    if isinstance(fleet, HostFleet | Halves):
        return HOST_CALL_SECONDS
    copied = run.agents.buffers.observed.nbytes / fleet.devices if fleet.copies_buffers else 0
    return CALL_SECONDS + CALL_SECONDS_PER_BYTE * copied


def _start(
    arms: Sequence[Arm], checkpoint: Path | None, asked: list[dict[str, Any]]
) -> tuple[Fleet | Halves, Checkpoint]:
    """The fleet, and where its run begins or goes on."""
    if checkpoint is not None and checkpoint.exists():
        fleet = fleet_for(arms, checkpoints.parts_in(checkpoint))
        return fleet, checkpoints.load(checkpoint, fleet, asked)
    fleet = fleet_for(arms)
    return fleet, Checkpoint(fleet.init(), rounds=0, history={}, seconds=0.0)


def _appended(history: Arrays, measured: Measured) -> Arrays:
    """The history with one more column."""
    return {
        name: np.concatenate([history.get(name, values[:, :0]), values], 1)
        for name, values in ((name, values[:, None]) for name, values in measured._asdict().items())
    }


def _results(
    arms: Sequence[Arm], asked: list[dict[str, Any]], history: Arrays, actors: Any, seconds: float
) -> list[Result]:
    """Cut the fleet's history and its policies into its arms."""
    about, results, first = record(), [], 0
    for arm, settings in zip(arms, asked, strict=True):
        place = slice(first, first := first + arm.agents)
        own, learnt = jax.tree.map(operator.itemgetter(place), (history, actors))
        results.append(Result(settings, _evaluations(arm, own), seconds, about, learnt))
    return results


def _evaluations(arm: Arm, history: Arrays) -> Arrays:
    """The arrays of `evaluations.npz`, from what was measured of an arm's agents."""
    rounds = np.array(arm.evaluation_rounds)
    steps = rounds * arm.round_steps
    transitions = np.rint(steps * arm.policy_data).astype(steps.dtype)
    updates = np.asarray(arm.program().updates_after(jnp.asarray(rounds)))
    updates_made = np.diff(updates, prepend=0)
    replay_ratio = np.tile(updates_made / np.diff(transitions, prepend=0), (arm.agents, 1))
    # None generated: no ratio. Infinitely many: no copy is used twice, so the ratio is 0.
    infinite = np.isinf(history["augmented_transitions"])
    generated = np.diff(np.where(infinite, 0, history["augmented_transitions"]), prepend=0)
    beta = np.divide(
        updates_made, generated, out=np.full(generated.shape, np.nan), where=~infinite & (generated > 0)
    )
    derived = {"augmented_transitions", "finite"}
    return {
        "steps": steps,
        "updates": updates,
        "transitions": transitions,
        "seeds": np.array(arm.seeds),
        "replay_ratio": replay_ratio.astype(np.float32),
        "augmented_replay_ratio": np.where(infinite, 0, beta).astype(np.float32),
        "diverged": ~np.minimum.accumulate(history["finite"], 1),
        **{name: values for name, values in history.items() if name not in derived},
    }
