"""Where observed and augmented rows stand in a batch: arrays that are True at augmented rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def behind(observed: int, augmented: int, batches: int = 1) -> npt.NDArray[np.bool_]:
    """Augmented rows behind observed ones, in every one of several batches."""
    return np.tile(np.arange(observed + augmented) >= observed, batches)


def interleaved(rows: int, update_ratio: float, phase: float) -> npt.NDArray[np.bool_]:
    """The two mixed so evenly that any run of rows, however it is cut, has its share of augmented ones.

    Of n rows in sequence ns are augmented, s = α / (1 + α), rounded up or down; over phases drawn from [0, 1)
    they are ns on average.
    """
    share = update_ratio / (1 + update_ratio)
    return np.diff(np.floor(share * np.arange(rows + 1) + phase)) > 0
