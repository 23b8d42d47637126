"""How the numbers of a state become those of its image: an orthogonal matrix and an offset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from augury.errors import UserError

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class SymmetryError(UserError):
    """The model has no such symmetry, or it could be meant in several ways."""


@dataclass(frozen=True, eq=False)
class AffineMap:
    """The map x → matrix · x + offset, for one vector or for many in rows."""

    matrix: Array
    offset: Array

    def __call__(self, values: npt.ArrayLike) -> Array:
        return np.asarray(values, float) @ self.matrix.T + self.offset

    def about(self, centre: Array) -> AffineMap:
        """The same map, of displacements from a point."""
        return AffineMap(self.matrix, np.where(np.abs(moved := self(centre) - centre) < 1e-12, 0.0, moved))

    @property
    def permutation(self) -> Integers:
        """Where each number of the image comes from: image = signs * values[permutation]."""
        return self._exchange()[0]

    @property
    def signs(self) -> Array:
        """The sign with which each number of the image was taken."""
        return self._exchange()[1]

    @property
    def is_identity(self) -> bool:
        """Whether everything is its own image."""
        return np.array_equal(self.matrix, np.eye(len(self.offset))) and not self.offset.any()

    @property
    def is_involution(self) -> bool:
        """Whether the image of the image is the original."""
        size = len(self.offset)
        twice = self.matrix @ self.matrix, self.matrix @ self.offset + self.offset
        return np.allclose(twice[0], np.eye(size), atol=1e-9) and np.allclose(twice[1], 0, atol=1e-9)

    def _exchange(self) -> tuple[Integers, Array]:
        permutation = np.abs(self.matrix).argmax(1) if self.matrix.size else np.zeros(0, np.int64)
        signs = self.matrix[np.arange(len(permutation)), permutation]
        rest = self.matrix.copy()
        rest[np.arange(len(permutation)), permutation] = 0
        mixed = np.any(rest, axis=1) | (np.abs(signs) != 1) | (self.offset != 0)
        if mixed.any():
            raise SymmetryError(
                f"number {mixed.argmax()} of the image is no number of the original up to its sign: "
                "use the matrix and the offset"
            )
        return permutation, signs


@dataclass(frozen=True, eq=False)
class Symmetry:
    """How state, controls and sensor readings map."""

    qpos: AffineMap
    qvel: AffineMap
    act: AffineMap
    ctrl: AffineMap
    sensors: AffineMap
    """Not a number in the rows of sensors that have no map."""
    offsets: AffineMap
    """Of positions from the default pose."""
    vectors: AffineMap
    """Of vectors in the base's own frame; not a number where the base has no image, or there is none."""
    pseudovectors: AffineMap

    @property
    def sensordata(self) -> AffineMap:
        """How sensor readings map, where every sensor has a map."""
        missing = np.isnan(self.sensors.matrix).any(1)
        if missing.any():
            raise SymmetryError(f"sensor reading {missing.argmax()} has no map: see not_compared")
        return self.sensors


class Blocks:
    """A map in the making: matrices put where they belong."""

    def __init__(self, size: int):
        self.matrix = np.zeros((size, size))
        self.offset = np.zeros(size)

    def put(self, to: int, source: int, block: npt.ArrayLike, offset: npt.ArrayLike = 0.0) -> None:
        """Let numbers of the image from `to` on be `block` times those of the original from `source` on."""
        block = np.atleast_2d(np.asarray(block, float))
        rows, columns = block.shape
        self.matrix[to : to + rows, source : source + columns] = block
        self.offset[to : to + rows] = offset

    def finished(self) -> AffineMap:
        """The map, with what rounding left of 0 and ±1 removed, so that signs and permutations are exact."""
        whole = np.round(self.matrix)
        matrix = np.where(np.abs(self.matrix - whole) < 1e-12, whole, self.matrix)
        return AffineMap(matrix + 0.0, np.where(np.abs(self.offset) < 1e-12, 0.0, self.offset))
