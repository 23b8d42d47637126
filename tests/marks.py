"""Marks of tests that several files use."""

import pytest


def slowly(*values):
    """Parameters of a test that are left to `make test-all`: others show the same in `make test`."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
