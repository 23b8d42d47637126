"""Why an augmentation helps or does not, in sentences that signals make.

A reason is made of what was measured, never of what was predicted: the two can be checked against each other.
The sentences come in the order in which they matter. A wrong augmentation teaches something false, whatever
else it adds; then comes what it adds where the policy is evaluated, then what it adds elsewhere, then reward.
"""

from __future__ import annotations

from collections.abc import Mapping

Known = Mapping[str, float | None]

NOTABLE_COVERAGE = 0.1
"""Share of evaluated states from which on new data is worth a sentence."""
NOTABLE_MULTIPLIER = 1.1
NOTABLE_DENSITY = 1.5
"""Factor by which reward must be more or less frequent."""
NOTABLE_ASYMMETRY = 0.05
"""Squared difference of values, of their variance, below which a critic is symmetric already."""


def reasons(signals: Known) -> tuple[str, ...]:
    """What speaks for and against an augmentation, the weightiest first; never empty."""
    said = [*_validity(signals), *_coverage(signals), *_reward(signals), *_asymmetry(signals)]
    if not any(signals.get(name) is not None for name in _ADDING):
        said.append("what it adds could not be measured")
    return tuple(said)


_ADDING = ("evaluation_coverage", "data_multiplier", "reward_density_ratio")


def _validity(signals: Known) -> list[str]:
    invalid, error = signals.get("invalid"), signals.get("relative_error")
    if invalid is None:
        return ["nobody knows whether it is right: the environment cannot be put into a given state"]
    if invalid == 0:
        return []
    size = "" if error is None else f", typically by {error:.1%} of what a step changes"
    return [f"the simulator disagrees with {invalid:.0%} of its transitions{size}"]


def _coverage(signals: Known) -> list[str]:
    nearer, multiplier = signals.get("evaluation_coverage"), signals.get("data_multiplier")
    if nearer is None and multiplier is None:
        return []
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
        said.append(f"there it teaches as much as {capped}{multiplier:.1f} times the data")
    return [", and ".join(said)]


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
