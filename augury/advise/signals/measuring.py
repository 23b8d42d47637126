"""All signals of an augmentation, from one pilot. What cannot be known is None, and a note says why.

signals = measure(gather("goal2d"), "goal2d/translate", ratio=4)
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass

from augury import augmentations
from augury.advise.pilot import Pilot
from augury.advise.signals.copies import MOST_COPIES
from augury.advise.signals.evidence import OF_WEIGHT, SIGNALS, Evidence, Fields, gathered
from augury.advise.signals.replay import replayed
from augury.augmentations import Augmentation
from augury.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Signals:
    """What is known about an augmentation on a task; None is unknown, and a note says why."""

    invalid: float | None = None
    """Share of augmented transitions with which the simulator disagrees."""
    relative_error: float | None = None
    """By how much, of what a step changes: the median of the invalid ones; 0 where there are none."""
    reward_error: float | None = None
    """Mean error of rewards, of their range."""
    wrong_end: float | None = None
    """Share of augmented transitions that end an episode where the simulator does not, or do not."""
    added_coverage: float | None = None
    """Share of augmented states that are farther from all observed states than those from each other."""
    evaluation_coverage: float | None = None
    """Share of evaluated states to which an augmented state is nearer than all observed ones."""
    evaluation_approach: float | None = None
    """Mean log ratio of the distance to the nearest state, without and with augmented ones."""
    evaluation_departure: float | None = None
    """Mean log ratio of the distances of copies, and of their originals, to the nearest evaluated state."""
    observed_reward_density: float | None = None
    augmented_reward_density: float | None = None
    reward_density_ratio: float | None = None
    """Of augmented to observed, smoothed so that it is finite."""
    common_reward: float | None = None
    """Share of observed transitions that get the most common reward: near 1 where reward is sparse."""
    progress: float | None = None
    """How much better evaluated steps are rewarded than observed ones, in standard deviations of these."""
    data_multiplier: float | None = None
    """How many times as much observed data would leave as little unknown at evaluated transitions."""
    data_multiplier_capped: bool | None = None
    """Whether it may be larger: the pilot holds too little to tell."""
    variance_ratio: float | None = None
    """Log ratio of what is left unknown there, with augmented rows and without: the same, without a limit."""
    value_error_ratio: float | None = None
    """Log ratio of held-out value errors, with augmented rows and without: below 0 they help."""
    asymmetry: float | None = None
    """How far the critic is from the symmetry, 0 if it has it; for augmentations that keep rewards."""
    replay_ratio: float | None = None
    """The learner's updates per observed transition."""
    augmented_replay_ratio: float | None = None
    """β: updates per augmented transition."""
    update_ratio: float | None = None
    """α."""
    use: float | None = None
    """α / m: draws of an augmented transition for each draw of an observed one."""
    notes: tuple[str, ...] = ()
    """Why something is unknown, and what else a reader should know: a sentence each."""

    def values(self) -> dict[str, float | None]:
        """Plain numbers by name, without the notes."""
        named = asdict(self)
        named.pop("notes")
        return {name: None if value is None else float(value) for name, value in named.items()}


def measure(
    pilot: Pilot,
    augmentation: str | Augmentation,
    *,
    ratio: float = 1,
    update_ratio: float = 1,
    seed: int = 0,
) -> Signals:
    """Every signal of an augmentation with these m and α. The same seed gives the same signals."""
    return measuring(pilot, augmentation, ratio=ratio, seed=seed)(update_ratio)


def measuring(
    pilot: Pilot, augmentation: str | Augmentation, *, ratio: float, seed: int
) -> Callable[[float], Signals]:
    """The same as a function of α: what α does not change is measured once."""
    function = augmentations.make(augmentation, pilot.environment)
    try:
        evidence = gathered(pilot, function, ratio=ratio, seed=seed)
    except UserError as error:  # it raises, or changes shapes: nothing else can be known
        said = (str(error),)
        return lambda weight: Signals(**replayed(pilot.replay_ratio, ratio, weight)._asdict(), notes=said)
    known, notes = _asked(evidence, set(SIGNALS) - set(OF_WEIGHT))

    def with_weight(update_ratio: float) -> Signals:
        also, more = _asked(evidence._replace(update_ratio=update_ratio), OF_WEIGHT)
        every = known | also
        return Signals(**every, notes=(*dict.fromkeys(notes + more), *_remarks(every, ratio)))

    return with_weight


def _asked(evidence: Evidence, names: Collection[str]) -> tuple[Fields, list[str]]:
    """The fields of some signals, and why others are unknown."""
    known: Fields = {}
    notes = []
    for name, signal in SIGNALS.items():
        if name in names:
            try:
                known |= signal(evidence)
            except UserError as error:
                notes.append(str(error))
    return known, notes


def _remarks(known: Fields, ratio: float) -> list[str]:
    """What a reader should know about the numbers."""
    remarks = []
    if known.get("observed_reward_density") == 0:
        remarks.append("the pilot saw no success: the ratio of reward densities is a guess")
    if known.get("data_multiplier_capped"):
        remarks.append(
            f"the data multiplier may be larger than {known['data_multiplier']:g}: the pilot is short"
        )
    if ratio > MOST_COPIES:
        remarks.append(f"of each transition {MOST_COPIES} copies were looked at, not {ratio:g}")
    return remarks
