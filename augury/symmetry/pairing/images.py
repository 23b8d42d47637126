"""The mirror image of every element of a model, and the sign that comes with it."""

from __future__ import annotations

from dataclasses import dataclass, field

import mujoco

from augury.symmetry.frames import Mirror
from augury.symmetry.maps import Array
from augury.symmetry.pairing.names import label

NO_IMAGE = -2
"""In place of the index of an image; -1 is MuJoCo's word for no element at all."""


@dataclass
class Pairing:
    """By kind: the image of every element, and the sign that its value gets."""

    mirror: Mirror
    images: dict[str, list[int]] = field(default_factory=dict)
    signs: dict[str, list[float]] = field(default_factory=dict)
    offsets: dict[str, list[float]] = field(default_factory=dict)
    """What is added to the "ctrl" and to the "act" of every actuator's image."""
    left_out: dict[str, set[int]] = field(default_factory=dict)
    """By kind: elements that stay as they are. Each is its own image."""

    @property
    def model(self) -> mujoco.MjModel:
        """The model whose elements are paired."""
        return self.mirror.model

    def image(self, kind: str, index: int) -> int:
        """The image of an element, or of no element: -1."""
        return self.images[kind][index] if index >= 0 else index

    def turned(self, kind: str, index: int) -> Array:
        """The matrix from an element's frame to that of its image."""
        return self.mirror.turned(kind, index, self.images["body" if kind == "inertia" else kind][index])

    def pairs(self, kind: str) -> list[tuple[int, int]]:
        """Every element that has an image with it, each pair once, but for those that stay as they are."""
        left_out = self.left_out.get(kind, set())
        return [(a, b) for a, b in enumerate(self.images[kind]) if a <= b and a not in left_out]

    def label(self, kind: str, index: int) -> str:
        """What an element is called."""
        return label(self.model, kind, index)
