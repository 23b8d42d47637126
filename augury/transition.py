"""The one type that flows through everything: a transition."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

Array = jax.Array
Key = jax.Array
Observation = Any  # an array, or a dict of arrays: JAX treats both as pytrees


def seen(observation: Observation) -> Any:
    """What a policy sees of an observation, NumPy's or JAX's, as one vector or as rows of vectors.

    Of a goal observation that is `observation`, then `desired_goal`: what was achieved so far is part of
    `observation` already. Of any other dict it is all entries, in the order of their names.
    """
    if isinstance(observation, dict) and {"observation", "desired_goal"} <= observation.keys():
        parts = [observation["observation"], observation["desired_goal"]]
    else:
        parts = jax.tree.leaves(observation)
    return parts[0] if len(parts) == 1 else parts[0].__array_namespace__().concatenate(parts, -1)


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
