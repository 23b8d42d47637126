"""What an augmentation will be worth, from signals and settings, with an interval that holds on new families.

    log2 worth = constant + Σ coefficient × term                   terms: `augury.advise.features`
    s²         = σ² + spread of the predictions that leave out one family + what unknown signals may change
    interval   = prediction + s × [5%, 95%] of (measured - predicted) / s over families that were left out

So the interval is wide where families disagree and where a signal is missing. It is as wide as it must be
for the families of the table, each predicted from the others (as in conformal prediction, leaving out one
family). What lies farther from the table than its families from each other is *outside*: nothing is said.

Copies that change nothing make batches larger, which may be worth something too. An augmentation *helps* if
it is worth more than these, and more than no copies.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from augury.advise import table
from augury.advise.familiar import Familiar, familiar_with
from augury.advise.features import (
    NAMES,
    VARIABLES,
    Settings,
    Signals,
    Values,
    changing_nothing,
    settings_of,
    slopes_of,
    terms_of,
    variables_of,
)
from augury.advise.fitting import LEAST, MOST, fitted, target, weight
from augury.advise.table import Row
from augury.errors import UserError
from augury.runs.statistics import Estimate

CONFIDENCE = 0.9
SURE = 0.9
"""Probability from which on a prediction is a verdict."""
LEVELS = np.linspace(0.005, 0.995, 199)
"""Quantiles of residuals that are kept."""


class Prediction(NamedTuple):
    """What an augmentation will be worth; nothing of it where it is outside of what is known."""

    worth: Estimate | None
    """As a multiple of policy data, with its 90% interval."""
    batch: float | None
    """The worth of copies that change nothing, with these settings."""
    helps: float | None
    """Probability that it is worth more than these, and more than 1."""
    outside: str
    """Why nothing is predicted; empty otherwise."""
    unknown: tuple[str, ...]
    """Variables that had to be expected from the others."""

    @classmethod
    def none(cls, why: str, unknown: tuple[str, ...] = ()) -> Prediction:
        """Nothing is predicted."""
        return cls(None, None, None, why, unknown)


class Best(NamedTuple):
    """The m and α to begin with."""

    ratio: float
    update_ratio: float
    prediction: Prediction


@dataclass(frozen=True)
class Provenance:
    """Which table a model was made of."""

    rows: int
    families: tuple[str, ...]
    algorithms: tuple[str, ...]
    steps: int
    """Those of the arms that trained longest."""
    digest: str
    """Of the table's file."""
    made: str
    """The day."""


@dataclass(frozen=True, eq=False)
class Model:
    """Coefficients, and how far to trust them."""

    provenance: Provenance
    grid: tuple[tuple[float, float], ...]
    """The m and α of the table."""
    familiar: Familiar
    coefficients: Values
    """Of the constant and `TERMS`."""
    folds: Values
    """The same without one family: (families, 1 + terms)."""
    ridge: float
    spread: float
    """σ: root mean square of what terms leave unexplained within the table."""
    residuals: Values
    """Quantiles at `LEVELS` of scaled residuals, of families that were left out."""
    regret: Estimate | None
    """Area lost by the m and α with the largest predicted worth against the best on the grid: mean, and 90%
    interval over augmentations of families that were left out. None where no arms differ in m and α alone."""

    def predict(self, signals: Signals, settings: Settings) -> Prediction:
        """The worth with these m and α."""
        known = variables_of(signals, settings)
        [variables] = self.familiar.expected(known[None])
        unknown = tuple(np.array(NAMES, object)[~np.isfinite(known)])
        if outside := self._outside(known):
            return Prediction.none(outside, unknown)
        middle, scale = self._raw(variables, known)
        batch = float(np.clip(self.coefficients @ terms_of(changing_nothing(variables)), LEAST, MOST))
        ends = np.interp([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], LEVELS, self.residuals)
        low, high = np.clip(middle + scale * ends, LEAST, MOST)
        helps = 1 - float(np.interp((max(batch, 0) - middle) / scale, self.residuals, LEVELS))
        worth = Estimate(float(2**middle), float(2**low), float(2**high))
        return Prediction(worth, float(2**batch), helps, "", unknown)

    def best(self, signals: Signals | Callable[[float, float], Signals]) -> Best | None:
        """The m and α of the grid with the largest predicted worth; None where all of it is outside.

        Signals may depend on m and α.
        """
        found: list[Best] = []
        for ratio, update_ratio in self.grid:
            measured = signals(ratio, update_ratio) if callable(signals) else signals
            predicted = self.predict(measured, Settings(ratio, update_ratio))
            if predicted.worth is not None:
                found.append(Best(ratio, update_ratio, predicted))
        # Of equal ones, as of all that are censored, the one nearest to m = α = 1: it costs least.
        return min(found, key=_preference) if found else None

    def _raw(self, variables: Values, known: Values) -> tuple[float, float]:
        """log2 of the worth, and the scale of its error."""
        terms = terms_of(variables)
        [doubt] = self.familiar.doubt(known[None], slopes_of(variables, self.coefficients)[None])
        middle = np.clip(self.coefficients @ terms, LEAST, MOST)
        return float(middle), float(np.sqrt(self.spread**2 + _disagreement(self.folds @ terms) + doubt))

    def _outside(self, known: Values) -> str:
        distance = float(self.familiar.distances(known[None])[0])
        if distance <= self.familiar.far:
            return ""
        place, mean, spread = self.familiar.strangest(known)
        shown = VARIABLES[place].shown
        low, high = sorted([shown(mean - 2 * spread), shown(mean + 2 * spread)])
        return (
            f"the table has nothing like it: {VARIABLES[place].says} is {shown(known[place]):.3g} "
            f"('{NAMES[place]}'), and with all else as it is the table would have {low:.3g} to {high:.3g}"
        )


