"""What a table knows: where its rows lie, what to expect of an unknown variable, and what lies outside.

Rows are described by a Gaussian over variables. A variable that is not known is expected given the others.
The *end* of a family is how far 99% of its rows lie from the table. A row is outside if it is farther than
the end of every family, and than the ends of families lie from a table without them (their median: one odd
family must not make everything familiar).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from augury.advise.features import Values

LEAST_SPREAD = 0.05
"""Standard deviation of a variable, at least: one that the table never changes is not infinitely far."""

WITHIN = 0.99

ROUNDS = 20
"""Of expectation and maximisation, at most."""

ENOUGH = 1e-3
"""They end when no covariance moves by more."""

Flags = npt.NDArray[np.bool_]


class Familiar(NamedTuple):
    """A Gaussian over variables, and how far from it rows are familiar."""

    mean: Values
    covariance: Values
    far: float = np.inf

    def expected(self, rows: Values) -> Values:
        """(rows, variables) without gaps."""
        return self._filled(rows)[0]

    def doubt(self, rows: Values, slopes: Values) -> Values:
        """Variance of slopes · variables because of gaps, row by row: (rows,)."""
        found = np.zeros(len(rows))
        for known, same in _alike(rows):
            across = slopes[np.ix_(same, ~known)]
            found[same] = ((across @ self._given(known)[1]) * across).sum(axis=1)
        return found

    def _filled(self, rows: Values) -> tuple[Values, Values]:
        """Rows without gaps, and the covariance of what was filled in, summed over rows."""
        filled, left = rows.copy(), np.zeros_like(self.covariance)
        for known, same in _alike(rows):
            slopes, covariance = self._given(known)
            apart = rows[np.ix_(same, known)] - self.mean[known]
            filled[np.ix_(same, ~known)] = self.mean[~known] + apart @ slopes
            left[np.ix_(~known, ~known)] += same.sum() * covariance
        return filled, left

    def _given(self, known: Flags) -> tuple[Values, Values]:
        """Of unknown variables given known ones: the slopes of their mean, and their covariance."""
        across = self.covariance[np.ix_(known, ~known)]
        slopes = np.asarray(np.linalg.solve(self.covariance[np.ix_(known, known)], across), np.float64)
        return slopes, self.covariance[np.ix_(~known, ~known)] - across.T @ slopes

    def distances(self, rows: Values) -> Values:
        """Root mean squared distance in standard deviations (Mahalanobis) over what is known: (rows,)."""
        found = np.zeros(len(rows))
        for known, same in _alike(rows):
            apart = rows[np.ix_(same, known)] - self.mean[known]
            whitened = np.linalg.solve(self.covariance[np.ix_(known, known)], apart.T).T
            found[same] = np.sqrt((apart * whitened).sum(axis=1) / known.sum())
        return found

    def strangest(self, variables: Values) -> tuple[int, float, float]:
        """The variable that fits least with the others: its place, and the mean and spread they suggest."""
        known = np.flatnonzero(np.isfinite(variables))
        precision = np.linalg.inv(self.covariance[np.ix_(known, known)])
        spread = np.diag(precision) ** -0.5
        off = precision @ (variables - self.mean)[known] * spread  # in such spreads
        worst = int(np.abs(off).argmax())
        place = int(known[worst])
        return place, float(variables[place] - off[worst] * spread[worst]), float(spread[worst])


def familiar_with(rows: Values, families: Sequence[str]) -> Familiar:
    """What rows of these families describe. Settings are always known, so no row is all gaps."""
    found, names = described(rows), np.array(families)
    of = [names == family for family in sorted(set(families))]
    own = max(_end(found, rows[held]) for held in of)
    left_out = [_end(described(rows[~held], found), rows[held]) for held in of] if len(of) > 1 else [own]
    return found._replace(far=max(own, float(np.median(left_out))))


def _end(known: Familiar, rows: Values) -> float:
    return float(np.quantile(known.distances(rows), WITHIN, method="higher"))


def described(rows: Values, start: Familiar | None = None) -> Familiar:
    """The Gaussian of (rows, variables) with gaps, by expectation and maximisation."""
    found = start or _apart(rows)
    for _ in range(ROUNDS):
        filled, left = found._filled(rows)
        apart = filled - filled.mean(axis=0)
        covariance = (apart.T @ apart + left) / len(rows) + _floor(rows)
        last, found = found, Familiar(filled.mean(axis=0), covariance)
        if np.abs(found.covariance - last.covariance).max() < ENOUGH:
            break
    return found


def _apart(rows: Values) -> Familiar:
    """Each variable apart, of the rows in which it is known."""
    known = np.isfinite(rows)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, rows, 0).sum(axis=0) / count
    return Familiar(mean, np.diag(np.where(known, (rows - mean) ** 2, 0).sum(axis=0) / count) + _floor(rows))


def _floor(rows: Values) -> Values:
    return LEAST_SPREAD**2 * np.eye(rows.shape[1])


def _alike(rows: Values) -> Iterator[tuple[Flags, Flags]]:
    """Which variables are known, and of which rows, for all rows with the same gaps at once."""
    known = np.isfinite(rows)
    codes = known @ (1 << np.arange(rows.shape[1]))
    for code in np.unique(codes):
        same = codes == code
        yield known[same.argmax()], same
