"""Transitions of whole episodes, and which of them are worth asking the simulator about.

A mistake may show only at a joint's limit, at a wall, in contact, or where an episode ends. So more is played
than is asked about. Half of what is asked about is drawn evenly: it says how often something is wrong. The
other half is chosen where mistakes hide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from augury.transition import Transition
from augury.verify.base import Flags, Indices, Played, Simulator, joined
from augury.verify.observations import flat

LARGEST_POOL = 4_000
"""Transitions that are played where fewer are asked about."""
BEFORE_THE_END = 3
"""Transitions of an episode that count as its end."""
OUTERMOST = 0.005
"""Share of the transitions, on either side, that is extreme in one of their numbers."""


def gathered(rounds: Sequence[Transition], cut: npt.NDArray[np.bool_] | None = None) -> Played:
    """Rounds of environments side by side; `cut` says where more episodes were left."""
    over = np.stack([one.terminated | one.truncated for one in rounds])
    return Played(joined(rounds), *numbered(over if cut is None else over | cut))


def numbered(over: npt.NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Of steps and environments: which episode each transition is of, and how many follow in it."""
    count, copies = over.shape
    before = np.vstack([np.zeros((1, copies), int), np.cumsum(over, 0)[:-1]])
    episode = before * copies + np.arange(copies)
    remaining = np.zeros((count, copies), int)
    for number in reversed(range(count - 1)):
        remaining[number] = np.where(over[number], 0, remaining[number + 1] + 1)
    return np.unique(episode.ravel(), return_inverse=True)[1], remaining.ravel()


def together(parts: Sequence[Played]) -> Played:
    """The episodes of all."""
    firsts = np.cumsum([0, *(int(part.episode.max()) + 1 for part in parts)])
    numbered = [
        part._replace(episode=part.episode + first) for part, first in zip(parts, firsts, strict=False)
    ]
    names = set.intersection(*(set(part.transition.extras) for part in parts))
    return Played(
        joined([_with(part.transition, names) for part in numbered]),
        np.concatenate([part.episode for part in numbered]),
        np.concatenate([part.remaining for part in numbered]),
    )


def pool_size(samples: int, goals: bool = False) -> int:
    """How many transitions to play for so many to be asked about; manipulation is costly, and has goals."""
    return samples if goals else max(samples, min(4 * samples, LARGEST_POOL))


def choose(simulator: Simulator, played: Played, samples: int, seed: int) -> tuple[Indices, Flags]:
    """Which transitions to ask about, and which of these were drawn evenly."""
    count = len(played.episode)
    if count <= samples:
        return np.arange(count), np.ones(count, bool)
    generator = np.random.default_rng(seed)
    order = generator.permutation(count)
    evenly = order[: samples - samples // 2]
    taken = np.zeros(count, bool)
    taken[evenly] = True
    for place in _by_turns(hiding_places(simulator, played), generator):
        if taken.sum() == samples:
            break
        taken[place] = True
    taken[order[~taken[order]][: samples - taken.sum()]] = True
    chosen = np.flatnonzero(taken)
    return chosen, np.isin(chosen, evenly)


def hiding_places(simulator: Simulator, played: Played) -> list[Indices]:
    """Transitions at which mistakes are worth looking for, by kind."""
    transition = played.transition
    ended = transition.terminated | transition.truncated
    ending = np.isin(played.episode, played.episode[ended]) & (played.remaining < BEFORE_THE_END)
    places = [np.flatnonzero(ending), np.flatnonzero(ended)]
    known = (simulator.in_contact(transition), simulator.at_limit(transition))
    places += [np.flatnonzero(flags) for flags in known if flags is not None]
    numbers = np.column_stack(
        [flat(transition.observation), flat(transition.next_observation), transition.reward]
    )
    return [*places, *_extremes(numbers)]


def _extremes(numbers: npt.NDArray[Any]) -> list[Indices]:
    """The outermost rows of every column that varies, those with the smallest values and the largest."""
    few = max(1, int(OUTERMOST * len(numbers)))
    varying = numbers[:, np.ptp(numbers, axis=0) > 0]
    orders = np.argsort(varying, axis=0, kind="stable").T
    return [side for order in orders for side in (order[:few], order[-few:])]


def _by_turns(places: Sequence[Indices], generator: np.random.Generator) -> list[int]:
    """One of each kind after the other, until all are used up."""
    shuffled = [generator.permutation(place) for place in places if len(place)]
    longest = max((len(place) for place in shuffled), default=0)
    return [int(place[turn]) for turn in range(longest) for place in shuffled if turn < len(place)]


def _with(transition: Transition, names: set[str]) -> Transition:
    return transition._replace(extras={name: transition.extras[name] for name in sorted(names)})
