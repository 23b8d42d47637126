"""Why an augmentation is wrong, where that can be recognised.

The simulator is asked about every repair, of a few transitions first and of more where it agrees. A repair is
the likely cause only if the simulator then agrees on nearly all of the transitions tried, and still agrees on
those that were right already: among many repairs one may fit a few transitions by chance. Undoing the
augmentation repairs anything, and explains nothing. Where no repair helps alone, two are tried together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, starmap
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from augury.transition import Transition
from augury.verify.base import Answer, Simulator
from augury.verify.inferred import inferred
from augury.verify.observations import flat, places_of, unflat
from augury.verify.repairs import Motion, Repair, elementary, of_choices, signs

Rows = npt.NDArray[np.float64]

LOOKS = ((3, 0.6), (16, 0.85), (100, 0.95))
"""Transitions tried one look after the other, and the share of them that must come out right."""
RIGHT_ALREADY, STILL_RIGHT = 30, 0.95
"""Transitions tried that were right already, and the share of them that must stay so."""
FIRST_OF_TWO, SECOND_OF_TWO = 10, 60
"""Repairs that are tried together: those that help most, with those that help too."""
MOST_SIGNS = 25
"""Signs up to which any two are tried together: alone, neither need help."""


class Case(NamedTuple):
    """Observed transitions and what an augmentation made of them."""

    simulator: Simulator
    observed: Transition
    augmented: Transition
    tolerance: float

    def motions(self) -> tuple[Motion, Motion]:
        """What was augmented and what was observed."""
        return Motion.of(self.augmented), Motion.of(self.observed)

    def rows(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Case:
        """Some of them."""
        observed, augmented = (
            jax.tree.map(lambda leaf: leaf[chosen], one) for one in (self.observed, self.augmented)
        )
        return self._replace(observed=observed, augmented=augmented)


class Found(NamedTuple):
    """A repair with which the simulator agrees."""

    text: str
    rows: npt.NDArray[np.intp]
    """Of the wrong transitions: those that it was tried on."""
    answer: Answer
    """The simulator's, to their repaired beginnings and actions."""


def recognised(whole: Case, wrong: npt.NDArray[np.bool_]) -> Found | None:
    """What the simulator would agree with, of the transitions that are wrong."""
    case, right = whole.rows(wrong), whole.rows(~wrong & _changed(whole))
    said, seen = case.motions()
    actions = said.action.shape[1] if said.action.ndim > 1 else 0  # a discrete action has none
    table = case.simulator.table
    entries = places_of(case.observed.observation)
    suspects = [
        *elementary(table, actions, entries),
        *of_choices(case.simulator.choices, np.array_equal(said.action, seen.action)),
        *inferred(table, case.simulator.model, said, seen),
    ]
    chosen = _spread(len(case.observed.reward), LOOKS[-1][0])
    tried = said.rows(chosen), seen.rows(chosen)
    suspects = [one for one in suspects if not _is_idle(one, *tried) and not _undoes(one, *tried)]
    errors = _errors(case, suspects, chosen[_spread(len(chosen), LOOKS[0][0])])
    found = _passing(case, _agreeing(case, suspects, errors, LOOKS[0][1]), chosen, LOOKS[1:])
    found = _harmless(right, found)
    if not found:
        two = [*_two_of(list(signs(table, actions, entries))), *_pairs(suspects, errors)]
        pairs = [one for one in two if not _is_idle(one, *tried) and not _undoes_motion(one, *tried)]
        found = _harmless(right, _passing(case, pairs, chosen, LOOKS))
    if not found:
        return None
    answer, _ = _asked(case, found[:1], chosen)
    return Found(found[0].text, chosen, answer)


def _changed(case: Case) -> npt.NDArray[np.bool_]:
    """Which transitions the augmentation did not leave as they are: one may augment now and then only."""
    said, seen = (np.column_stack([*motion]) for motion in case.motions())
    return np.any(said != seen, axis=1)


def _harmless(right: Case, suspects: list[Repair]) -> list[Repair]:
    """The repairs that leave right what is right."""
    if not suspects or not len(right.observed.reward):
        return suspects
    errors = _errors(right, suspects, _spread(len(right.observed.reward), RIGHT_ALREADY))
    return _agreeing(right, suspects, errors, STILL_RIGHT)


