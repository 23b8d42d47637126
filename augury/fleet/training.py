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

from augury import envs
from augury.errors import UserError
from augury.fleet.arm import Arm
from augury.fleet.building import fleets_of, program_of
from augury.fleet.checks import resolved
from augury.fleet.devices import record
from augury.fleet.memory import check_memory
from augury.fleet.pace import Pace
from augury.fleet.program.base import Measured
from augury.fleet.trainer import CALL_SECONDS, Trainer
from augury.fleet.trainers import trainer_for
from augury.runs import checkpoints
from augury.runs.arrays import Arrays
from augury.runs.checkpoints import Checkpoint
from augury.runs.interrupts import deferred_interrupt
from augury.runs.results import RESTARTS, Result

CHECKPOINT_SHARE = 0.05
"""Largest share of the time that checkpoints may take."""
FIRST_CHECKPOINT = 5.0
"""Seconds to the first checkpoint; from then on the time between two doubles, up to what is asked for."""


class Progress(NamedTuple):
    """Where a fleet stands."""

    steps: int
    """Of each agent."""
    speed: float | None
    """Steps per second of all agents together while learning; None in the random phase, which is faster."""
    left: float | None
    """Seconds to the end, evaluations included; None in the random phase."""
    evaluated: Measured | None
    """The newest measurement, where one was just made."""
    history: Arrays
    """All measurements so far, those before a resume too: (agents, evaluations) each."""


Watcher = Callable[[Progress], None]


