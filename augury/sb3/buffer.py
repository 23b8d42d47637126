"""SB3's replay buffer with an augmented one beside it: Algorithm 1 for SB3, SB3-contrib and SBX.

    add       R ← R + the transitions observed;  R̃ ← R̃ + m augmented copies of each
    sample    b from R and αb from R̃

R is SB3's own buffer. Of R̃ only the number of copies of each transition is kept, since a copy is defined by
its transition, its number and a seed: it is made again when sampled. Copies by NumPy functions are stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cloudpickle
import jax
import numpy as np
import torch as th
from gymnasium import Space, spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from augury import augmentations
from augury.augmentations.base import describe, needs_of
from augury.augmentations.goals import LATER_GOALS
from augury.errors import UserError
from augury.sb3 import checks
from augury.sb3.algorithm import asking_algorithm, seed_of_the_run, updates_in_a_row
from augury.sb3.augmenter import Augmenter, Promise, augmenter_for, steps_ahead
from augury.sb3.copies import Copies, Episodes, Integers, Places
from augury.transition import Transition

AHEAD_BYTES = 2**25
"""How much memory rows that are drawn ahead may take."""

Samples = ReplayBufferSamples | DictReplayBufferSamples
Rows = Any  # a NumPy array; a transition's fields are annotated as JAX's


class AugmentedReplayBuffer(DictReplayBuffer):
    """A replay buffer for SB3, SB3-contrib and SBX that augments what it holds.

    It takes SB3's arguments, for Box and Dict observations alike, and three more:

    augmentation: a name from the catalogue, an augmentation, or a plain function in JAX or NumPy
    ratio: m, augmented transitions per observed one; a fraction or infinity too. 1 if not said
    update_ratio: α, augmented per observed transition in a batch; a fraction too. 1 if not said

    `sample(batch_size)` returns batch_size observed and update_ratio * batch_size augmented rows; where that
    is not whole, one row more with the probability of the fraction.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Space[Any],
        action_space: Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        augmentation: str | Callable[..., Transition] | None = None,
        ratio: float | None = None,
        update_ratio: float | None = None,
        **unsupported: Any,
    ) -> None:
        checks.check_arguments(unsupported)
        default = 0.0 if augmentation is None else 1.0
        self.ratio = default if ratio is None else float(ratio)
        """m."""
        self.update_ratio = default if update_ratio is None else float(update_ratio)
        """α."""
        self.name = describe(augmentation)
        checks.check_ratios(self.name if augmentation else None, self.ratio, self.update_ratio)

        # One name serves both kinds of observations: the methods of SB3's buffer for this space are called.
        self._base = _base_for(observation_space)
        self._base.__init__(
            self,
            buffer_size,
            observation_space,
            action_space,
            device,
            n_envs,
            optimize_memory_usage,
            handle_timeout_termination,
        )
        self.drawn_observed = 0
        """Rows handed to the learner since the start."""
        self.drawn_augmented = 0
        self.augmentation: Any = augmentation
        if self.ratio == 0:
            self.augmentation = None
        elif isinstance(augmentation, str):
            self.augmentation = augmentations.make(augmentation)
            checks.check_environment(augmentation, observation_space, action_space)
        if self.augmentation is not None:
            self._start_augmenting()

    def _start_augmenting(self) -> None:
        checks.check_buffer(
            self.name,
            self.observation_space,
            self.action_space,
            self.optimize_memory_usage,
            self.handle_timeout_termination,
        )
        algorithm = asking_algorithm()
        if algorithm is not None:
            checks.check_algorithm(self.name, self.update_ratio, algorithm)
        self._needs = needs_of(self.augmentation)
        checks.check_needs(self.name, self._needs, self.observation_space)
        self._looks_ahead = any(name in LATER_GOALS for name in self._needs)
        self._seed = seed_of_the_run()
        self._draws = np.random.default_rng((self._seed, 0))
        self._row_bytes = 2 * sum(ring[0, 0].nbytes for ring in jax.tree.leaves(self.observations)) + 64
        self._extras: dict[str, Rows] = {}
        self._augmenter: Augmenter | None = None
        self._forget_everything()
        self._choose_augmenter()

    # What SB3 calls

    def add(
        self, obs: Any, next_obs: Any, action: Rows, reward: Rows, done: Rows, infos: list[dict[str, Any]]
    ) -> None:
        """Store what each environment showed, and grant it its copies."""
        if self.augmentation is None:
            self._base.add(self, obs, next_obs, action, reward, done, infos)
            return
        extras = self._extras_in(infos)
        for environment in self._left_unfinished(obs):
            self._finish_episode(environment)
        slot = self.pos
        self._base.add(self, obs, next_obs, action, reward, done, infos)
        self._added += 1
        self._fresh += self.n_envs
        self._ahead = None
        self._copies.forget(slot)
        for name, values in extras.items():
            self._extras[name][slot] = values
        if self._looks_ahead:
            for ended in np.flatnonzero(done):
                self._finish_episode(int(ended))
        else:
            self._grant(np.full(self.n_envs, slot), np.arange(self.n_envs))

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """Draw batch_size observed and update_ratio * batch_size augmented transitions."""
        if self.augmentation is None or self.update_ratio == 0:
            return self._base.sample(self, batch_size, env)
        if self._copies.held == 0:
            reason = (
                "no episode is finished yet: raise learning_starts" if self.size() else "nothing was added"
            )
            raise UserError(
                f"{self.name}: update_ratio {self.update_ratio:g} before anything was augmented; {reason}"
            )
        algorithm = asking_algorithm()
        batches = 1
        if algorithm is not None and batch_size % algorithm.batch_size == 0:
            batches = batch_size // algorithm.batch_size
        rows = batches * self._rounded(self.update_ratio * batch_size / batches)
        self.drawn_observed += batch_size
        self.drawn_augmented += rows
        if rows == 0:
            return self._base.sample(self, batch_size, env)
        # Nothing is added between the updates of a burst, so their rows can be drawn together.
        burst = updates_in_a_row(algorithm, self._fresh) // batches if algorithm is not None else 1
        making = self._next_augmented(rows, burst)
        self._fresh = 0
        observed = self._base.sample(self, batch_size, env)  # while augmented rows are being made
        drawn = _joined(observed, self._samples(making(), env), batches)
        if algorithm is not None:
            drawn = drawn._replace(discounts=th.full_like(drawn.rewards, algorithm.gamma))
        return drawn

    def _get_samples(self, batch_inds: Rows, env: VecNormalize | None = None) -> Any:
        return self._base._get_samples(self, batch_inds, env)

    def reset(self) -> None:
        """Forget everything that was added."""
        super().reset()
        if self.augmentation is not None:
            self._forget_everything()

    # What the callback and the curious look at

    @property
    def augmented_size(self) -> int:
        """Transitions that R̃ holds; an infinite m counts as one."""
        return 0 if self.augmentation is None else self._copies.held

    @property
    def generated(self) -> float:
        """Augmented transitions since the start."""
        if self.augmentation is None or self._copies.granted == 0:
            return 0.0
        return math.inf if math.isinf(self.ratio) else float(self._copies.granted)

    def observed_transitions(self, most: int) -> Transition:
        """All of R, or `most` transitions spread evenly over it, in the environment's units."""
        return self._observed_at(*np.divmod(_spread(self.size() * self.n_envs, most), self.n_envs))

    def augmented_transitions(self, most: int) -> Transition:
        """All of R̃, or `most` transitions spread evenly over it, in the environment's units."""
        if self.augmented_size == 0:
            return self.observed_transitions(0)
        return self._augmented_at(self._copies.numbered(_spread(self.augmented_size, most)))()

    # Pickling. A compiled program cannot be pickled; a function defined in a script can, by value.

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__ | {"_augmenter": None}
        try:
            return state | {"augmentation": cloudpickle.dumps(self.augmentation)}
        except Exception as error:
            raise UserError(
                f"{self.name}: cannot be saved with the buffer ({error}); "
                "build it from functions, not from methods of an environment"
            ) from error

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"augmentation": cloudpickle.loads(state["augmentation"])})
        if self.augmentation is not None:
            self._choose_augmenter()

    # The augmented buffer

    def _forget_everything(self) -> None:
        self._added = 0
        """Transitions that each environment has shown."""
        self._fresh = 0
        """Transitions since rows were last drawn."""
        self._copies = Copies(self.buffer_size, self.n_envs, self.ratio, self._seed)
        self._episodes = Episodes(self.buffer_size, self.n_envs)
        self._stored: Transition | None = None
        self._ahead = None
        """Augmented rows drawn for the updates that follow before anything is added."""

    def _choose_augmenter(self) -> None:
        """As soon as every extra's shape is known, decide how to run the augmentation."""
        if not all(name in self._extras for name in self._needed_from_infos):
            return
        extras = {name: ring[0, 0] for name, ring in self._extras.items()}
        if self._looks_ahead:
            extras |= dict.fromkeys(LATER_GOALS, self.next_observations["achieved_goal"][0, 0])
        example = jax.tree.map(lambda rows: rows[0], self._observed_at(np.zeros(1, int), np.zeros(1, int)))
        example = example._replace(extras={name: extras[name] for name in self._needs})
        self._augmenter = augmenter_for(self.augmentation, self.name, self._seed, example, self.action_space)

    def _grant(self, slots: Integers, environments: Integers) -> None:
        granted = self._copies.grant(slots, environments)
        assert self._augmenter is not None
        if not (self._augmenter.stored and math.isfinite(self.ratio) and granted.any()):
            return
        copy = np.concatenate([np.arange(count) for count in granted])
        places = Places(np.repeat(slots, granted), np.repeat(environments, granted), copy)
        made = self._made_at(places)()
        if self._stored is None:
            room = (self.buffer_size, self.n_envs, self._copies.most)
            self._stored = jax.tree.map(lambda rows: np.zeros((*room, *rows.shape[1:]), rows.dtype), made)
        for ring, rows in zip(jax.tree.leaves(self._stored), jax.tree.leaves(made), strict=True):
            ring[tuple(places)] = rows

    def _next_augmented(self, rows: int, updates: int) -> Promise:
        """Augmented rows for this update, drawn together with those of the `updates` that follow at once."""
        ahead = self._ahead
        if ahead is None or len(ahead.reward) < rows:
            count = rows * max(1, min(updates, AHEAD_BYTES // (rows * self._row_bytes)))
            making = self._augmented_at(self._copies.draw(self._draws, count, self.size()))
        else:
            making = lambda: ahead  # noqa: E731

        def take() -> Transition:
            made = making()
            self._ahead = jax.tree.map(lambda leaf: leaf[rows:], made)
            return jax.tree.map(lambda leaf: leaf[:rows], made)

        return take

    def _augmented_at(self, places: Places) -> Promise:
        if self._stored is not None:
            stored: Transition = jax.tree.map(lambda ring: ring[tuple(places)], self._stored)
            return lambda: stored
        if math.isinf(self.ratio):
            places = places._replace(copy=self._draws.integers(2**32, size=len(places.copy)))
        return self._made_at(places)

    def _made_at(self, places: Places) -> Promise:
        """The augmented transitions at these places, from the observed ones."""
        assert self._augmenter is not None
        slot, environment, copy = places.slot, places.environment, places.copy.astype(np.uint32)
        number = self._added - 1 - (self._added - 1 - slot) % self.buffer_size
        identity = (number * self.n_envs + environment).astype(np.uint32)
        extras = {name: self._extras[name][slot, environment] for name in self._needed_from_infos}
        if self._looks_ahead:
            last = self._episodes.last(slot, environment)
            goals = self.next_observations["achieved_goal"]
            if "final_achieved_goal" in self._needs:
                extras["final_achieved_goal"] = goals[last % self.buffer_size, environment]
            if "future_achieved_goal" in self._needs:
                ahead = steps_ahead(self._seed, identity, copy, last - number + 1)
                extras["future_achieved_goal"] = goals[(slot + ahead) % self.buffer_size, environment]
        observed = self._observed_at(slot, environment)._replace(extras=extras)
        return self._augmenter(identity, copy, observed)

    @property
    def _needed_from_infos(self) -> list[str]:
        return [name for name in self._needs if name not in LATER_GOALS]

    def _extras_in(self, infos: list[dict[str, Any]]) -> dict[str, Rows]:
        extras = {}
        for name in self._needed_from_infos:
            for info in infos:
                checks.check_info(self.name, name, info)
            extras[name] = np.stack([np.asarray(info[name]) for info in infos])
        if extras and not self._extras:
            self._extras = {
                name: np.zeros((self.buffer_size, *values.shape), values.dtype)
                for name, values in extras.items()
            }
            self._choose_augmenter()
        return extras

    def _left_unfinished(self, obs: Any) -> list[int]:
        """Environments whose episode does not go on with `obs`: after loading, or a reset from outside."""
        if not self._looks_ahead:
            return []
        goes_on = np.ones(self.n_envs, bool)
        for key, ring in self.next_observations.items():
            start = np.asarray(obs[key]).reshape(ring[0].shape).astype(ring.dtype)
            goes_on &= (start == ring[self.pos - 1]).reshape(self.n_envs, -1).all(1)
        return [int(e) for e in np.flatnonzero(self._episodes.running(self._added) & ~goes_on)]

    def _finish_episode(self, environment: int) -> None:
        slots = self._episodes.finish(environment, self._added - 1)
        self._grant(slots, np.full(len(slots), environment))

    def _rounded(self, number: float) -> int:
        """A whole number that is `number` on average."""
        return math.floor(number) + int(self._draws.random() < number % 1)

    # Between SB3's rows and transitions in the environment's units

    def _observed_at(self, slot: Integers, environment: Integers) -> Transition:
        def rows(ring: Rows, space: Any) -> Rows:
            return ring[slot, environment].reshape(-1, *space.shape)

        action = rows(self.actions, self.action_space)
        if isinstance(self.action_space, spaces.Box):
            centre, half_width = _centre_and_half_width(self.action_space)
            action = centre + half_width * action
        done: Rows = self.dones[slot, environment] > 0
        timeout: Rows = self.timeouts[slot, environment] > 0
        return Transition(
            observation=_map(rows, self.observations, self.observation_space),
            action=action,
            reward=self.rewards[slot, environment],  # type: ignore[arg-type]
            next_observation=_map(rows, self.next_observations, self.observation_space),
            terminated=done & ~timeout,
            truncated=timeout,
            extras={},
        )

    def _samples(self, transitions: Transition, env: VecNormalize | None) -> Samples:
        """Rows as SB3 hands them to a learner: actions scaled, observations and rewards normalised."""
        action = transitions.action
        if isinstance(self.action_space, spaces.Box):
            centre, half_width = _centre_and_half_width(self.action_space)
            action = np.clip((action - centre) / half_width, -1, 1)
        observations, next_observations = (
            _map(self.to_torch, self._normalize_obs(_map(_as_stored, values, rings), env))
            for values, rings in (
                (transitions.observation, self.observations),
                (transitions.next_observation, self.next_observations),
            )
        )
        kind = DictReplayBufferSamples if self._base is DictReplayBuffer else ReplayBufferSamples
        return kind(
            observations=observations,
            actions=self.to_torch(_as_stored(action, self.actions)),
            next_observations=next_observations,
            # An episode that was truncated would have gone on: only termination ends the return.
            dones=self.to_torch(_as_stored(transitions.terminated, self.dones)[:, None]),
            rewards=self.to_torch(
                self._normalize_reward(_as_stored(transitions.reward, self.rewards)[:, None], env)
            ),
        )


def _base_for(observation_space: Space[Any]) -> Any:
    return DictReplayBuffer if isinstance(observation_space, spaces.Dict) else ReplayBuffer


def _map(function: Callable[..., Any], values: Any, *others: Any) -> Any:
    """`function` of an array, or of every entry of a dict of arrays."""
    if isinstance(values, dict):
        return {key: function(values[key], *(other[key] for other in others)) for key in values}
    return function(values, *others)


def _as_stored(rows: Rows, ring: Rows) -> Rows:
    """Rows with the shape and dtype that SB3 keeps them in."""
    return rows.reshape(-1, *ring.shape[2:]).astype(ring.dtype)


def _joined(observed: Any, augmented: Any, batches: int) -> Any:
    """Observed and augmented rows together, in every one of several batches."""

    def join(first: Any, second: Any) -> Any:
        if isinstance(first, dict):
            return {key: join(first[key], second[key]) for key in first}
        if batches == 1:
            return th.cat((first, second))
        parts = [part.reshape(batches, -1, *part.shape[1:]) for part in (first, second)]
        return th.cat(parts, 1).flatten(0, 1)

    fields = [
        None if first is None else join(first, second)
        for first, second in zip(observed, augmented, strict=True)
    ]
    return type(observed)(*fields)


def _spread(total: int, most: int) -> Integers:
    """Up to `most` numbers below `total`, evenly spread."""
    count = min(total, most)
    return np.arange(count) * total // max(count, 1)


def _centre_and_half_width(space: spaces.Box) -> tuple[Rows, Rows]:
    return (space.high + space.low) / 2, (space.high - space.low) / 2
