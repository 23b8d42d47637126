"""Is the augmentation still teaching anything? What a critic has not learned yet of copies and originals.

    y         = r + γ (1 - terminated) Q'(s', π(s'))    one backup, with the target critic Q'
    error     = E[(y - Q(s, a))²] / Var y               of copies, and of the observed transitions behind them
    asymmetry = E[(Q(f(s, a)) - Q(s, a))²] / Var Q      if copies keep their reward (`replay.asymmetry`)

While copies have the larger error, they hold what the critic has not learned yet. A critic whose asymmetry is
0 has learned all that a symmetry can teach. What learners add to y, such as SAC's entropy, is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces

from augury.errors import UserError
from augury.replay.asymmetry import FEWEST, asymmetry, keeps_reward
from augury.sb3.buffer import AugmentedReplayBuffer
from augury.sb3.samples import as_samples

LOOKED_AT = 512
"""Copies."""
CRITICS = (("critic", "critic_target"), ("q_net", "q_net_target"), ("quantile_net", "quantile_net_target"))
"""Where algorithms of SB3 and SB3-contrib keep theirs."""

Critic = Callable[..., Any]


class Rated(NamedTuple):
    """Transitions as a critic sees them, row by row."""

    values: Any
    backups: Any


def teaching(model: Any, buffer: AugmentedReplayBuffer) -> dict[str, float]:
    """What a model's critic has left to learn, by name.

    Nothing where it is not known: before there are copies, for critics of SBX, where all values are equal.
    """
    critics = _critics_of(model)
    if critics is None or buffer.augmented_size < FEWEST:
        return {}
    sources, copies = buffer.augmented_pairs(LOOKED_AT)
    training = model.policy.training
    model.policy.set_training_mode(False)
    try:
        with th.no_grad():
            observed, augmented = (_rated(model, *critics, buffer, rows) for rows in (sources, copies))
    finally:
        model.policy.set_training_mode(training)
    spread = float(np.concatenate([observed.backups, augmented.backups]).var())
    if not spread > 0 or not observed.values.var() > 0:
        return {}
    found = {
        "observed_value_error": _error(observed) / spread,
        "augmented_value_error": _error(augmented) / spread,
    }
    if _keep_reward(sources, copies):
        with suppress(UserError):  # values that hardly differ are no measure
            found["asymmetry"] = asymmetry(observed.values, augmented.values)
    return found


def _critics_of(model: Any) -> tuple[Critic, Critic] | None:
    """The critic and its target; some algorithms have no target."""
    for name, target in CRITICS:
        if isinstance(critic := getattr(model, name, None), th.nn.Module):
            return critic, getattr(model, target, critic)
    return None


def _rated(model: Any, critic: Critic, target: Critic, buffer: AugmentedReplayBuffer, rows: Any) -> Rated:
    """Q(s, a) and y."""
    samples = as_samples(buffer, rows, model.get_vec_normalize_env())
    following = model.policy._predict(samples.next_observations, deterministic=True)
    afterwards = _values(model, target, samples.next_observations, following)
    backups = samples.rewards[:, 0] + (1 - samples.dones[:, 0]) * model.gamma * afterwards
    values = _values(model, critic, samples.observations, samples.actions)
    return Rated(*(rows.cpu().numpy().astype(float) for rows in (values, backups)))


def _values(model: Any, critic: Critic, observations: Any, actions: Any) -> Any:
    """The smallest of several critics, as targets take it; of quantiles the mean: (rows,)."""
    if isinstance(model.action_space, spaces.Discrete):
        values = critic(observations)  # (rows, actions), or (rows, quantiles, actions)
        values = values.mean(dim=1) if values.ndim > 2 else values
        return values.gather(1, actions.long().reshape(-1, 1))[:, 0]
    values = critic(observations, actions)  # several (rows, 1), or (rows, critics, quantiles)
    if isinstance(values, tuple):
        return th.cat(values, dim=1).min(dim=1).values
    return values.mean(dim=(1, 2))


def _error(rated: Rated) -> float:
    return float(((rated.backups - rated.values) ** 2).mean())


def _keep_reward(sources: Any, copies: Any) -> bool:
    kept = keeps_reward(sources.reward, copies.reward, float(np.ptp(sources.reward)))
    return kept and np.array_equal(sources.terminated, copies.terminated)
