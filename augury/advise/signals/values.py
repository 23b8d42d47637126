"""Held-out value error: is a simple learner better with f(D) than without.

The value of a transition is one Bellman backup with the pilot's critic and policy, which is defined for an
augmented transition too:

    y = r + γ (1 - terminated) Q(s', π(s'))

It is fitted by ridge regression on frozen random Fourier features φ(s, a), once on D and once on D ∪ f(D),
where f(D) counts α times as much as D. Both are judged on transitions H that neither has seen: of held-out
episodes, and of evaluation. Half of H chooses the penalty of each fit, the other half judges.

    log error ratio = log  Σ_H (y - ŷ_{D ∪ f(D)})² / Σ_H (y - ŷ_D)²

Below 0, f(D) helps; above, it is wrong, or leads away. It is 0 where it adds nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

from augury.errors import UserError

Rows = npt.NDArray[np.float64]

FEATURES = 256
PENALTIES = tuple(10.0**power for power in range(-6, 2))
"""Of ridge regression, per row."""
FEWEST = 50
SCALE_ROWS = 256


class Rated(NamedTuple):
    """Points and what they are worth."""

    points: Rows
    values: Rows


def log_error_ratio(
    observed: Rated, augmented: Rated, held_out: Rated, *, weight: float = 1.0, seed: int = 0
) -> float:
    """Of whitened points. The augmented rows together count `weight` times as much as the observed ones."""
    for name, rated in (("observed", observed), ("augmented", augmented), ("held-out", held_out)):
        if len(rated.values) < FEWEST:
            raise UserError(f"the value error needs {FEWEST} {name} transitions, not {len(rated.values)}")
    if np.ptp(held_out.values) <= 1e-12 * max(1, abs(held_out.values).max()):
        raise UserError("the held-out values are all equal: there is nothing to predict")
    features = Features.of(observed.points, seed)
    centre, spread = observed.values.mean(), max(float(observed.values.std()), 1e-12)

    def scaled(rated: Rated) -> tuple[Rows, Rows]:
        return features(rated.points), (rated.values - centre) / spread

    own, added, held = scaled(observed), scaled(augmented), scaled(held_out)
    features_of_both, values_of_both = (np.concatenate(pair) for pair in zip(own, added, strict=True))
    share = weight * len(own[1]) / len(added[1])
    weights = np.concatenate([np.ones(len(own[1])), np.full(len(added[1]), share)])
    within = _error(features_of_both, values_of_both, weights, *held)
    without = _error(*own, np.ones(len(own[1])), *held)
    return float(np.log(within / without))


class Features(NamedTuple):
    """φ(x) = √(2/F) cos(W x + b) with Gaussian W of the kernel's scale, and a constant."""

    directions: Rows
    phases: Rows

    @classmethod
    def of(cls, points: Rows, seed: int) -> Features:
        """With the median distance between points as the scale."""
        generator = np.random.default_rng(seed)
        scale = max(float(np.median(pdist(points[:SCALE_ROWS]))), 1e-12)
        directions = generator.standard_normal((points.shape[1], FEATURES)) / scale
        return cls(directions, generator.uniform(0, 2 * np.pi, FEATURES))

    def __call__(self, points: Rows) -> Rows:
        waves = np.sqrt(2 / FEATURES) * np.cos(points @ self.directions + self.phases)
        return np.hstack([waves, np.ones((len(points), 1))])


def _error(features: Rows, values: Rows, weights: Rows, held: Rows, held_values: Rows) -> float:
    """Held-out error of weighted ridge regression. Every second held-out row chooses its penalty."""
    root = np.sqrt(weights / weights.mean())[:, None]
    rows, targets = root * features, root[:, 0] * values
    spread, directions = np.linalg.eigh(rows.T @ rows)
    told = (rows @ directions).T @ targets
    shrunk = np.maximum(spread, 0)[:, None] + len(values) * np.array(PENALTIES)
    errors = (held @ (directions @ (told[:, None] / shrunk)) - held_values[:, None]) ** 2
    chosen = int(errors[::2].mean(0).argmin())
    return max(float(errors[1::2, chosen].mean()), 1e-12)
