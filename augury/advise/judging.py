"""How well worths are predicted on families never seen: each family is predicted from all the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from augury.advise.baselines import BASELINES
from augury.advise.features import settings_of
from augury.advise.fitting import target
from augury.advise.prediction import SURE, fit, groups
from augury.advise.table import Row

Flags = npt.NDArray[np.bool_]

PREDICTION = "prediction"
CHOOSING = (PREDICTION, "always, as much as possible")
"""They choose m and α too."""


class Guess(NamedTuple):
    """What was said about a row before its outcome was known."""

    score: float | None
    """log2 of the worth, or what a baseline gives; None: nothing was said."""
    low: float = np.nan
    high: float = np.nan
    helps: float = np.nan
    """Probability that it is worth more than copies that change nothing, if one was given."""


class Quality(NamedTuple):
    """How good guesses were; NaN where that cannot be told."""

    rows: int
    answered: float
    """Share of the rows about which anything was said; what follows is about these."""
    verdicts: float
    """Share of these about which it was sure."""
    verdicts_right: float
    """Share of these verdicts that are right, where that is known: where copies that change nothing were
    trained with the same m and α, and the interval of the worth does not contain theirs."""
    decided: int
    """Rows whose gain has a sign beyond doubt."""
    sign: float
    """Share of these whose sign was said."""
    spearman: float
    """Rank correlation with the measured worth."""
    held: float
    """Share of the rows whose worth lies in the 90% interval."""
    regret: float
    """Area lost by the m and α that were chosen, against the best on the grid: mean over augmentations."""
    fixed_regret: float
    """The same with m = α = 1."""


class Judgement(NamedTuple):
    """Prediction and baselines on the same rows, and the prediction family by family."""

    overall: dict[str, Quality]
    by_family: dict[str, Quality]

    def table(self) -> str:
        """As Markdown."""
        lines = [*_HEAD, *(_line(name, quality) for name, quality in self.overall.items())]
        return "\n".join([*lines, "", *_HEAD, *(_line(name, one) for name, one in self.by_family.items())])


def judge(rows: Sequence[Row]) -> Judgement:
    """Leave out each family in turn. Rows whose worth is not known are left out of it all."""
    kept = [row for row in rows if row.worth is not None]
    guesses = {name: [Guess(None)] * len(kept) for name in (PREDICTION, *BASELINES)}
    for family in sorted({row.family for row in kept}):
        others = [row for row in kept if row.family != family]
        says = {PREDICTION: _prediction(others)}
        says |= {name: _scored(baseline(others)) for name, baseline in BASELINES.items()}
        for place in (place for place, row in enumerate(kept) if row.family == family):
            for name, say in says.items():
                guesses[name][place] = say(kept[place])
    silent = [guess.score is None for guess in guesses[PREDICTION]]
    for given in guesses.values():  # all are judged on what the prediction answers
        given[:] = [Guess(None) if skip else guess for skip, guess in zip(silent, given, strict=True)]
    overall = {name: quality(kept, given, name in CHOOSING) for name, given in guesses.items()}
    by_family = {}
    for family in sorted({row.family for row in kept}):
        places = [place for place, row in enumerate(kept) if row.family == family]
        mine = [guesses[PREDICTION][place] for place in places]
        by_family[family] = quality([kept[place] for place in places], mine, True)
    return Judgement(overall, by_family)


def quality(rows: Sequence[Row], guesses: Sequence[Guess], chooses: bool) -> Quality:
    """Of guesses about rows; what does not choose m and α takes 1."""
    said = [(row, guess) for row, guess in zip(rows, guesses, strict=True) if guess.score is not None]
    scores = np.array([guess.score for _, guess in said], float)
    measured = np.array([target(row) for row, _ in said])
    decided = np.array([row.decided for row, _ in said], bool)
    gains = np.array([row.gain for row, _ in said])
    ends = np.array([(guess.low, guess.high) for _, guess in said]).reshape(-1, 2)
    known = np.isfinite(ends).all(axis=1)
    helps = np.array([guess.helps for _, guess in said])
    sure = (helps >= SURE) | (helps <= 1 - SURE)
    helped, plain = _helped(rows, [row for row, _ in said])
    held = (ends[:, 0] - 1e-9 <= measured) & (measured <= ends[:, 1] + 1e-9)
    regret, fixed = _regrets(rows, guesses)
    varied = len(said) > 2 and np.ptp(scores) > 0 and np.ptp(measured) > 0
    return Quality(
        rows=len(rows),
        answered=len(said) / len(rows) if rows else np.nan,
        verdicts=_mean(sure[np.isfinite(helps)]),
        verdicts_right=_mean((helps > 0.5)[sure & plain] == helped[sure & plain]),
        decided=int(decided.sum()),
        sign=_mean((scores > 0)[decided] == (gains > 0)[decided]),
        spearman=float(stats.spearmanr(scores, measured).statistic) if varied else np.nan,
        held=_mean(held[known]),
        regret=regret if chooses else fixed,
        fixed_regret=fixed,
    )


def _prediction(rows: Sequence[Row]) -> Callable[[Row], Guess]:
    model = fit(rows)

    def say(row: Row) -> Guess:
        predicted = model.predict(row.signals, settings_of(row))
        if predicted.worth is None or predicted.helps is None:
            return Guess(None)
        middle, low, high = np.log2(predicted.worth)
        return Guess(middle, low, high, predicted.helps)

    return say


def _helped(rows: Sequence[Row], said: Sequence[Row]) -> tuple[Flags, Flags]:
    """Whether they were worth more than copies that change nothing, and whether that is beyond doubt."""
    copies = {_trained_as(row): max(row.worth or 1, 1) for row in rows if row.truth == "useless"}
    bars = np.array([copies.get(_trained_as(row), np.nan) for row in said])[:, None]
    worths = np.array([(row.worth, row.worth_low, row.worth_high) for row in said], float).reshape(-1, 3)
    above = worths > bars
    return above[:, 0], (above[:, 1] == above[:, 2]) & np.isfinite(bars[:, 0])


def _trained_as(row: Row) -> tuple[Any, ...]:
    return row.setting, row.ratio, row.update_ratio


def _scored(score: Callable[[Row], float | None]) -> Callable[[Row], Guess]:
    return lambda row: Guess(score(row))


def _regrets(rows: Sequence[Row], guesses: Sequence[Guess]) -> tuple[float, float]:
    """Of the largest score and of m = α = 1, over augmentations for which both are known."""
    chosen, fixed = [], []
    for places in groups(rows):
        ones = [place for place in places if rows[place].ratio == rows[place].update_ratio == 1]
        scored = [place for place in places if guesses[place].score is not None]
        if ones and scored:
            best = max(rows[place].area for place in places)
            chosen.append(best - rows[max(scored, key=lambda place: guesses[place].score or 0.0)].area)
            fixed.append(best - rows[ones[0]].area)
    return _mean(chosen), _mean(fixed)


def _mean(values: Iterable[float]) -> float:
    found = np.array([*values], float)
    return float(found.mean()) if found.size else np.nan


_HEAD = (
    "| | arms | answered | decided | sign right | Spearman | in the 90% interval | verdicts | of these right "
    "| regret | m = α = 1 |",
    "|---" * 11 + "|",
)


def _line(name: str, quality: Quality) -> str:
    cells = [
        f"{quality.rows:,}",
        f"{quality.answered:.0%}",
        f"{quality.decided:,}",
        _shown(quality.sign, ".1%"),
        _shown(quality.spearman, ".2f"),
        _shown(quality.held, ".1%"),
        _shown(quality.verdicts, ".0%"),
        _shown(quality.verdicts_right, ".1%"),
        _shown(quality.regret, ".4f"),
        _shown(quality.fixed_regret, ".4f"),
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def _shown(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else ""
