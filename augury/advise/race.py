"""A race: candidates train side by side, and those that are behind drop out.

    first half of the agents of every candidate, evaluation by evaluation:
        leader ← the candidate with the largest area so far
        drop every other whose agents cannot catch up with the leader's, by a t-test over pairs of agents
    second half, of those that are left: the same, with the first half's areas complete

One looks after every evaluation, and an early leader may be overtaken. So what is tested is not who is ahead,
but who is ahead in the end: to each agent that leads, the race credits only what it scores now until the end,
and to the agent it is compared with a perfect score from now on.

    ahead_i = area so far of leader's agent i - that of the other's - (1 - leader's score now) × share left

This is at most the difference of their final areas, if the leader does not forget, and grows towards it. So a
look is a valid test of the final difference, and earlier looks add little to its error. The level is 5%,
shared by those compared with the leader (Holm). What that gives on simulated and recorded curves is measured
by `benchmarks/race.py`.

Intervals that hold for any number of looks without assumptions are too wide here: a bet on ten agents that
differ by 0.3 each wins at most 1.3¹⁰ = 14, and twenty are needed for 5%.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from augury.errors import UserError
from augury.runs.scores import Scores
from augury.runs.statistics import Steps

LEVEL = 0.05
"""Of the tests against the leader at one look, together."""

FEWEST = 3
"""Agents in a stage: fewer say nothing about how much agents differ."""

LEAST_SPREAD = 0.01
"""Standard deviation of agents' differences, at least: a few agents may be alike by chance."""


@dataclass(frozen=True)
class Standing:
    """How a race stands after an evaluation."""

    leader: str
    racing: tuple[str, ...]
    """Those that are not out, in the order that they were named."""
    out: Mapping[str, tuple[int, int]]
    """Those that are out, with the agents and the steps of the last of them that it took."""
    cost: float
    """Steps trained, as a share of those of all candidates with all agents."""
    agents: range
    """The agents to train next; empty when the race is over."""

    @property
    def over(self) -> bool:
        """Whether all is trained, or one is left."""
        return not self.agents

    @property
    def winner(self) -> str | None:
        """The one that is left; None where several are not told apart."""
        return self.leader if self.over and len(self.racing) == 1 else None


class Race:
    """Takes scores evaluation by evaluation; `standing` tells whose scores are wanted next."""

    def __init__(self, candidates: Iterable[str], steps: Steps, agents: int = 10) -> None:
        """`steps` are those of the evaluations, `agents` how many each candidate has at most."""
        self.candidates = tuple(candidates)
        self.steps = np.asarray(steps, float)
        if len(set(self.candidates)) < max(2, len(self.candidates)):
            raise UserError("a race needs two candidates or more, of different names")
        if agents < FEWEST:
            raise UserError(f"a race needs {FEWEST} agents of each candidate or more, not {agents}")
        if not len(self.steps) or (np.diff(self.steps, prepend=0) <= 0).any():
            raise UserError("the steps of evaluations do not rise from above 0")
        self.stages = stages(agents)
        self._areas = np.zeros((len(self.candidates), agents))
        self._now = np.zeros((len(self.candidates), agents))
        self._racing = np.ones(len(self.candidates), bool)
        self._out: dict[str, tuple[int, int]] = {}
        self._stage, self._evaluation, self._trained = 0, 0, 0.0
        self._leader = 0

    @property
    def standing(self) -> Standing:
        """How the race stands, and which agents are to train next."""
        left = self._racing.sum() > 1 and self._stage < len(self.stages)
        return Standing(
            leader=self.candidates[self._leader],
            racing=tuple(np.array(self.candidates, object)[self._racing]),
            out=dict(self._out),
            cost=float(self._trained / (self._areas.size * self.steps[-1])),
            agents=self.stages[self._stage] if left else range(0),
        )

    def update(self, scores: Mapping[str, Scores]) -> Standing:
        """Scores of the stage's agents at its next evaluation, (agents,) for each that is racing."""
        agents, evaluation = self.standing.agents, self._evaluation
        if not agents:
            raise UserError("the race is over: nobody is left to be compared")
        span = self.steps[evaluation] - (self.steps[evaluation - 1] if evaluation else 0)
        racing = np.flatnonzero(self._racing)
        given = [_checked(self.candidates[place], scores, len(agents)) for place in racing]
        for place, now in zip(racing, given, strict=True):
            before = self._now[place, agents] if evaluation else now
            self._areas[place, agents] += (before + now) / 2 * span / self.steps[-1]
            self._now[place, agents] = now
            self._trained += span * len(agents)
        self._look(agents)
        self._evaluation += 1
        if self._evaluation == len(self.steps):
            self._stage, self._evaluation = self._stage + 1, 0
        return self.standing

    def _look(self, agents: range) -> None:
        """Drop those that cannot catch up."""
        step = self.steps[self._evaluation]
        seen = self._areas[:, : agents.stop]
        self._leader = int(np.where(self._racing, seen.mean(axis=1), -1).argmax())
        left = np.where(np.arange(agents.stop) < agents.start, 0, 1 - step / self.steps[-1])
        ahead = seen[self._leader] - seen - (1 - self._now[self._leader, : agents.stop]) * left
        behind = self._racing & (np.arange(len(seen)) != self._leader)
        for place in np.flatnonzero(behind)[np.argsort(-_t(ahead[behind]))]:
            level = LEVEL / (self._racing.sum() - 1)
            if not _t(ahead[place]) > -stdtrit(agents.stop - 1, level):
                break
            self._racing[place] = False
            self._out[self.candidates[place]] = (agents.stop, int(step))


def stages(agents: int) -> tuple[range, ...]:
    """Agents in the order that they train: half of them, then the others; all at once where they are few."""
    half = (agents + 1) // 2
    return (range(half), range(half, agents)) if half >= FEWEST else (range(agents),)


def replay(curves: Mapping[str, Scores], steps: Steps) -> Standing:
    """The race that candidates would have run, whose curves are known: (agents, evaluations) each."""
    shapes = {np.shape(scores) for scores in curves.values()}
    if len(shapes) != 1 or (shape := shapes.pop())[1:] != np.shape(steps):
        raise UserError("curves of a race have equally many agents, and one evaluation for each of the steps")
    race = Race(curves, steps, shape[0])
    for agents in race.stages:
        for evaluation in range(len(steps)):
            if race.standing.over:
                return race.standing
            race.update(
                {name: curves[name][agents.start : agents.stop, evaluation] for name in race.standing.racing}
            )
    return race.standing


def _t(ahead: Scores) -> Scores:
    """Student's t over agents."""
    spread = np.maximum(ahead.std(axis=-1, ddof=1), LEAST_SPREAD)
    return np.asarray(ahead.mean(axis=-1) / spread * np.sqrt(ahead.shape[-1]))


def _checked(name: str, scores: Mapping[str, Any], agents: int) -> Scores:
    if name not in scores:
        raise UserError(f"the race waits for scores of '{name}'")
    now = np.nan_to_num(
        np.asarray(scores[name], float), nan=0.0, posinf=0.0, neginf=0.0
    )  # a diverged agent's
    if now.shape != (agents,) or now.min() < 0 or now.max() > 1:
        raise UserError(f"scores of '{name}' are not {agents} numbers between 0 and 1")
    return now
