"""Where `double_precision` was before."""

from augury.precision import double_precision

__all__ = ["double_precision"]
