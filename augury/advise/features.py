"""What a prediction looks at: signals and settings as variables, and the terms in which they enter.

A variable is 0 where it should change nothing: an augmentation that reaches no further than the data, that is
nowhere wrong, with m = 1 and α = 0. A term is a variable or a product of two, with the sign theory gives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from math import exp, exp2
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from augury.advise.table import Described

Values = npt.NDArray[np.float64]
Signals = Mapping[str, float | None]
"""Measured by `augury.advise.signals`, by name; None, or absent, is not known."""


_RAREST = 10.0
"""-log2 of about a thousandth: rarer rewards are as good as none, and none was seen where all are equal."""


class Settings(NamedTuple):
    """What is asked for."""

    ratio: float
    update_ratio: float


class Variable(NamedTuple):
    """A number made of signals and settings; None where a signal is not known."""

    name: str
    says: str
    """What it is, in a sentence about an augmentation."""
    of: Callable[[Signals, Settings], float | None]
    shown: Callable[[float], float] = float
    """Of a value of `of`: the number that `says` speaks of."""


class Term(NamedTuple):
    """A variable, or a product of two."""

    of: tuple[str, ...]
    sign: int = 0
    """1 and -1: theory says that the worth cannot fall, and cannot rise, with it."""
    why: str = ""

    @property
    def name(self) -> str:
        """As files hold it."""
        return " × ".join(self.of)


def _known(signals: Signals, name: str) -> float | None:
    value = signals.get(name)
    return None if value is None or not math.isfinite(value) else float(value)


def _signal(name: str, transform: Callable[[float], float]) -> Callable[[Signals, Settings], float | None]:
    def of(signals: Signals, _: Settings) -> float | None:
        value = _known(signals, name)
        return None if value is None else transform(value)

    return of


def _log2_within(low: float, high: float) -> Callable[[float], float]:
    return lambda value: min(max(math.log2(max(value, 1e-12)), low), high)


def _rarity(signals: Signals, _: Settings) -> float | None:
    """How rare reward is: -log2 of the share of rewarded transitions, as far as reward is sparse at all."""
    density, common = _known(signals, "observed_reward_density"), _known(signals, "common_reward")
    if common == 1:
        return _RAREST
    if density is None or common is None:
        return None
    return common * -math.log2(max(density, 1e-3))


def _weight(settings: Settings) -> float:
    """Of augmented transitions in what is learned from, with α = 1 as the unit."""
    return 2 / (1 + 1 / settings.update_ratio)


def _wrong(signals: Signals, settings: Settings) -> float | None:
    share, error = _known(signals, "invalid"), _known(signals, "relative_error")
    if share == 0:
        return 0.0
    if share is None or error is None:
        return None
    squared = (share * error) ** 2  # as bias counts against variance: small errors are forgiven
    return _weight(settings) * math.log2(1 + squared)


def _wrong_reward(signals: Signals, settings: Settings) -> float | None:
    error = _known(signals, "reward_error")
    return None if error is None else _weight(settings) * math.log2(1 + 10 * min(max(error, 0), 1))


VARIABLES = (
    Variable("reach", "the data it is like", _signal("data_multiplier", _log2_within(0, 6)), exp2),
    Variable("nearer", "the evaluated states it comes near", _signal("evaluation_coverage", float)),
    Variable("new", "the new states it adds", _signal("added_coverage", float)),
    Variable(
        "departure",
        "how much farther from evaluation its copies lie",
        _signal("evaluation_departure", lambda value: min(max(value, -2), 2)),
        exp,
    ),
    Variable(
        "reward",
        "how much more often it is rewarded",
        _signal("reward_density_ratio", _log2_within(-8, 8)),
        exp2,
    ),
    Variable("rare", "the share of rewarded transitions", _rarity, lambda value: exp2(-value)),
    Variable(
        "progress",
        "how far a short pilot has learned",
        _signal("progress", lambda value: min(max(value, 0), 2)),
    ),
    Variable(
        "values",
        "what it teaches a simple learner",
        _signal("value_error_ratio", lambda ratio: -min(max(ratio, -3), 3)),
    ),
    Variable(
        "asymmetry",
        "how far the critic is from its symmetry",
        _signal("asymmetry", lambda value: min(max(value, 0), 2)),
    ),
    Variable("wrong", "how wrong its transitions are", _wrong),
    Variable("wrong reward", "how wrong its rewards are", _wrong_reward),
    Variable("copies", "m", lambda _, settings: math.log2(min(settings.ratio, 32)), exp2),
    Variable(
        "weight", "how much of a batch is augmented", lambda _, settings: _weight(settings), lambda it: it / 2
    ),
    Variable("replay", "the replay ratio", _signal("replay_ratio", _log2_within(-8, 8)), exp2),
)
"""Shares and logarithms, so that one of each is much, whatever the task."""

TERMS = (
    Term(("reach",), 1, "what is like more data is worth more data"),
    Term(("nearer",), 1, "coverage counts where policies are evaluated"),
    Term(("new",), 1),
    Term(("departure",), -1, "what lies where no policy goes takes the place of what is used"),
    Term(("reward",), 1, "reward that is rarely seen is what limits sparse tasks"),
    Term(("rare",), 1, "where reward is common, little is left to gain"),
    Term(("progress",), -1, "what a short pilot learns needs no help"),
    Term(("rare", "nearer"), 1),
    Term(("rare", "reward"), 1),
    Term(("values",), 1),
    Term(("asymmetry",), 1, "a critic that is symmetric already has nothing to learn from it"),
    Term(("wrong",), -1, "wrong transitions teach wrong values"),
    Term(("wrong reward",), -1),
    Term(("copies",)),
    Term(("weight",)),
    Term(("replay",)),
    Term(("reach", "copies"), 1, "more copies reach further"),
    Term(("reach", "weight"), 1, "what copies add counts as far as they are learned from"),
    Term(("reach", "wrong"), -1, "what is wrong does more harm where nothing else is known"),
    Term(("reward", "weight"), 1),
    Term(("copies", "weight")),
    Term(("copies", "replay")),
)

NAMES = tuple(variable.name for variable in VARIABLES)
OF_THE_TASK = ("rare", "progress", "copies", "weight", "replay")
"""Variables that do not depend on what the augmentation does; all others are 0 if it changes nothing."""


def variables_of(signals: Signals, settings: Settings) -> Values:
    """The variables, NaN where they are not known."""
    found = (variable.of(signals, settings) for variable in VARIABLES)
    return np.array([np.nan if value is None else value for value in found])


def changing_nothing(variables: Values) -> Values:
    """The variables of copies that are as observed, with the same settings: a larger batch, and no more."""
    return np.where(np.isin(NAMES, OF_THE_TASK), variables, 0.0)


def settings_of(arm: Described) -> Settings:
    """Of an arm of the table."""
    return Settings(arm.ratio, arm.update_ratio)


def terms_of(variables: Values) -> Values:
    """The terms of (…, variables), after a constant: (…, 1 + terms)."""
    products = [_product(variables, term.of) for term in TERMS]
    return np.stack([np.ones(variables.shape[:-1]), *products], axis=-1)


def slopes_of(variables: Values, coefficients: Values) -> Values:
    """How Σ coefficient × term changes with each variable: (…, variables)."""
    slopes = np.zeros_like(variables)
    for coefficient, term in zip(coefficients[1:], TERMS, strict=True):
        for place, name in enumerate(term.of):
            others = term.of[:place] + term.of[place + 1 :]
            slopes[..., NAMES.index(name)] += coefficient * _product(variables, others)
    return slopes


def _product(variables: Values, names: tuple[str, ...]) -> Values:
    product = np.ones(variables.shape[:-1])
    for name in names:
        product = product * variables[..., NAMES.index(name)]
    return product
