"""What signals look at: a pilot's transitions, f(D), and where both lie. And each signal's fields from that.

What depends on the pilot alone (the whitened space, the curve of the kernel) or on its environment alone (the
simulator) is computed once and kept, so each further augmentation, m or α costs only what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from augury.advise.pilot import Pilot
from augury.advise.signals import coverage, kernel, replay, reward, validity, values
from augury.advise.signals.copies import Copies, copied
from augury.advise.signals.points import Space
from augury.augmentations.base import Augmentation, needs_of
from augury.errors import UserError
from augury.replay.asymmetry import asymmetry, keeps_reward
from augury.transition import Transition
from augury.verify.base import Bounds, Simulator
from augury.verify.observations import flat
from augury.verify.simulators import simulator_of

Indices = npt.NDArray[np.intp]
Fields = dict[str, Any]
"""Some of those of `Signals`."""

HELD_OUT = 0.25
"""Share of the pilot's episodes that no fit sees."""
LOOKED_AT = 2_000
"""Observed states among which the nearest is searched."""
FITTED = 512
"""Observed transitions that values are fitted on."""
EVALUATED = 256
"""Evaluated transitions that are asked about, and as many of held-out episodes."""


class Basis(NamedTuple):
    """What all augmentations of a pilot share."""

    space: Space
    order: Indices
    """Rows of the pilot in random order, without those of held-out episodes."""
    held_out: Indices
    evaluated: Transition
    """Evenly spread over the episodes."""
    curve: kernel.Curve | UserError
    scales: validity.Scales
    reward_span: float

    @classmethod
    def of(cls, pilot: Pilot, seed: int) -> Basis:
        """Which rows are held out, and their order, follow from the seed."""
        observed, evaluated = pilot.observed.transition, pilot.evaluated.transition
        generator = np.random.default_rng(seed)
        episodes = generator.permutation(pilot.observed.episode.max() + 1)
        few = episodes[: int(np.ceil(HELD_OUT * len(episodes)))] if len(episodes) > 1 else episodes[:0]
        held = np.isin(pilot.observed.episode, few)
        shuffled = generator.permutation(len(held))
        order = shuffled[~held[shuffled]]
        count = len(pilot.evaluated.episode)
        evaluated = rows(evaluated, np.linspace(0, count - 1, min(count, EVALUATED)).astype(int))
        space = Space.of(pilot)
        try:
            curve: kernel.Curve | UserError = kernel.Curve.of(
                space.what(rows(observed, order[: kernel.MOST_ROWS])), space.what(evaluated)
            )
        except UserError as error:
            curve = error
        return cls(
            space,
            order,
            shuffled[held[shuffled]],
            evaluated,
            curve,
            validity.Scales.of(observed, _bounds(pilot)),
            float(np.ptp(observed.reward)),
        )


class Evidence(NamedTuple):
    """What the signals of one augmentation look at."""

    pilot: Pilot
    basis: Basis
    augmentation: Augmentation
    copies: Copies
    ratio: float
    seed: int
    update_ratio: float = 1.0

    @property
    def origins(self) -> Transition:
        """The observed transitions of which these are copies, row by row."""
        return rows(self.pilot.observed.transition, self.copies.origin)


def gathered(pilot: Pilot, augmentation: Augmentation, *, ratio: float, seed: int) -> Evidence:
    """Augment, and look up what is known about the pilot."""
    basis = _basis(pilot, seed)
    copies = copied(pilot, augmentation, basis.order, ratio, seed)
    return Evidence(pilot, basis, augmentation, copies, ratio, seed)


def _of_validity(evidence: Evidence) -> Fields:
    environment: Any = evidence.pilot.environment
    simulator, scales = _simulator(environment), evidence.basis.scales
    few = slice(validity.SAMPLES)
    observed, augmented = rows(evidence.origins, few), rows(evidence.copies.transition, few)
    needs = tuple(name for name in needs_of(evidence.augmentation) if name in observed.extras)
    augmented = augmented._replace(extras=observed.extras | augmented.extras)
    try:
        found = validity.validity(simulator, observed, augmented, scales, needs)
    except UserError:  # it restores a state from more than a pilot stores
        found = None
    if found is None:
        found = validity.played(simulator, evidence.augmentation, scales, evidence.seed)
    return found._asdict()


def _of_coverage(evidence: Evidence) -> Fields:
    pilot, basis = evidence.pilot, evidence.basis
    chosen = np.concatenate([basis.order, basis.held_out])[:LOOKED_AT]
    # A copy counts only where its own transition is among those that are searched.
    kept = np.isin(evidence.copies.origin, chosen)
    found = coverage.coverage(
        basis.space.where(rows(pilot.observed.transition, chosen)),
        basis.space.where(rows(evidence.copies.transition, kept)),
        basis.space.where(rows(evidence.origins, kept)),
        basis.space.where(basis.evaluated),
    )
    return {
        "added_coverage": found.added,
        "evaluation_coverage": found.nearer,
        "evaluation_approach": found.approach,
        "evaluation_departure": found.departure,
    }


