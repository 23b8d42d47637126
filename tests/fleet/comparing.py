"""Fleets compared to the last bit, and killed in between."""

import jax
import numpy as np


class KilledError(Exception):
    """In place of a SIGKILL."""


def assert_same(first, second):
    jax.tree.map(np.testing.assert_array_equal, first, second)


def assert_different(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    assert any((a != b).any() for a, b in pairs)


def member(tree, index):
    """One agent, of what a fleet's agents have."""
    return jax.tree.map(lambda leaf: leaf[index : index + 1], tree)
