"""Tests run on two CPU devices, each with a program of its own."""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["OMP_NUM_THREADS"] = "1"  # PyTorch's networks here are small, and workers share the cores

import jax
import pytest

jax.config.update("jax_num_cpu_devices", 2)


@pytest.fixture(autouse=True)
def _devices_stay(monkeypatch):
    """Commands that run in this process keep the two devices, whatever the machine has."""
    monkeypatch.setattr("augury.cli.use_all_cores", lambda: None)


@pytest.fixture
def strict_dtypes():
    """An unintended cast is an error; not for tests that optimise, because Optax casts."""
    with jax.numpy_dtype_promotion("strict"):
        yield
