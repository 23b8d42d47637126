"""SB3's replay buffer with an augmented one beside it: Algorithm 1 for SB3, SB3-contrib and SBX.

    add       R ← R + the transitions observed;  R̃ ← R̃ + m augmented copies of each
    sample    b from R and αb from R̃, one behind the other or interleaved (`batches.py`)

R is SB3's own buffer, whose methods do what they always did; R̃ is in `augmented.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch as th
from gymnasium import Space, spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecNormalize

from augury.augmentations.base import describe
from augury.errors import UserError
from augury.replay.survey import spread
from augury.sb3 import checks
from augury.sb3.algorithm import (
    ask_for_every_row,
    calling_algorithm,
    seed_of_the_run,
    takes_more_rows,
    wants_exact_rows,
)
from augury.sb3.augmented import Augmented
from augury.sb3.augmenter import named
from augury.sb3.batches import behind, interleaved
from augury.sb3.environment import moved_channels, name_of
from augury.sb3.n_step import Stretches, as_n_step_samples
from augury.sb3.samples import Rows, as_samples, joined, observed_at
from augury.transition import Transition

DISCOUNT = 0.99
"""γ where nobody says it, as in SB3's NStepReplayBuffer."""


class AugmentedReplayBuffer(DictReplayBuffer):
    """A replay buffer for SB3, SB3-contrib and SBX that augments what it holds.

    It takes the arguments of SB3's buffers, for Box and Dict observations and n-step returns, and four more:

    - `augmentation`: a name from the catalogue, a `module:name`, an augmentation, or a plain function in JAX
      or NumPy
    - `ratio`: m, augmented transitions per observed one; fractions and infinity are possible. Default 1
    - `update_ratio`: α, augmented rows per observed row in a batch; fractions are possible. Default 1
    - `batch_size_counts`: which rows `batch_size` counts. By default "observed" for the algorithms of SB3
      itself, and where no algorithm builds the buffer; "all" for every other algorithm

    With "observed", `sample(batch_size)` returns `batch_size` observed and then `update_ratio * batch_size`
    augmented rows. Algorithms of SBX and SB3-contrib, which count on as many rows as they ask for, then have
    their `train` wrapped. With "all" it returns `batch_size` rows, so that any algorithm takes them as it is.
    Observed and augmented ones are interleaved: any part of a batch has its share of both. A number of rows
    that is not whole is one more with the probability of the fraction.
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
        batch_size_counts: Literal["observed", "all"] | None = None,
        n_steps: int = 1,
        gamma: float | None = None,
        **unsupported: Any,
    ) -> None:
        checks.check_arguments(unsupported)
        checks.check_n_steps(n_steps, gamma, observation_space)
        checks.check_counts(batch_size_counts)
        checks.check_augmentation(augmentation)
        name = None if augmentation is None else describe(augmentation)
        default = 0.0 if name is None else 1.0
        self.ratio = checks.checked_ratio(name, "ratio", default if ratio is None else ratio)
        """m."""
        update_ratio = default if update_ratio is None else update_ratio
        self.update_ratio = checks.checked_ratio(name, "update_ratio", update_ratio)
        """α."""
        self._counts_asked_for = batch_size_counts
        self.batch_size_counts = batch_size_counts or "observed"

        self.n_steps = n_steps
        owner = calling_algorithm("_setup_model")
        discount = DISCOUNT if owner is None else owner.gamma
        self.gamma = discount if gamma is None else gamma
        """Of n-step returns; by default the algorithm's own."""

        if name is not None and self.ratio > 0:
            checks.check_buffer(
                name, observation_space, action_space, optimize_memory_usage, handle_timeout_termination
            )
        self.observation_space = observation_space  # type: ignore[assignment]  # which tells the base
        sizes = buffer_size, observation_space, action_space, device, n_envs
        self._base.__init__(self, *sizes, optimize_memory_usage, handle_timeout_termination)
        self.moved_channels: frozenset[str] = frozenset()
        """Images whose channels SB3 has moved to the front: their entries of a dict, or ""."""
        self.drawn_observed = 0
        """Rows handed to the learner since the start."""
        self.drawn_augmented = 0
        self._batch: tuple[int, int] | None = None
        """Observed rows of a batch and all of its rows, while an algorithm asks for all."""
        self._augmented: Augmented | None = None
        """R̃, unless there is nothing to augment."""
        self._waiting: tuple[Any, int] | None = None
        """Augmentation and seed of an R̃ that waits for its environment."""
        if name is None or self.ratio == 0:
            return
        self.name = name
        self._waiting = augmentation, seed_of_the_run()
        owner = self._met_owner()
        if owner is None or owner.env is not None:
            self._start(owner)

    @property
    def _base(self) -> Any:
        """SB3's buffer for this kind of observations, so that one name serves both kinds."""
        return DictReplayBuffer if isinstance(self.observation_space, spaces.Dict) else ReplayBuffer

    def add(
        self, obs: Any, next_obs: Any, action: Rows, reward: Rows, done: Rows, infos: list[dict[str, Any]]
    ) -> None:
        """Store what each environment showed, and grant it its copies."""
        slot = self.pos
        if self._waiting is not None:
            self._start(calling_algorithm("collect_rollouts"))
        if self._augmented is not None:
            self._augmented.before_add(obs, infos)
        self._base.add(self, obs, next_obs, action, reward, done, infos)
        if self._augmented is not None:
            self._augmented.after_add(slot, done)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Any:
        """Draw batch_size transitions, and update_ratio augmented ones for each or among them."""
        if self._augmented is None or self.update_ratio == 0:
            return self._base.sample(self, batch_size, env)
        self._check_draw()
        is_augmented = self._layout(batch_size)
        augmented_rows = int(is_augmented.sum())
        observed_rows = len(is_augmented) - augmented_rows
        self.drawn_observed += observed_rows
        self.drawn_augmented += augmented_rows
        if augmented_rows == 0:
            return self._base.sample(self, observed_rows, env)
        making = self._augmented.draw(augmented_rows)
        observed = self._base.sample(self, observed_rows, env)  # while the others are being made
        made = making()
        augmented = (
            as_n_step_samples(self, made, env) if isinstance(made, Stretches) else as_samples(self, made, env)
        )
        return joined(observed, augmented, is_augmented)

    def _get_samples(self, batch_inds: Rows, env: VecNormalize | None = None) -> Any:
        kind: Any = self._base if self.n_steps == 1 else NStepReplayBuffer
        return kind._get_samples(self, batch_inds, env)

    @contextmanager
    def every_row(self, batch_size: int) -> Iterator[int]:
        """How many rows a batch will hold. Inside, `sample` is asked for all of them, observed and augmented.

        It may be asked for several batches at once; each then has its observed and its augmented rows.
        """
        rows = batch_size
        if self._augmented is not None and self.batch_size_counts == "observed":
            rows += self._augmented.rounded(self.update_ratio * batch_size)
        self._batch = batch_size, rows
        try:
            yield rows
        finally:
            self._batch = None

    def _layout(self, asked: int) -> Rows:
        """Which rows of those to be returned are augmented."""
        assert self._augmented is not None
        if self.batch_size_counts == "all":
            return interleaved(asked, self.update_ratio, self._augmented.chance())
        if self._batch is None:
            return behind(asked, self._augmented.rounded(self.update_ratio * asked))
        observed, rows = self._batch
        if asked % rows:
            raise UserError(
                f"{self.name}: train was told to ask for {rows} rows, of which {observed} are observed, and "
                f"asks for {asked}; use batch_size_counts='all'"
            )
        return behind(observed, rows - observed, asked // rows)

    def _check_draw(self) -> None:
        if self.augmented_size == 0:
            reason = "nothing was added"
            if self.size():
                remedy = "buffer_size" if self.full else "learning_starts"
                which = "that it holds" if self.ratio >= 1 else "with an augmented transition"
                reason = f"no episode {which} has ended; raise {remedy}"
            asked = f"update_ratio {self.update_ratio:g} before anything was augmented"
            raise UserError(f"{self.name}: {asked}: {reason}")
        if self._batch is not None or self.batch_size_counts == "all":
            return
        learner = calling_algorithm("train")
        if learner is not None and not self._may_give_more(learner):
            raise UserError(
                f"{self.name}: {type(learner).__name__} may count on as many rows as it asks for: give this "
                "buffer batch_size_counts='all', or let the model build it (replay_buffer_class)"
            )

    def _may_give_more(self, learner: OffPolicyAlgorithm) -> bool:
        """Whether a learner that did not build this buffer gets more rows than it asks for."""
        if self._counts_asked_for is None:
            return takes_more_rows(learner)
        return not wants_exact_rows(learner)

    def reset(self) -> None:
        """Forget everything that was added."""
        super().reset()
        if self._augmented is not None:
            self._augmented = self._augmented.emptied()

    def _met_owner(self) -> OffPolicyAlgorithm | None:
        """The algorithm that builds or loads this buffer, after it was looked at."""
        owner = calling_algorithm("_setup_model", "load_replay_buffer")
        if owner is not None:
            checks.check_algorithm(self.name, owner, self.n_steps)
            if self._counts_asked_for is None:
                self.batch_size_counts = "observed" if takes_more_rows(owner) else "all"
            if self.batch_size_counts == "observed":
                ask_for_every_row(owner)
        return owner

    def _start(self, owner: OffPolicyAlgorithm | None) -> None:
        """Set R̃ up. A model that is loaded may get its environment later: then with the first transition."""
        assert self._waiting is not None
        (augmentation, seed), self._waiting = self._waiting, None
        env = None if owner is None else owner.env
        if env is not None:
            self.moved_channels = moved_channels(env)
        if isinstance(augmentation, str):
            checks.check_environment(augmentation, self.observation_space, self.action_space)
            augmentation = named(augmentation, None if env is None else name_of(env))
        self._augmented = Augmented(self, augmentation, self.name, self.ratio, seed)

    # What the callback and the curious look at

    @property
    def augmented_size(self) -> int:
        """Transitions that R̃ holds; an infinite m counts as one."""
        return 0 if self._augmented is None else self._augmented.ledger.held

    @property
    def generated(self) -> float:
        """Augmented transitions since the start."""
        granted = 0 if self._augmented is None else self._augmented.ledger.granted
        return math.inf if granted and math.isinf(self.ratio) else float(granted)

    def observed_transitions(self, most: int) -> Transition:
        """All of R, or `most` transitions spread evenly over it, in the environment's units."""
        index, counted = spread(np.asarray(self.size() * self.n_envs), most)
        return observed_at(self, *np.divmod(index[counted], self.n_envs))

    def augmented_transitions(self, most: int) -> Transition:
        """All of R̃, or `most` transitions spread evenly over it, in the environment's units."""
        if self._augmented is None or self.augmented_size == 0:
            none = np.zeros(0, np.int64)
            return observed_at(self, none, none)
        index, counted = spread(np.asarray(self.augmented_size), most)
        return self._augmented.numbered(index[counted])

    def augmented_pairs(self, most: int) -> tuple[Transition, Transition]:
        """The same of R̃, behind the observed transitions that they are copies of."""
        assert self._augmented is not None
        index, counted = spread(np.asarray(self.augmented_size), most)
        return self._augmented.sources(index[counted]), self._augmented.numbered(index[counted])

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._augmented is not None:
            self._met_owner()
            self._augmented.choose_augmenter()
