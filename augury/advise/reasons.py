"""Why an augmentation helps or does not, in sentences that signals make.

A reason is made of what was measured, never of what was predicted: the two can be checked against each other.
The sentences come in the order in which they matter. A wrong augmentation teaches something false, whatever
else it adds; then comes what it adds where the policy is evaluated, then what it adds elsewhere, then reward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from augury.advise.signals.validity import MOST_ERROR

Known = Mapping[str, float | None]

HARDLY_VALID = 0.5
"""Share of wrong transitions from which on the others say little."""
NOTABLE_ERROR = 0.005
NOTABLE_COVERAGE = 0.1
"""Share of evaluated states from which on new data is worth a sentence."""
NOTABLE_MULTIPLIER = 1.1
NOTABLE_DEPARTURE = 1.5
"""Factor by which copies lie farther from what evaluation visits."""
NOTABLE_DENSITY = 1.5
"""Factor by which reward must be more or less frequent."""
NOTABLE_ASYMMETRY = 0.05
"""Squared difference of values, of their variance, below which a critic is symmetric already."""


def reasons(signals: Known) -> tuple[str, ...]:
    """What speaks for and against an augmentation, the weightiest first; never empty."""
    if not measured(signals):
        return ("nothing about it could be measured",)
    weightiest_first = (_validity, _coverage, _departure, _reward, _asymmetry)
    said = [sentence for sentences in weightiest_first for sentence in sentences(signals)]
    if not any(signals.get(name) is not None for name in _ADDING):
        said.append("what it adds could not be measured")
    return tuple(said)


def measured(signals: Known) -> bool:
    """Whether it could be applied to the pilot's transitions at all."""
    return any(signals.get(name) is not None for name in ("invalid", *_ADDING))


def percent(share: float) -> str:
    """A share that is not 0 is not shown as 0."""
    return f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"


_ADDING = ("evaluation_coverage", "data_multiplier", "reward_density_ratio")


def _validity(signals: Known) -> list[str]:
    invalid, error = signals.get("invalid"), signals.get("relative_error")
    if invalid is None:
        return ["whether it is right is not known"]
    if invalid == 0:
        return []
    size = ""
    if (error or 0) >= MOST_ERROR:
        size = ", by more than can be told"
    elif (error or 0) >= NOTABLE_ERROR:
        size = f", typically by {error:.1%} of what a step changes"
    said = [f"the simulator disagrees with {percent(invalid)} of its transitions{size}"]
    if (reward := signals.get("reward_error") or 0) >= NOTABLE_ERROR:
        said.append(f"its rewards are wrong, on average by {reward:.1%} of their range")
    if wrong_end := signals.get("wrong_end"):
        said.append(f"{percent(wrong_end)} of its transitions end an episode wrongly, or fail to")
    return said


def _coverage(signals: Known) -> list[str]:
    nearer, multiplier = signals.get("evaluation_coverage"), signals.get("data_multiplier")
    if nearer is None and multiplier is None:
        return []
    if (signals.get("invalid") or 0) >= HARDLY_VALID:
        return []  # where states lie that cannot occur says nothing
    adds = (nearer or 0) >= NOTABLE_COVERAGE or (multiplier or 1) >= NOTABLE_MULTIPLIER
    if not adds:
        elsewhere = (signals.get("added_coverage") or 0) >= NOTABLE_COVERAGE
        where = (
            "it adds states that evaluation does not visit" if elsewhere else "it adds hardly any new state"
        )
        return [where]
    said = []
    if nearer is not None:
        said.append(f"it brings data nearer to {nearer:.0%} of the states that evaluation visits")
    if multiplier is not None:
        capped = "at least " if signals.get("data_multiplier_capped") else ""
        said.append(f"its transitions lie as widely there as {capped}{multiplier:.1f} times the data")
    return [", and ".join(said)]


def _departure(signals: Known) -> list[str]:
    factor = math.exp(signals.get("evaluation_departure") or 0)
    if factor < NOTABLE_DEPARTURE or (signals.get("invalid") or 0) >= HARDLY_VALID:
        return []
    return [f"its copies lie {factor:.1f} times as far from what evaluation visits as what was observed"]


def _reward(signals: Known) -> list[str]:
    ratio, augmented = signals.get("reward_density_ratio"), signals.get("augmented_reward_density")
    if signals.get("observed_reward_density") == 0:  # then the ratio is a guess
        return (
            [f"{augmented:.1%} of its transitions are rewarded, of observed ones none was"]
            if augmented
            else []
        )
    if ratio is None or 1 / NOTABLE_DENSITY < ratio < NOTABLE_DENSITY:
        return []
    more, factor = ("more", ratio) if ratio > 1 else ("less", 1 / ratio)
    return [f"its transitions are rewarded {factor:.1f} times {more} often than observed ones"]


def _asymmetry(signals: Known) -> list[str]:
    asymmetry = signals.get("asymmetry")
    if asymmetry is None or asymmetry >= NOTABLE_ASYMMETRY:
        return []
    return ["the critic gives its copies the same values already"]