def fit(rows: Sequence[Row], made: str | None = None) -> Model:
    """A model of the rows whose worth is known; `made` is the day, by default today."""
    kept = [row for row in rows if row.worth is not None]
    families = [row.family for row in kept]
    if (count := len(set(families))) < 3:
        raise UserError(f"a prediction needs 3 families, each to be left out once: the table has {count}")
    known = np.stack([variables_of(row.signals, settings_of(row)) for row in kept])
    familiar = familiar_with(known, families)
    variables = familiar.expected(known)
    terms = terms_of(variables)
    targets, weights = np.array([target(row) for row in kept]), np.array([weight(row) for row in kept])
    found = fitted(terms, targets, weights, families)
    folds = np.stack(list(found.folds.values()))
    spread = float(np.sqrt(np.mean((targets - terms @ found.coefficients) ** 2)))

    left_out = np.sum(terms * np.stack([found.folds[family] for family in families]), axis=1)
    doubt = familiar.doubt(known, slopes_of(variables, found.coefficients))
    scales = np.sqrt(spread**2 + _disagreement(folds @ terms.T) + doubt)
    scaled = _as_of_few((targets - np.clip(left_out, LEAST, MOST)) / scales, families)
    return Model(
        provenance=Provenance(
            len(kept),
            tuple(sorted(set(families))),
            tuple(sorted({row.algorithm for row in kept})),
            max(row.steps for row in kept),
            table.digest(rows),
            made or datetime.date.today().isoformat(),
        ),
        grid=tuple(sorted({(row.ratio, row.update_ratio) for row in kept})),
        familiar=familiar,
        coefficients=found.coefficients,
        folds=folds,
        ridge=found.ridge,
        spread=spread,
        residuals=np.quantile(scaled, LEVELS),
        regret=_regret(kept, left_out),
    )


def groups(rows: Sequence[Row]) -> list[list[int]]:
    """The rows that differ only in m and α, where there are several."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(rows):
        found.setdefault((row.setting, row.augmentation), []).append(place)
    return [places for places in found.values() if len(places) > 1]


def _regret(rows: Sequence[Row], predicted: Values) -> Estimate | None:
    lost = [
        max(rows[place].area for place in places) - rows[max(places, key=lambda place: predicted[place])].area
        for places in groups(rows)
    ]
    if not lost:
        return None
    low, high = np.quantile(lost, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Estimate(float(np.mean(lost)), float(low), float(high))


def _as_of_few(residuals: Values, families: Sequence[str]) -> Values:
    """Residuals, larger by what few families may hide: between families, Student's t instead of Gauss."""
    names = sorted(set(families))
    means = np.array([residuals[np.array(families) == name].mean() for name in names])
    between = means.var() / max((residuals**2).mean(), 1e-12)
    wider = float(stats.t.ppf(0.95, len(names) - 1) / stats.norm.ppf(0.95))
    return residuals * np.sqrt(1 - between + between * wider**2)


def _disagreement(predicted: Values) -> Values:
    """Variance of predictions that each leave out one family (jackknife), over the first axis."""
    return np.asarray((len(predicted) - 1) * predicted.var(axis=0))


def _preference(choice: Best) -> tuple[float, float]:
    assert choice.prediction.worth is not None
    return -choice.prediction.worth.middle, abs(np.log2(choice.ratio)) + abs(np.log2(choice.update_ratio))
