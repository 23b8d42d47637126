"""What observed transitions show, and what they do not: a verdict is about no more than that."""

from __future__ import annotations

import numpy as np

from augury.transition import Transition
from augury.verify.base import Flags, Simulator
from augury.verify.reports import Visit

TERMINATION, TRUNCATION, CONTACT, LIMIT = "termination", "truncation", "contact", "a joint at its limit"


def visited(simulator: Simulator, observed: Transition) -> tuple[Visit, ...]:
    """How many transitions show each; what nobody can know of this environment is left out."""
    flags: dict[str, Flags | None] = {
        TERMINATION: np.asarray(observed.terminated),
        TRUNCATION: np.asarray(observed.truncated),
        CONTACT: simulator.in_contact(observed),
        LIMIT: simulator.at_limit(observed),
    }
    return tuple(Visit(name, int(np.sum(seen))) for name, seen in flags.items() if seen is not None)