def _of_reward(evidence: Evidence) -> Fields:
    both = (evidence.pilot.observed.transition, evidence.copies.transition)
    if evidence.pilot.environment.measure == "success":
        flags = [np.asarray(evidence.pilot.environment.succeeded(one)) for one in both]
    else:
        flags = [*reward.rewarding(*(np.asarray(one.reward, float) for one in both))]
    found = reward.density(*flags)
    return {
        "observed_reward_density": found.observed,
        "augmented_reward_density": found.augmented,
        "reward_density_ratio": found.ratio,
    }


def _of_task(evidence: Evidence) -> Fields:
    observed, evaluated = evidence.pilot.observed.transition, evidence.pilot.evaluated.transition
    rewards = np.asarray(observed.reward, float)
    return {
        "common_reward": reward.common(rewards),
        "progress": reward.progress(rewards, np.asarray(evaluated.reward, float)),
    }


def _of_kernel(evidence: Evidence) -> Fields:
    if isinstance(curve := evidence.basis.curve, UserError):
        raise curve
    points = evidence.basis.space.what(evidence.copies.transition)
    # Copies are in the order of the curve's rows, but hindsight leaves some of these out.
    row = np.full(len(evidence.pilot.observed.episode), len(evidence.basis.order))
    row[evidence.basis.order] = np.arange(len(evidence.basis.order))
    found = kernel.multiplier(curve, points, row[evidence.copies.origin])
    return {
        "data_multiplier": found.value,
        "data_multiplier_capped": found.capped,
        "variance_ratio": found.log_variance_ratio,
    }


def _of_values(evidence: Evidence) -> Fields:
    pilot, basis, copies = evidence.pilot, evidence.basis, evidence.copies
    _refuse_nothing_to_learn(evidence)
    if not len(basis.held_out):
        raise UserError("the value error needs at least two episodes: give the pilot more steps")
    fitted = copies.place < FITTED
    observed = pilot.observed.transition
    held = [_rated(evidence, part) for part in (rows(observed, basis.held_out[:EVALUATED]), basis.evaluated)]
    error = values.log_error_ratio(
        _rated(evidence, rows(observed, np.unique(copies.origin[fitted]))),
        _rated(evidence, rows(copies.transition, fitted)),
        values.Rated(*(np.concatenate(parts) for parts in zip(*held, strict=True))),
        weight=evidence.update_ratio,
        seed=evidence.seed,
    )
    return {"value_error_ratio": error}


def _of_asymmetry(evidence: Evidence) -> Fields:
    _refuse_nothing_to_learn(evidence)
    both = (evidence.origins, evidence.copies.transition)
    before, after = (np.asarray(one.reward, float) for one in both)
    kept = keeps_reward(before, after, evidence.basis.reward_span)
    if not (kept and np.array_equal(both[0].terminated, both[1].terminated)):
        raise UserError("the augmentation changes rewards or ends, so the critic need not be symmetric")
    critic = evidence.pilot.critic
    return {"asymmetry": asymmetry(*(critic(one.observation, one.action) for one in both))}


def _of_replay(evidence: Evidence) -> Fields:
    ratios = (evidence.ratio, evidence.update_ratio)
    return replay.replayed(evidence.pilot.replay_ratio, *ratios)._asdict()


SIGNALS: Mapping[str, Callable[[Evidence], Fields]] = MappingProxyType(
    {
        "validity": _of_validity,
        "coverage": _of_coverage,
        "reward": _of_reward,
        "task": _of_task,
        "kernel": _of_kernel,
        "values": _of_values,
        "asymmetry": _of_asymmetry,
        "replay": _of_replay,
    }
)
"""The fields that each signal gives. What it cannot know it refuses, in a sentence."""

OF_WEIGHT = ("values", "replay")
"""Those that α changes."""


def rows(transition: Transition, chosen: Any) -> Transition:
    """Some transitions."""
    picked: Transition = jax.tree.map(lambda leaf: leaf[chosen], transition)
    return picked


@lru_cache(maxsize=4)
def _basis(pilot: Pilot, seed: int) -> Basis:
    return Basis.of(pilot, seed)


@lru_cache(maxsize=4)
def _simulator(environment: Any) -> Simulator:
    return simulator_of(environment)


def _rated(evidence: Evidence, transition: Transition) -> values.Rated:
    """Transitions as points, and one Bellman backup of each."""
    pilot, following = evidence.pilot, transition.next_observation
    worth = np.where(transition.terminated, 0, pilot.critic(following, pilot.policy(following)))
    backup = np.asarray(transition.reward, float) + pilot.arm.discount * worth
    return values.Rated(evidence.basis.space.what(transition), backup)


def _refuse_nothing_to_learn(evidence: Evidence) -> None:
    """Where every step is worth the same, only an episode's end makes a difference."""
    ends = np.any(evidence.pilot.observed.transition.terminated)
    if evidence.basis.reward_span == 0 and not ends:
        raise UserError("the pilot's rewards are all equal, so there are no values to learn")


def _bounds(pilot: Pilot) -> Bounds:
    """Of flat observations, everything that they show."""
    ends = (pilot.environment.observation_low, pilot.environment.observation_high)
    flats = [flat(jax.tree.map(lambda part: np.asarray(part, np.float64)[None], end))[0] for end in ends]
    return Bounds(*flats)
