"""Marks of tests that several files use."""

import mujoco
import pytest

OLDER_MUJOCO = int(mujoco.__version__.partition(".")[0]) < 4
"""docs/installation.md says what these compute less exactly; `make test-oldest` runs with one."""


def slowly(*values):
    """Parameters of a test that are left to `make test-all`: others show the same in `make test`."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
