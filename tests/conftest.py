"""Tests run on two CPU devices, each with a program of its own, and compile each program once.

Most of their time would go into compiling the same programs again, in every worker and in every command that
they start. Commands that are killed have a cache of their own, should one leave a part of an entry behind.
"""

import os
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["OMP_NUM_THREADS"] = "1"  # PyTorch's networks here are small, and workers share the cores

import jax
import pytest

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_compilation_cache_dir", str(CACHE / "tests"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(CACHE / "commands")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"


@pytest.fixture(autouse=True)
def _devices_stay(monkeypatch):
    """Commands that run in this process keep the two devices, whatever the machine has."""
    monkeypatch.setattr("augury.cli.prepare", lambda: None)


@pytest.fixture
def strict_dtypes():
    """An unintended cast is an error; not for tests that optimise, because Optax casts."""
    with jax.numpy_dtype_promotion("strict"):
        yield
