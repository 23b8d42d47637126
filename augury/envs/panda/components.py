"""Arrays taken apart into their components, so that one definition serves one environment as fast as many.

A component is an array of NumPy or JAX with an entry for each environment. Of one environment alone, on the
host, it is a plain number: Python computes with those ten times as fast as NumPy with arrays of one entry.
The bits are the same. Sums and products are rounded the same way, and the other functions are NumPy's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

AnyArray = Any  # a NumPy or a JAX array
Component = Any  # such an array, or a plain number


def components(array: AnyArray) -> list[Component]:
    """Of vectors, with any leading axes; those of a single vector of 64-bit numbers are plain numbers."""
    if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype == np.float64:
        numbers: list[float] = array.tolist()
        return numbers
    return [array[..., part] for part in range(array.shape[-1])]


def joined(parts: Sequence[Component]) -> AnyArray:
    """The array with these components."""
    return np.array(parts) if isinstance(parts[0], float) else namespace(parts[0]).stack(parts, -1)


def namespace(part: Component) -> Any:
    """Where `where`, `arctan2` and their like are found for such a component."""
    return PlainNumbers if isinstance(part, float) else part.__array_namespace__()


class PlainNumbers:
    """The functions of arrays that are used here, for plain numbers."""

    maximum, minimum = max, min

    @staticmethod
    def where(condition: bool, chosen: Any, otherwise: Any) -> Any:
        return chosen if condition else otherwise

    @staticmethod
    def sign(number: float) -> float:
        return float(np.sign(number))

    @staticmethod
    def arcsin(number: float) -> float:
        return float(np.arcsin(number))

    @staticmethod
    def arctan2(opposite: float, adjacent: float) -> float:
        return float(np.arctan2(opposite, adjacent))
