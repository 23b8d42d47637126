"""Statistics over agents, and how much other agents might have changed them: percentile bootstrap intervals.

Scores have agents first: (agents, evaluations), or (agents,) where each has one score. One that is not finite
counts as the worst, as in `augury.runs.scores`: the IQM forgives a quarter of such agents, the mean none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from augury.runs.scores import Scores, finite_or_worst, mean_of_middle_half

Steps = npt.NDArray[np.integer[Any]]
Statistic = Literal["iqm", "mean"]

AT_ONCE = 50_000
"""Scores drawn at a time: they fit a core's cache, and memory does not grow with agents times resamples."""


class Curve(NamedTuple):
    """A statistic over agents at every evaluation, with its confidence belt."""

    middle: Scores
    low: Scores
    high: Scores


class Estimate(NamedTuple):
    """A number with its confidence interval; an end that nothing bounds is infinite."""

    middle: float
    low: float
    high: float


class Reached(NamedTuple):
    """The step by which a threshold is reached, with its confidence interval; None: not within the run."""

    middle: int | None
    low: int | None
    high: int | None


class Bootstrap(NamedTuple):
    """How intervals are made: agents are drawn again, with replacement, each with all of its scores."""

    confidence: float = 0.95
    resamples: int = 2_000
    seed: int = 0


BOOTSTRAP = Bootstrap()


def aggregate(scores: Scores, statistic: Statistic = "iqm") -> Scores:
    """A statistic over agents."""
    return _STATISTICS[statistic](finite_or_worst(scores))


def aggregate_curve(scores: Scores, statistic: Statistic = "iqm", bootstrap: Bootstrap = BOOTSTRAP) -> Curve:
    """A statistic at every evaluation with its belt, made of whole curves drawn again."""
    generator = np.random.default_rng(bootstrap.seed)
    drawn_again = resampled(generator, scores, statistic, bootstrap.resamples)
    return Curve(aggregate(scores, statistic), *ends(drawn_again, bootstrap.confidence))


def iqm_curve(scores: Scores, confidence: float = 0.95, resamples: int = 2_000, seed: int = 0) -> Curve:
    """IQM at every evaluation with its belt."""
    return aggregate_curve(scores, "iqm", Bootstrap(confidence, resamples, seed))


def area(steps: Steps, scores: Scores) -> Scores:
    """The area under each agent's curve, divided by its span: a mean score from first to last evaluation."""
    assert scores.ndim == 2, f"{scores.ndim} axes: curves have two, agents and evaluations"
    span = steps[-1] - steps[0]
    return np.trapezoid(finite_or_worst(scores), steps, axis=1) / span if span else final(scores)


def final(scores: Scores) -> Scores:
    """Each agent's score at the last evaluation."""
    assert scores.ndim == 2, f"{scores.ndim} axes: curves have two, agents and evaluations"
    return finite_or_worst(scores[:, -1])


def between(steps: Steps, scores: Scores, first: int, last: int) -> tuple[Steps, Scores]:
    """The part of the curves between two steps that lie on them, as if drawn with straight lines."""
    assert steps[0] <= first <= last <= steps[-1], f"{first} to {last} is not within the run"
    inner = steps[(steps > first) & (steps < last)]
    kept = np.unique([first, *inner, last])
    return kept, np.array([np.interp(kept, steps, curve) for curve in finite_or_worst(scores)])


def first_to_reach(steps: Steps, curve: Scores, threshold: float) -> int | None:
    """The step of the first evaluation at or above the threshold."""
    return _within_run(_first_at_or_above(steps, curve, threshold))


def steps_to_reach(
    steps: Steps,
    scores: Scores,
    threshold: float,
    statistic: Statistic = "iqm",
    bootstrap: Bootstrap = BOOTSTRAP,
) -> Reached:
    """The step by which a statistic over agents is first at or above the threshold."""
    generator = np.random.default_rng(bootstrap.seed)
    drawn_again = resampled(generator, scores, statistic, bootstrap.resamples)
    low, high = ends(_first_at_or_above(steps, drawn_again, threshold), bootstrap.confidence)
    middle = first_to_reach(steps, aggregate(scores, statistic), threshold)
    return Reached(middle, _within_run(low), _within_run(high))


