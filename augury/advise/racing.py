"""The race itself: candidates train a stretch each, from evaluation to evaluation, until they drop out.

Every candidate is a fleet of its own, with a checkpoint after each evaluation that holds what was measured so
far. So a race that was killed is run again from that, and goes on where it was. Once its file, or its
environment's, was edited, a candidate has another checkpoint and trains anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from augury import envs
from augury.advise.race import Race, Standing
from augury.advise.written import written
from augury.errors import UserError
from augury.fleet import Arm, resolved
from augury.fleet.trainers import trainer_for
from augury.runs import checkpoints
from augury.runs.checkpoints import Checkpoint
from augury.runs.files import slug
from augury.runs.scores import Scores

MEASURED = "measured"
Range = tuple[float, float]


def run_race(
    arms: Mapping[str, Arm],
    folder: Path,
    *,
    returns: Range | None = None,
    watch: Callable[[Standing, str], None] = lambda standing, next_: None,
) -> Standing:
    """Train the arms side by side, dropping those that are behind; all have as many agents and steps.

    Where the task is measured by returns, `returns` are those that count as 0 and as 1. `watch` is called
    with the standing and the arm that trains next.
    """
    settled = {name: resolved(arm) for name, arm in arms.items()}
    first = next(iter(settled.values()))
    span = span_of(first, returns)
    steps = np.array(first.evaluation_rounds) * first.round_steps
    if any(
        (arm.agents, arm.evaluation_rounds) != (first.agents, first.evaluation_rounds)
        for arm in settled.values()
    ):
        raise UserError("arms of a race have equally many agents, and are evaluated after the same steps")
    running = Race(settled, steps, first.agents)
    folder.mkdir(parents=True, exist_ok=True)
    for number, agents in enumerate(running.stages):
        with ExitStack() as held:
            runners = {
                name: _Runner(
                    replace(settled[name], agents=len(agents), seed=settled[name].seed + agents.start),
                    folder / f"{number + 1}-{_file(name, settled[name])}.checkpoint",
                    span,
                    held,
                )
                for name in running.standing.racing
            }
            for evaluation in range(len(steps)):
                if running.standing.over:
                    return running.standing
                scores = {}
                for name in running.standing.racing:
                    watch(running.standing, name)
                    scores[name] = runners[name].at(evaluation)
                running.update(scores)
            if returns is not None:
                _refuse_misjudged([runner.measured for runner in runners.values()], span)
    return running.standing


def _refuse_misjudged(measured: Sequence[Scores], span: Range) -> None:
    """Scores of which every one counts as nothing, or as perfect, tell nothing."""
    every = np.concatenate([scores.ravel() for scores in measured])
    if (every < span[0]).all() or (every > span[1]).all():
        side = "below" if every[0] < span[0] else "above"
        raise UserError(
            f"all returns were {side} {span[0]:g} to {span[1]:g}, namely {np.nanmin(every):.3g} to "
            f"{np.nanmax(every):.3g}: give other --returns; what was trained is kept"
        )


class _Runner:
    """One candidate's agents of a stage."""

    def __init__(self, arm: Arm, checkpoint: Path, span: Range, held: ExitStack) -> None:
        self._arm, self._checkpoint, self._span, self._held = arm, checkpoint, span, held
        self._asked = [arm.described()]
        self.measured: Scores = np.zeros((arm.agents, 0))
        self._saved: Checkpoint | None = None
        if checkpoint.exists():
            self._saved = checkpoints.load(checkpoint, self._asked)
            self.measured = self._saved.history[MEASURED]
        self._trainer: Any = None

    def at(self, evaluation: int) -> Scores:
        """The agents' scores at an evaluation; they are trained until there, unless they have been."""
        if evaluation >= self.measured.shape[1]:
            self._train(self._arm.evaluation_rounds[evaluation])
        low, high = self._span
        return np.nan_to_num(np.clip((self.measured[:, evaluation] - low) / (high - low), 0, 1))

    def _train(self, until: int) -> None:
        if self._trainer is None:
            self._trainer = trainer_for([self._arm], self._saved and self._saved.parts)
            self._held.callback(self._trainer.close)
            self._rounds = self._saved.rounds if self._saved else 0
            self._agents = self._trainer.load(self._saved.agents) if self._saved else self._trainer.init()
        self._agents = self._trainer.advance(self._agents, self._rounds, until - self._rounds)
        self._rounds = until
        evaluated = self._trainer.evaluate(self._agents, until)
        now = np.asarray(getattr(evaluated, envs.make(self._arm.environment).measure), float)
        self.measured = np.column_stack([self.measured, now])
        held = self._trainer.save(self._agents, until)
        checkpoints.save(
            self._checkpoint,
            Checkpoint(held, self._trainer.parts, until, {MEASURED: self.measured}, 0.0),
            self._asked,
        )


def span_of(arm: Arm, returns: Range | None) -> Range:
    """The scores that count as 0 and as 1, from the task's measure and what was said of returns."""
    environment = envs.make(arm.environment)
    if environment.measure == "success":
        if returns is not None:
            raise UserError(f"{environment.name} is measured by its success: leave out --returns")
        return 0.0, 1.0
    if returns is None or not np.isfinite(returns).all() or not returns[1] > returns[0]:
        raise UserError(
            f"{environment.name} is measured by its returns: say which count as nothing and as perfect, "
            "as in --returns -1500 0"
        )
    return returns


def _file(name: str, arm: Arm) -> str:
    """Of a candidate as it is written now; names that differ in case alone are two candidates."""
    what = (name, written(arm.environment), written(arm.augmentation))
    return f"{slug(name)}-{hashlib.sha256(repr(what).encode()).hexdigest()[:8]}"
