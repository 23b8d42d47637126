"""The one type that flows through everything: a transition."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

Array = jax.Array
Key = jax.Array
Observation = Any  # an array, or a dict of arrays: JAX treats both as pytrees


class Transition(NamedTuple):
    """What one environment step showed; every field may carry leading batch axes."""

    observation: Observation
    action: Array
    """In the environment's own units."""
    reward: Array
    next_observation: Observation
    """The true one: at the end of an episode it is the final observation, not the next start."""
    terminated: Array
    """The task ended here, so nothing is bootstrapped."""
    truncated: Array
    """The episode was cut here (a time limit), so the value of what follows still counts."""
    extras: dict[str, Array]
    """Named quantities beyond the observation that an augmentation says it needs."""