def difference(
    first: Scores, second: Scores, statistic: Statistic = "iqm", bootstrap: Bootstrap = BOOTSTRAP
) -> Estimate:
    """A statistic of one arm's scores less that of another's, whose agents are drawn apart.

    NaN where neither arm has a finite one.
    """
    assert first.ndim == second.ndim == 1, "each agent has one score"
    generator = np.random.default_rng(bootstrap.seed)
    arms = [resampled(generator, scores, statistic, bootstrap.resamples) for scores in (first, second)]
    with np.errstate(invalid="ignore"):  # -inf less -inf
        middle = aggregate(first, statistic) - aggregate(second, statistic)
        low, high = ends(arms[0] - arms[1], bootstrap.confidence)
    return Estimate(float(middle), float(low), float(high))


def probability_of_improvement(first: Scores, second: Scores, bootstrap: Bootstrap = BOOTSTRAP) -> Estimate:
    """P(X > Y) + ½ P(X = Y) for an agent of each arm (Agarwal et al. 2021).

    That is U / n m, U being Mann and Whitney's.
    """
    assert first.ndim == second.ndim == 1, "each agent has one score"
    rows, columns = finite_or_worst(first)[:, None], finite_or_worst(second)
    wins = (rows > columns) + 0.5 * (rows == columns)
    generator = np.random.default_rng(bootstrap.seed)
    times_drawn = [
        generator.multinomial(agents, np.full(agents, 1 / agents), bootstrap.resamples)
        for agents in wins.shape
    ]
    drawn_again = ((times_drawn[0] @ wins) * times_drawn[1]).sum(axis=1) / wins.size
    low, high = ends(drawn_again, bootstrap.confidence)
    return Estimate(float(wins.mean()), float(low), float(high))


def _mean(scores: Scores) -> Scores:
    return np.asarray(scores.mean(axis=0))


_STATISTICS: dict[Statistic, Callable[[Scores], Scores]] = {"iqm": mean_of_middle_half, "mean": _mean}


def resampled(generator: np.random.Generator, scores: Scores, statistic: Statistic, resamples: int) -> Scores:
    """The statistic of agents drawn with replacement, the same for every evaluation: (resamples, …)."""
    agents, *evaluations = scores.shape
    columns = np.ascontiguousarray(finite_or_worst(scores).reshape(agents, -1).T)
    found = np.empty((resamples, len(columns)))
    many = max(1, AT_ONCE // agents)
    for start in range(0, resamples, many):
        rows = found[start : start + many]
        drawn = generator.integers(0, agents, (len(rows), agents))
        for place, column in enumerate(columns):
            # Transposed, so that the agents to sort lie side by side in memory.
            rows[:, place] = _STATISTICS[statistic](column[drawn].T)
    return found.reshape(resamples, *evaluations)


def ends(drawn_again: Scores, confidence: float) -> tuple[Scores, Scores]:
    """Percentiles, outwards to a value that occurred: between an infinite one and another lies nothing.

    What is not a number could be anything.
    """
    tail, unknown = (1 - confidence) / 2, np.isnan(drawn_again)
    low = np.quantile(np.where(unknown, -np.inf, drawn_again), tail, axis=0, method="lower")
    high = np.quantile(np.where(unknown, np.inf, drawn_again), 1 - tail, axis=0, method="higher")
    return np.asarray(low), np.asarray(high)


def _first_at_or_above(steps: Steps, curves: Scores, threshold: float) -> Scores:
    above = curves >= threshold
    return np.where(above.any(axis=-1), steps[above.argmax(axis=-1)], np.inf)


def _within_run(step: Scores) -> int | None:
    return int(step) if np.isfinite(step) else None
