"""What an augmentation was worth: its gain over none, and the policy data that would have done the same.

From learning curves alone, of agents that were trained. Scores lie between 0 and 1. The *area* is an agent's
mean score from step 0 to the end. With policy data ×N an agent learns, ideally, as without but N times as
fast: after t steps it scores f(N t). Its area is then the mean of f up to N T, T being the budget. Read the
other way round, the mean of none's curve up to q T is the area of an agent with q times the data, q < 1. So

    A(N) = area of the arm with policy data ×N     for N = 1, 2, 4, 8
    A(q) = mean score of none up to step q T       for q from 1/8 up to 1

is one curve over log2 N. It is made monotone (isotonic regression), and an arm is worth the N at which the
curve reaches the arm's area. Between two points the *lost* area 1 - A is taken for a power of N: where agents
learn to score 1, N times the speed loses one Nth. An area within 0.01 of none's is worth 1: in tasks that
more data does not change, a smaller difference would be worth anything. A worth beyond either end is
*censored*: known only to be at most 1/8, or at least the largest N.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from augury.errors import UserError
from augury.runs.scores import Scores
from augury.runs.statistics import Bootstrap, Estimate, Steps, area, between, difference, ends, resampled

Censored = Literal["", "below", "above"]

BOOTSTRAP = Bootstrap(confidence=0.90, resamples=1_000)
"""Agents are drawn again, those of every arm apart."""

FRACTIONS = tuple(2.0 ** np.arange(-3, 0, 0.25))
"""Of none's budget, at which its curve is read for arms that are worse than none."""

EARLY = 0.1
"""The share of the training after which `early_gain` is measured."""


ALIKE = 0.01
"""Areas that differ by no more are not told apart from none's."""

LEAST_LOST = 1e-4
"""Areas closer to 1 than that count as that close."""


class Curves(NamedTuple):
    """Learning curves of an arm's agents, evaluated at the same steps. Make them with `curves`."""

    steps: Steps
    """(evaluations,), rising"""
    scores: Scores
    """(agents, evaluations), between 0 and 1"""


class Worth(NamedTuple):
    """The multiple of policy data that does the same, with its interval."""

    middle: float
    low: float
    high: float
    censored: Censored
    """Whether the worth itself lies beyond what was measured; an end of the interval at 1/8 or at the largest
    multiple is open too."""


def curves(steps: Steps, scores: Scores, floor: float = 0.0, ceiling: float = 1.0) -> Curves:
    """Scores from returns: `floor` becomes 0 and `ceiling` 1, and what lies beyond is cut off.

    A return that is not finite, as a diverged agent's may be, counts as the floor.
    """
    steps, scores = np.asarray(steps), np.asarray(scores, float)
    if scores.ndim != 2 or steps.shape != scores.shape[1:] or not scores.size:
        raise UserError(f"curves are agents × evaluations: {scores.shape} does not fit {steps.shape} steps")
    if not ceiling > floor:
        raise UserError(f"the ceiling {ceiling:g} is not above the floor {floor:g}")
    if (np.diff(steps) <= 0).any() or steps[0] < 0:
        raise UserError("the steps of evaluations do not rise")
    within = np.clip((scores - floor) / (ceiling - floor), 0, 1)
    return Curves(steps, np.where(np.isfinite(scores), within, 0.0))


def areas(arm: Curves, share: float = 1.0) -> Scores:
    """Each agent's mean score from step 0 until that share of its steps: (agents,).

    Before the first evaluation an agent counts as it scored there. (The area of reports begins at the first
    evaluation; budgets, whose ratio a worth is, begin at 0.)
    """
    steps, scores = arm
    if steps[0] > 0:
        steps, scores = np.append(0, steps), np.column_stack([scores[:, 0], scores])
    last = share * steps[-1]
    return area(*between(steps.astype(float), scores, 0, last)) if last > 0 else scores[:, 0]


def gain(arm: Curves, none: Curves, share: float = 1.0, bootstrap: Bootstrap = BOOTSTRAP) -> Estimate:
    """Mean area of an arm less that of none, with its interval."""
    _check_same_budget(arm, none)
    return difference(areas(arm, share), areas(none, share), "mean", bootstrap)


