"""Within what errors things agree with a simulator."""

DOUBLE, SINGLE = 1e-8, 1e-5
"""Errors that rounding explains, of numbers with 64 bits and with 32."""


def tolerance_for(single_precision: bool) -> float:
    """The largest error of a valid transition, where nobody says."""
    return SINGLE if single_precision else DOUBLE
