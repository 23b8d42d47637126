"""R̃: the augmented transitions of what a buffer holds.

`replay.copies` defines them by a seed. So all that is kept is how many copies each transition has; a copy is
made again whenever it is drawn. Those of NumPy functions, which are slow, are made when they are first drawn,
and kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cloudpickle
import jax
import numpy as np
import numpy.typing as npt

from augury.augmentations.base import needs_of
from augury.augmentations.goals import LATER_GOALS
from augury.errors import UserError
from augury.replay import copies
from augury.replay.episodes import EpisodesOnHost, Integers
from augury.replay.ring import number_at
from augury.sb3 import checks
from augury.sb3.augmenter import Augmenter, Promise, augmenter_for
from augury.sb3.keys import steps_ahead
from augury.sb3.ledger import Ledger, Places
from augury.sb3.n_step import Stretches, check_joined, slots_of
from augury.sb3.samples import Rows, as_shown, needs_64_bits, observed_at
from augury.transition import Transition

if TYPE_CHECKING:
    from augury.sb3.buffer import AugmentedReplayBuffer

Drawn = Transition | Stretches
"""Augmented rows: transitions, or where returns are of n steps, stretches of them."""
DRAWS = (0, 0, 1)
"""Words beside the seed of the generator that draws; those of NumPy functions have two words in all."""
AHEAD_BYTES = 2**25
"""How much memory rows that are drawn ahead may take."""


class Augmented:
    """The augmented transitions of a buffer R, which reports everything it adds."""

    def __init__(
        self, buffer: AugmentedReplayBuffer, augmentation: Any, name: str, ratio: float, seed: int
    ) -> None:
        self._buffer, self.augmentation, self._name = buffer, augmentation, name
        self._ratio, self._seed = ratio, seed
        needs = needs_of(augmentation)
        checks.check_needs(name, needs, buffer.observation_space)
        self._later = [extra for extra in needs if extra in LATER_GOALS]
        self._from_infos = [extra for extra in needs if extra not in LATER_GOALS]
        self._random = np.random.default_rng((seed, *DRAWS))
        self._row_bytes = 64 + 2 * sum(ring[0, 0].nbytes for ring in jax.tree.leaves(buffer.observations))

        self._added = 0
        """Transitions that each environment has added."""
        sizes = buffer.buffer_size, buffer.n_envs
        self.ledger = Ledger(*sizes, ratio, seed, looking_ahead=bool(self._later))
        self._episodes = EpisodesOnHost(*sizes)
        self._extras: dict[str, Rows] = {}
        self._store: Transition | None = None
        self._kept: npt.NDArray[np.bool_] | None = None
        """Which copies are in the store, where copies are kept: (slots, environments, copies)."""
        self._ahead: Drawn | None = None
        """Rows drawn for the updates that follow before anything is added."""
        self._burst, self._draws = 1, 0
        """Draws between the last two additions, and since the last one."""
        self._augmenter: Augmenter | None = None
        self.choose_augmenter()

    def choose_augmenter(self) -> None:
        """As soon as the shapes of all extras are known, decide how to run the augmentation."""
        if not all(name in self._extras for name in self._from_infos):
            return
        first = np.zeros(1, np.int64)
        example: Transition = jax.tree.map(lambda rows: rows[0], observed_at(self._buffer, first, first))
        extras = {name: self._extras[name][0, 0] for name in self._from_infos}
        if self._later:
            extras |= dict.fromkeys(self._later, example.next_observation["achieved_goal"])
        self._augmenter = augmenter_for(
            self.augmentation,
            self._name,
            self._seed,
            example._replace(extras=extras),
            checks.limits_of(self._buffer.observation_space, self._buffer.action_space),
            needs_64_bits(self._buffer.observation_space),
        )
        keeps = self._augmenter.slow and math.isfinite(self._ratio) and self._buffer.n_steps == 1
        if keeps and self._kept is None:
            self._kept = np.zeros((self._buffer.buffer_size, self._buffer.n_envs, self.ledger.most), bool)

    def before_add(self, obs: Any, infos: list[dict[str, Any]]) -> None:
        """Check new transitions, and close episodes that they do not continue: after loading, or a reset."""
        values = {
            name: checks.checked_extra(self._name, name, infos, self._extras.get(name))
            for name in self._from_infos
        }
        if values and not self._extras:
            slots = self._buffer.buffer_size
            self._extras = {name: np.zeros((slots, *rows.shape), rows.dtype) for name, rows in values.items()}
            self.choose_augmenter()
        if self._later:
            for environment in np.flatnonzero(self._episodes.running(self._added) & ~self._goes_on(obs)):
                self._finish_episode(int(environment))
        for name, rows in values.items():
            self._extras[name][self._buffer.pos] = rows

    def after_add(self, slot: int, done: Rows) -> None:
        """Grant copies to what was added; where they look ahead, when their episode has ended."""
        self.ledger.add(self._added)
        self._added += 1
        if self._draws:
            self._burst, self._draws, self._ahead = self._draws, 0, None
        if self._kept is not None:
            self._kept[slot] = False
        if self._later:
            for environment in np.flatnonzero(done):
                self._finish_episode(int(environment))
        else:
            environments = self._buffer.n_envs
            self.ledger.grant(np.full(environments, slot), np.arange(environments))

    def draw(self, rows: int) -> Callable[[], Drawn]:
        """Start to make rows for an update; for its whole burst, since nothing is added in between."""
        ahead = self._ahead
        if ahead is None or len(jax.tree.leaves(ahead)[0]) < rows:
            extras = sum(ring[0, 0].nbytes for ring in self._extras.values())
            most = AHEAD_BYTES // (rows * (self._row_bytes + extras) * self._buffer.n_steps)
            updates = min(self._burst - self._draws, most)
            places = self.ledger.draw(self._random, rows * max(updates, 1), self._buffer.size())
            if math.isinf(self._ratio):
                places = places._replace(copy=self._random.integers(copies.ENDLESS, size=len(places.copy)))
            making: Callable[[], Drawn] = (
                self._at(places) if self._buffer.n_steps == 1 else self._from(places)
            )
        else:
            making = lambda: ahead  # noqa: E731
        self._draws += 1

        def take() -> Drawn:
            made = making()
            self._ahead = jax.tree.map(lambda leaf: leaf[rows:], made)
            return jax.tree.map(lambda leaf: leaf[:rows], made)

        return take

    def numbered(self, index: Integers) -> Transition:
        """The transitions with these numbers, counted from 0 to the size of R̃."""
        return self._at(self.ledger.numbered(index))()

    def sources(self, index: Integers) -> Transition:
        """The observed transitions that these are copies of."""
        places = self.ledger.numbered(index)
        return observed_at(self._buffer, places.slot, places.environment)

    def rounded(self, number: float) -> int:
        """A whole number that is `number` on average."""
        return math.floor(number) + int(self.chance() < number % 1)

    def chance(self) -> float:
        """A number from [0, 1)."""
        return self._random.random()

    def emptied(self) -> Augmented:
        """The same for a buffer that has been emptied."""
        return Augmented(self._buffer, self.augmentation, self._name, self._ratio, self._seed)

    def __getstate__(self) -> dict[str, Any]:
        try:  # by value, since it may be a function that was defined in a script
            augmentation = cloudpickle.dumps(self.augmentation)
        except Exception as error:
            raise UserError(
                f"{self._name}: cannot be saved with the buffer ({error}); "
                "build it from functions, not from methods of an environment"
            ) from error
        return self.__dict__ | {"augmentation": augmentation, "_augmenter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"augmentation": cloudpickle.loads(state["augmentation"])})

    def _at(self, places: Places) -> Promise:
        """The augmented transitions at these positions: made again, or made once and kept."""
        if self._kept is None:
            return self._made_at(places)
        missing = ~self._kept[tuple(places)]
        if missing.any():
            self._keep(Places(*np.unique(np.stack(places)[:, missing], axis=1)), self._kept)
        kept: Transition = jax.tree.map(lambda ring: ring[tuple(places)], self._store)
        return lambda: kept

    def _keep(self, places: Places, kept: npt.NDArray[np.bool_]) -> None:
        made = self._made_at(places)()
        if self._store is None:
            self._store = jax.tree.map(
                lambda rows: np.zeros((*kept.shape, *rows.shape[1:]), rows.dtype), made
            )
        for ring, rows in zip(jax.tree.leaves(self._store), jax.tree.leaves(made), strict=True):
            ring[tuple(places)] = rows
        kept[tuple(places)] = True

    def _from(self, places: Places) -> Callable[[], Stretches]:
        """The augmented stretches that begin at these positions."""
        slots, counts = slots_of(self._buffer, places.slot, places.environment)
        following = Places(
            slots.reshape(-1),
            *(np.repeat(part, slots.shape[1]) for part in (places.environment, places.copy)),
        )
        making = self._made_at(following, np.repeat(places.slot, slots.shape[1]))

        def made() -> Stretches:
            every = jax.tree.map(lambda rows: rows.reshape(*slots.shape, *rows.shape[1:]), making())
            stretches = Stretches(every, counts)
            check_joined(self._name, stretches)
            return stretches

        return made

    def _made_at(self, places: Places, keyed_by: Integers | None = None) -> Promise:
        """The augmented transitions at these positions, with their own keys or with those of other slots."""
        assert self._augmenter is not None
        buffer, (slot, environment, _) = self._buffer, places
        number = number_at(slot if keyed_by is None else keyed_by, self._added, buffer.buffer_size)
        identity = copies.identity(number, environment, buffer.n_envs)
        copy = places.copy.astype(np.uint32)
        shown = {name: ring[slot, environment] for name, ring in self._extras.items()}
        for goal in self._later:
            remaining = self._episodes.remaining(slot, environment, number)
            ahead = steps_ahead(goal, self._seed, identity, copy, remaining)
            achieved: Any = buffer.next_observations["achieved_goal"]
            later = {"achieved_goal": achieved[(slot + ahead) % buffer.buffer_size, environment]}
            shown[goal] = as_shown(buffer, later)["achieved_goal"]
        return self._augmenter(identity, copy, observed_at(buffer, slot, environment), shown)

    def _goes_on(self, obs: dict[str, Rows]) -> Rows:
        """In which environments `obs` continues an unfinished episode."""
        goes_on = np.ones(self._buffer.n_envs, bool)
        rings: Any = self._buffer.next_observations
        for key, ring in rings.items():
            start = np.asarray(obs[key]).reshape(ring[0].shape).astype(ring.dtype)
            goes_on &= (start == ring[self._buffer.pos - 1]).reshape(len(goes_on), -1).all(1)
        return goes_on

    def _finish_episode(self, environment: int) -> None:
        slots = self._episodes.finish(environment, self._added - 1)
        self.ledger.grant(slots, np.full(len(slots), environment))
