"""The host's part of training: call the compiled program, evaluate, checkpoint, report.

until the last round:
    advance to the next evaluation, in calls of a few seconds
    evaluate every agent
    save a checkpoint now and then
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from augury.fleet import checkpoint as checkpoints
from augury.fleet.arm import Arm
from augury.fleet.checkpoint import Checkpoint
from augury.fleet.fleet import Fleet, fleets_of
from augury.fleet.program import Measured
from augury.fleet.results import Arrays, Result, record

CALL_SECONDS = 3.0
"""Length of one call of the compiled program: how often progress is shown and an interrupt noticed."""
CHECKPOINT_SHARE = 0.05
"""Largest share of the time that checkpoints may take."""


class Progress(NamedTuple):
    """Where a fleet stands."""

    steps: int
    """Of each agent's environments."""
    speed: float
    """Steps per second of all agents together, in the last call of the compiled program."""
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
    fleet = Fleet(arms)
    asked = [arm.described() for arm in arms]
    run = _start(fleet, checkpoint, asked)
    last, due_rounds = arms[0].rounds, arms[0].evaluation_rounds
    round_steps = fleet.program.collect * fleet.program.replay.environments * fleet.agents
    began = saved = time.monotonic()
    saving, length = 0.0, 1  # the first call compiles: it is short

    with _deferred_interrupt() as interrupted:
        while run.rounds < last:
            due = next(rounds for rounds in due_rounds if rounds > run.rounds)
            length = min(length, due - run.rounds)
            called = time.monotonic()
            agents = fleet.advance(run.agents, run.rounds, length)
            run = run._replace(agents=agents, rounds=run.rounds + length)
            pace = (time.monotonic() - called) / length

            measured = None
            if run.rounds == due:
                measured = fleet.evaluate(run.agents, run.rounds)
                run = run._replace(history=_appended(run.history, measured, run.rounds, fleet))
            if watch is not None:
                watch(Progress(run.rounds * fleet.program.collect, round_steps / pace, measured))
            length = max(1, int(CALL_SECONDS / pace))

            now = time.monotonic()
            worth_saving = now - saved > max(checkpoint_every, saving / CHECKPOINT_SHARE)
            if run.rounds < last and checkpoint is not None and (worth_saving or interrupted()):
                elapsed = run.seconds + now - began
                checkpoints.save(checkpoint, run._replace(seconds=elapsed), fleet, asked)
                saved = time.monotonic()
                saving = saved - now
            if run.rounds < last and interrupted():
                raise Interrupted(run.rounds * fleet.program.collect)

    seconds = run.seconds + time.monotonic() - began
    return _results(arms, asked, run.history, seconds)


def _start(fleet: Fleet, checkpoint: Path | None, asked: list[dict[str, Any]]) -> Checkpoint:
    if checkpoint is not None and checkpoint.exists():
        return checkpoints.load(checkpoint, fleet, asked)
    return Checkpoint(fleet.init(), rounds=0, history={}, seconds=0.0)


def _appended(history: Arrays, measured: Measured, rounds: int, fleet: Fleet) -> Arrays:
    """The history with one more column."""
    program = fleet.program
    column = measured._asdict() | {"rounds": np.full(fleet.agents, rounds)}
    observed = rounds * program.collect * program.replay.environments
    column["updates"] = np.full(fleet.agents, program.updates * max(rounds - program.first_update_round, 0))
    column["transitions"] = np.full(fleet.agents, observed)
    return {
        name: np.concatenate(
            [history.get(name, np.empty((fleet.agents, 0), values.dtype)), values[:, None]], 1
        )
        for name, values in column.items()
    }


def _results(
    arms: Sequence[Arm], asked: list[dict[str, Any]], history: Arrays, seconds: float
) -> list[Result]:
    """Cut the fleet's history into its arms."""
    results, first = [], 0
    for arm, settings in zip(arms, asked, strict=True):
        own = {name: values[first : first + arm.agents] for name, values in history.items()}
        first += arm.agents
        results.append(Result(settings, _evaluations(arm, own), seconds, record()))
    return results


def _evaluations(arm: Arm, history: Arrays) -> Arrays:
    """The arrays of `evaluations.npz`, from the counts and measurements of an arm's agents."""
    history = dict(history)
    rounds, updates = history.pop("rounds"), history.pop("updates")
    finite, generated = history.pop("finite"), history.pop("augmented_transitions")
    transitions = history.pop("transitions")
    updates_made = np.diff(updates, prepend=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        beta = updates_made / np.diff(generated, prepend=0)
    # No augmented transitions: no ratio. Infinitely many: each is used at most once, so the ratio is 0.
    beta = np.where(generated == 0, np.nan, np.where(np.isinf(generated), 0, beta))
    return {
        "steps": rounds[0] * arm.collect,
        "updates": updates[0],
        "transitions": transitions[0],
        "seeds": np.array(arm.seeds),
        "replay_ratio": (updates_made / np.diff(transitions, prepend=0)).astype(np.float32),
        "augmented_replay_ratio": beta.astype(np.float32),
        "diverged": ~np.minimum.accumulate(finite, 1),
        **history,
    }


@contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Notice Ctrl-C and termination between calls, to save a checkpoint first; a second one is final."""
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: signals are somebody else's
        before = {}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
