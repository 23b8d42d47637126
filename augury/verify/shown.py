"""A whole number that is observed is a vector of one for the verifier; an augmentation gets the number."""

from __future__ import annotations

from augury.transition import Transition
from augury.verify.base import Simulator


def as_shown(simulator: Simulator, transition: Transition) -> Transition:
    """Rows as the environment shows them."""
    return _reshaped(transition, ()) if simulator.observes_a_number else transition


def as_vectors(transition: Transition) -> Transition:
    """Rows as the verifier compares them."""
    is_number = not isinstance(transition.observation, dict) and transition.observation.ndim == 1
    return _reshaped(transition, (1,)) if is_number else transition


def _reshaped(transition: Transition, shape: tuple[int, ...]) -> Transition:
    before, after = (
        observation.reshape(len(transition.reward), *shape)
        for observation in (transition.observation, transition.next_observation)
    )
    return transition._replace(observation=before, next_observation=after)