def _pairs(suspects: Sequence[Repair], errors: Rows) -> list[Repair]:
    """Two repairs, one after the other: first those that leave least to repair."""
    if not suspects:
        return []
    left = np.minimum(errors, 1e3).mean((1, 2))
    helpful = [suspects[place] for place in np.argsort(left, kind="stable")[:SECOND_OF_TWO]]
    return [
        _after(one, other)
        for number, one in enumerate(helpful[:FIRST_OF_TWO])
        for other in helpful[number + 1 :]
    ]


def _two_of(changes: list[Repair]) -> list[Repair]:
    """Any two changes of a sign."""
    return list(starmap(_after, combinations(changes, 2))) if len(changes) <= MOST_SIGNS else []


def _after(one: Repair, other: Repair) -> Repair:
    return Repair(
        f"{one.text}, and then {other.text}", lambda said, seen: other.change(one.change(said, seen), seen)
    )


def _is_idle(repair: Repair, said: Motion, seen: Motion) -> bool:
    """Whether it changes nothing."""
    return all(map(np.array_equal, repair.change(said, seen), said))


def _undoes(repair: Repair, said: Motion, seen: Motion) -> bool:
    """Whether nothing is augmented any more."""
    return all(map(np.array_equal, repair.change(said, seen), seen))


def _undoes_motion(repair: Repair, said: Motion, seen: Motion) -> bool:
    """The same of all that moves: what no step changes, such as a goal, may stay augmented."""
    moves = np.any(seen.observation != seen.next_observation, axis=0)

    def moving(motion: Motion) -> Motion:
        return Motion(motion.observation[:, moves], motion.next_observation[:, moves], motion.action)

    return all(map(np.array_equal, moving(repair.change(said, seen)), moving(seen)))


def _passing(
    case: Case, suspects: list[Repair], chosen: npt.NDArray[np.intp], looks: Sequence[tuple[int, float]]
) -> list[Repair]:
    """The repairs that the simulator agrees with."""
    for rows, share in looks:
        if suspects:
            errors = _errors(case, suspects, chosen[_spread(len(chosen), rows)])
            suspects = _agreeing(case, suspects, errors, share)
    return suspects


def _agreeing(case: Case, suspects: Sequence[Repair], errors: Rows, share: float) -> list[Repair]:
    right = (errors.max(2, initial=0) <= case.tolerance).mean(1)
    return [repair for repair, part in zip(suspects, right, strict=True) if part >= share]


def _spread(count: int, rows: int) -> npt.NDArray[np.intp]:
    """So many of them, from all over."""
    return np.unique(np.linspace(0, count - 1, min(rows, count)).astype(int))


def _errors(case: Case, suspects: Sequence[Repair], chosen: npt.NDArray[np.intp]) -> Rows:
    """Errors of every repair, transition and number."""
    if not suspects:
        return np.zeros((0, len(chosen), 1))
    answer, (observation, following, _) = _asked(case, suspects, chosen)
    simulated = flat(answer.next_observation)
    errors = np.abs(simulated - following) / np.maximum(1, np.abs(simulated))
    if answer.observation is not None:
        errors = np.hstack([errors, np.abs(flat(answer.observation) - observation)])
    if (bounds := case.simulator.observation_bounds) is not None:  # what lies beyond is not repaired
        _, seen = case.motions()
        kept = ~np.any(bounds.beyond(np.vstack([seen.observation, seen.next_observation])), axis=0)
        errors = np.hstack([errors, *(kept * bounds.beyond(one) for one in (observation, following))])
    errors = np.where(np.isnan(errors), np.inf, errors)
    return errors.reshape(len(suspects), len(chosen), -1)


def _asked(
    case: Case, suspects: Sequence[Repair], chosen: npt.NDArray[np.intp]
) -> tuple[Answer, tuple[Rows, Rows, Rows]]:
    """The simulator's answers to every repair of every transition, all in one go, and what was repaired."""
    said, seen = (motion.rows(chosen) for motion in case.motions())
    repaired = [repair.change(said, seen) for repair in suspects]
    observation, following, action = (np.concatenate(parts) for parts in zip(*repaired, strict=True))
    extras = {
        name: np.concatenate([values[chosen]] * len(suspects))
        for name, values in case.augmented.extras.items()
    }
    form = case.observed.observation
    answer = case.simulator.ask(unflat(observation, form), extras, action.astype(said.action.dtype))
    return answer, (observation, following, action)
