"""Validity: how often, and by how much, the simulator disagrees with augmented transitions.

    share  = share of transitions whose claims differ from the simulator's step by more than rounding
    error  = median over these of  ‖s'_claimed - s'_simulated‖ / median over D of ‖s' - s‖
    reward = mean over all of  |r_claimed - r_simulated| / range of all rewards, observed, claimed, simulated

Norms are in half widths of the observation's bounds. An error of 1 is as large as what a step changes, so
tasks compare. The step is asked for as `augury.verify` does it. The pilot's own transitions are asked about;
where the simulator cannot repeat these, because they hold too little to restore a state from, others are
played that it can.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from augury.augmentations.base import Augmentation, needs_of
from augury.errors import UserError
from augury.transition import Transition
from augury.verify.augmenting import augment
from augury.verify.base import Bounds, Simulator
from augury.verify.comparison import TERMINATED, Errors
from augury.verify.observations import flat
from augury.verify.precision import tolerance_for

Rows = npt.NDArray[np.float64]

SAMPLES = 256
MOST_ROUNDING = 1e-3
"""The largest error that may be put down to restoring a state from 32 bits."""
NEARLY_ALL = 0.95
MOST_ERROR = 1e6
"""What the simulator cannot answer counts as that many steps off."""
ROOM = 10.0
"""Augmented transitions may round so many times as much as observed ones."""


class Validity(NamedTuple):
    """What the simulator says."""

    invalid: float
    """Share."""
    relative_error: float
    """0 where nothing is invalid."""
    reward_error: float
    wrong_end: float
    """Share of transitions that end an episode where the simulator does not, or the other way round."""


class Scales(NamedTuple):
    """What errors are measured in."""

    half: Rows
    """Half widths of the observation's bounds."""
    change: float
    """What a step changes: the median of ‖s' - s‖ over the steps that change anything."""
    reward: tuple[float, float]
    """The smallest and the largest."""

    @classmethod
    def of(cls, observed: Transition, bounds: Bounds) -> Scales:
        """Of observed transitions; bounds are those of flat rows."""
        half = np.maximum((bounds.high - bounds.low) / 2, 1e-12)
        scales = cls(half, 1.0, (float(np.min(observed.reward)), float(np.max(observed.reward))))
        moved = scales.sizes(flat(observed.next_observation) - flat(observed.observation))
        return scales._replace(change=float(np.median(moved[moved > 0]))) if moved.any() else scales

    def sizes(self, differences: Rows) -> Rows:
        """Of differences between observations, row by row."""
        return np.linalg.norm(differences / self.half, axis=1)


def validity(
    simulator: Simulator, observed: Transition, augmented: Transition, scales: Scales, needs: Any = ()
) -> Validity | None:
    """Of augmented transitions of these; None where the simulator does not repeat the observed ones."""
    itself = Errors.between(simulator, observed, needs).largest
    rounding = float(np.quantile(itself, NEARLY_ALL))
    if not rounding <= MOST_ROUNDING:
        return None
    tolerance = max(tolerance_for(single_precision=True), ROOM * rounding)
    repeated = itself <= tolerance
    errors = Errors.between(simulator, augmented, needs)
    wrong = repeated & (errors.largest > tolerance)
    width = len(scales.half)
    off = scales.sizes((errors.claimed - errors.simulated)[:, :width]) / scales.change
    off = np.nan_to_num(off, nan=MOST_ERROR, posinf=MOST_ERROR)
    reward = np.where(errors.error[:, width] > tolerance, errors.error[:, width], 0)[repeated]
    rewards = np.concatenate(
        [scales.reward, errors.claimed[repeated, width], errors.simulated[repeated, width]]
    )
    span = max(float(np.ptp(rewards[np.isfinite(rewards)])), 1e-12)
    return Validity(
        float(wrong.sum() / repeated.sum()),
        float(np.median(off[wrong])) if wrong.any() else 0.0,
        float(np.minimum(reward / span, 1).mean()),
        float(errors.wrong_in(TERMINATED, tolerance)[repeated].mean()),
    )


def played(simulator: Simulator, augmentation: Augmentation, scales: Scales, seed: int) -> Validity:
    """The same of transitions that are played for it."""
    observed = simulator.play(SAMPLES, None, seed).transition
    observed = jax.tree.map(lambda leaf: leaf[:SAMPLES], observed)
    needs = needs_of(augmentation)
    if missing := [name for name in needs if name not in observed.extras]:
        raise UserError(f"{simulator.name} does not provide the extras {', '.join(missing)}")
    # The state goes with the observation; other extras only restore it.
    shown = {name: observed.extras[name] for name in sorted({*needs, "state"} & observed.extras.keys())}
    augmented = augment(augmentation, observed._replace(extras=shown), seed)
    augmented = augmented._replace(extras=observed.extras | augmented.extras)
    found = validity(simulator, observed, augmented, scales, needs)
    if found is None:
        raise UserError(f"{simulator.name} does not repeat its own transitions: validity is not known")
    return found