class Interrupted(Exception):  # noqa: N818
    """Training stopped on request; its checkpoint is saved, if it has one."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"stopped after {steps} steps")
        self.steps = steps


def train(arms: Sequence[Arm], watch: Watcher | None = None) -> list[Result]:
    """Train several arms, in as few fleets as they need; results in the order of the arms."""
    arms = [resolved(arm) for arm in arms]
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
    """Train arms that share a program or a simulation; from `checkpoint` on, if that file exists.

    A run that was killed and goes on from its checkpoint ends with the same results, bit for bit; where its
    environments cannot be brought back, their episodes begin anew, and the result tells at which steps.
    """
    arms = [resolved(arm) for arm in arms]
    if len(fleets_of(arms)) != 1:
        raise UserError("these arms cannot train in one fleet: their programs or schedules differ")
    began = saved = time.monotonic()
    asked = [arm.described() for arm in arms]
    trainer, run = _start(arms, checkpoint, asked)
    last, due_rounds = arms[0].rounds, arms[0].evaluation_rounds
    round_steps = arms[0].round_steps
    all_steps = round(round_steps * sum(arm.agents * arm.policy_data for arm in arms))
    # Rounds get slower once updates begin: a call of as many rounds as before would take too long.
    slower = trainer.first_update_round
    stops = sorted({*due_rounds, slower})
    call_seconds = trainer.call_seconds(run.agents)
    saving, length = 0.0, 1  # the first call compiles: it is short
    pace, reported = Pace(last, slower, due_rounds), began

    with closing(trainer), deferred_interrupt() as interrupted:
        while run.rounds < last:
            stop = next(rounds for rounds in stops if rounds > run.rounds)
            length = min(length, stop - run.rounds)
            called = time.monotonic()
            agents = trainer.advance(run.agents, run.rounds, length)
            run = run._replace(agents=agents, rounds=run.rounds + length)
            ended = time.monotonic()
            took = ended - called
            pace.advanced(run.rounds - length, length, took)

            measured = None
            if run.rounds in due_rounds:
                measured = trainer.evaluate(run.agents, run.rounds)
                run = run._replace(history=_appended(run.history, measured))
                pace.evaluated(time.monotonic() - ended)
            if watch is not None and (measured is not None or ended - reported > CALL_SECONDS / 2):
                speed = None if pace.speed is None else all_steps * pace.speed
                left = pace.left(run.rounds)
                watch(Progress(run.rounds * round_steps, speed, left, measured, run.history))
                reported = time.monotonic()
            length = 1 if run.rounds == slower else max(1, int(call_seconds * length / took))

            now = time.monotonic()
            worth_saving = now - saved > seconds_to_save(saved - began, saving, checkpoint_every)
            if run.rounds < last and checkpoint is not None and (worth_saving or interrupted()):
                elapsed = run.seconds + now - began
                _save(checkpoint, trainer, run._replace(seconds=elapsed), asked)
                saved = time.monotonic()
                saving = saved - now
            if run.rounds < last and interrupted():
                raise Interrupted(run.rounds * round_steps)

    seconds = run.seconds + time.monotonic() - began
    restarts = [rounds * round_steps for rounds in trainer.restarts(run.agents)]
    return _results(arms, asked, run, trainer.actors(run.agents), seconds, restarts)


def seconds_to_save(age: float, saving: float, checkpoint_every: float) -> float:
    """Seconds to the next checkpoint; the last took `saving`, in a process that had run for `age`.

    The first comes soon, so that a run that is often killed makes progress; later ones come less often.
    """
    return max(min(checkpoint_every, max(FIRST_CHECKPOINT, age)), saving / CHECKPOINT_SHARE)


class _Run(NamedTuple):
    """Where a run stands."""

    agents: Any
    """As the trainer has them."""
    rounds: int
    history: Arrays
    seconds: float


def _start(
    arms: Sequence[Arm], checkpoint: Path | None, asked: list[dict[str, Any]]
) -> tuple[Trainer[Any], _Run]:
    """The trainer, and the state in which its run begins or continues."""
    found = checkpoints.load(checkpoint, asked) if checkpoint is not None and checkpoint.exists() else None
    trainer = trainer_for(arms, found.parts if found is not None else None)
    check_memory(trainer)
    if checkpoint is None or found is None:
        return trainer, _Run(trainer.init(), rounds=0, history={}, seconds=0.0)
    try:
        agents = trainer.load(found.agents)
    except (KeyError, ValueError) as error:
        raise checkpoints.damaged(checkpoint, error) from error
    return trainer, _Run(agents, found.rounds, found.history, found.seconds)


def _save(path: Path, trainer: Trainer[Any], run: _Run, asked: list[dict[str, Any]]) -> None:
    agents = trainer.save(run.agents, run.rounds)
    checkpoints.save(path, Checkpoint(agents, trainer.parts, run.rounds, run.history, run.seconds), asked)


def _appended(history: Arrays, measured: Measured) -> Arrays:
    """The history with one more column."""
    return {
        name: np.concatenate([history.get(name, values[:, :0]), values], 1)
        for name, values in ((name, values[:, None]) for name, values in measured._asdict().items())
    }


def _results(
    arms: Sequence[Arm],
    asked: list[dict[str, Any]],
    run: _Run,
    actors: Any,
    seconds: float,
    restarts: list[int],
) -> list[Result]:
    """Cut the fleet's history and its policies into its arms."""
    recorded, results, first = record(), [], 0
    recorded |= {RESTARTS: restarts} if restarts else {}
    for arm, settings in zip(arms, asked, strict=True):
        about = {"measure": envs.make(arm.environment).measure, **recorded}
        place = slice(first, first := first + arm.agents)
        own, learnt = jax.tree.map(operator.itemgetter(place), (run.history, actors))
        results.append(Result(settings, evaluations_of(arm, own), seconds, about, learnt))
    return results


def evaluations_of(arm: Arm, history: Arrays) -> Arrays:
    """The arrays of `evaluations.npz`, from what was measured of an arm's agents so far."""
    rounds = np.array(arm.evaluation_rounds[: history["finite"].shape[1]])
    steps = rounds * arm.round_steps
    transitions = np.rint(steps * arm.policy_data).astype(steps.dtype)
    updates = np.asarray(program_of(arm).updates_after(jnp.asarray(rounds)))
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