def worth(arm: Curves, policy: Mapping[float, Curves], bootstrap: Bootstrap = BOOTSTRAP) -> Worth:
    """The policy data that does the same; `policy` has the arms without augmentation, 1 being none."""
    if 1 not in policy:
        raise UserError("a worth needs the arm without augmentation and with policy data ×1")
    if min(policy) < 1:
        raise UserError(f"policy data ×{min(policy):g}: multiples begin at 1")
    for reference in policy.values():
        _check_same_budget(arm, reference)
    multiples = np.array([*FRACTIONS, *sorted(policy)])
    none = policy[1]
    read = [np.column_stack([areas(none, share) for share in (*FRACTIONS, 1)])]
    read += [areas(policy[multiple])[:, None] for multiple in sorted(policy)[1:]]

    generator = np.random.default_rng(bootstrap.seed)
    drawn = [resampled(generator, scores, "mean", bootstrap.resamples) for scores in (areas(arm), *read)]
    again = _reached(drawn[0], multiples, isotonic(np.column_stack(drawn[1:])))
    low, high = ends(again, bootstrap.confidence)

    target = areas(arm).mean()[None]
    mean = isotonic(np.concatenate([scores.mean(axis=0) for scores in read])[None])
    [middle] = _reached(target, multiples, mean)
    censored = _censored(middle, np.log2(multiples), target[0], mean[0])
    return Worth(float(2**middle), float(2**low), float(2**high), censored)


def isotonic(values: Scores) -> Scores:
    """The nearest values that never fall along the last axis, each counting as much (least squares)."""
    count = values.shape[-1]
    sums = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    # max over first ≤ i of min over last ≥ i of the mean of values[first..last]: few values, many rows.
    fitted = np.full_like(values, -np.inf, dtype=float)
    for first in range(count):
        means = (sums[..., first + 1 :] - sums[..., first, None]) / np.arange(1, count - first + 1)
        least = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
        fitted[..., first:] = np.maximum(fitted[..., first:], least)
    return fitted


def _reached(areas: Scores, multiples: Scores, curve: Scores) -> Scores:
    """log2 of the multiple at which rising curves reach areas; the end that is nearer, if nowhere.

    (rows,), (points,), (rows, points). Where a curve is level at its area, the place nearest to ×1: nothing
    shows that it was more than none, or less.
    """
    from_left = _crossing(areas, multiples, curve, (curve < areas[:, None]).sum(axis=1))
    from_right = _crossing(areas, multiples, curve, (curve <= areas[:, None]).sum(axis=1))
    none = curve[:, np.flatnonzero(multiples == 1)[0]]
    return np.where(np.abs(areas - none) <= ALIKE, 0.0, np.clip(0.0, from_left, from_right))


def _crossing(areas: Scores, multiples: Scores, curve: Scores, right: Scores) -> Scores:
    """Between the point before `right` and `right`, the first that is higher."""
    rows, places, lost = np.arange(len(curve)), np.log2(multiples), np.log2(np.maximum(1 - curve, LEAST_LOST))
    after = np.clip(right, 1, len(places) - 1)
    fall = lost[rows, after - 1] - lost[rows, after]
    fallen = lost[rows, after - 1] - np.log2(np.maximum(1 - areas, LEAST_LOST))
    share = np.divide(fallen, fall, out=np.ones_like(fall), where=fall > 0)
    inner = places[after - 1] + np.clip(share, 0, 1) * (places[after] - places[after - 1])
    return np.where(right == 0, places[0], np.where(right == len(places), places[-1], inner))


def _censored(middle: float, places: Scores, target: float, curve: Scores) -> Censored:
    if middle == places[0] and target < curve[0]:
        return "below"
    return "above" if middle == places[-1] and target > curve[-1] else ""


def _check_same_budget(arm: Curves, other: Curves) -> None:
    if arm.steps[-1] != other.steps[-1]:
        raise UserError(
            f"arms of different budgets are compared: {arm.steps[-1]:,} and {other.steps[-1]:,} steps"
        )
