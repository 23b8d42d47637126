"""The task of examples/quadruped.py, as `module:name` finds it from its folder."""

import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def quadruped(monkeypatch):
    """The module, in the folder in which commands run."""
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.syspath_prepend(EXAMPLES)
    import quadruped as module

    yield module
    sys.modules.pop("quadruped", None)
