"""Claims: what a study is made to find out, as differences between two of its arms."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Axis = Literal["steps", "updates"]
"""What curves are drawn over, and compared at."""
Kind = Literal["area", "final"]
"""What is compared: the mean of the whole curve, or its end."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """That an arm is better than another, or that two are alike.

        says = "translation beats no augmentation"
        better = "translate"
        than = "none"

    or `alike = ["proximal(0)", "translate"]`, `within = 0.1`.
    """

    says: str
    """In words."""
    better: str | None = None
    """Name of an arm."""
    than: str | None = None
    by: float = 0.0
    """By more than this."""
    alike: tuple[str, str] | None = None
    """Names of two arms."""
    within: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """The largest difference."""
    measure: Kind = "area"
    tasks: tuple[str, ...] = ()
    """On which tasks; by default on all."""

    @property
    def arms(self) -> tuple[str, str]:
        """The arms compared: the difference is the first less the second."""
        if self.alike is not None:
            return self.alike
        assert self.better is not None, "checked when the study was read"
        assert self.than is not None, "checked when the study was read"
        return self.better, self.than
