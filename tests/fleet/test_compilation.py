"""Compiled programs that are kept: where, for whom, and what becomes of damaged ones."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from augury.fleet import compilation, keep_compiled

PROGRAM = """
import logging, os, jax, jax.numpy as jnp
from augury.fleet import keep_compiled
keep_compiled()
jax.config.update("jax_explain_cache_misses", True)
print(float(jax.jit(lambda x: jnp.sin(x) @ x.T)(jnp.ones((3, 3))).sum()))
"""


@pytest.fixture
def unset(monkeypatch, tmp_path):
    """A user who has said nothing, and whose cache is in a temporary folder."""
    said = {name: getattr(jax.config, name) for name in _OPTIONS}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(compilation.VARIABLE, raising=False)
    yield tmp_path
    for name, value in said.items():
        jax.config.update(name, value)


_OPTIONS = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


def chosen() -> Path | None:
    keep_compiled()
    found = jax.config.jax_compilation_cache_dir
    return None if found is None else Path(found)


@pytest.mark.filterwarnings("ignore")  # it adds a filter of its own, which ends with the test
def test_programs_are_kept_in_the_users_cache_folder(unset):
    folder = chosen()
    assert folder is not None
    assert folder.parent == unset / "augury" / "xla"
    assert folder.stat().st_mode & 0o77 == 0


@pytest.mark.filterwarnings("ignore")
def test_the_folder_may_be_another_or_none(unset, monkeypatch):
    monkeypatch.setenv(compilation.VARIABLE, "off")
    assert chosen() is None
    monkeypatch.setenv(compilation.VARIABLE, str(unset / "elsewhere"))
    folder = chosen()
    assert folder is not None
    assert folder.parent == unset / "elsewhere"


def test_who_has_told_jax_where_has_the_last_word(unset):
    jax.config.update("jax_compilation_cache_dir", str(unset / "own"))
    before = jax.config.jax_persistent_cache_min_compile_time_secs
    assert chosen() == unset / "own"
    assert jax.config.jax_persistent_cache_min_compile_time_secs == before


def test_a_folder_that_cannot_be_made_hinders_nothing(unset):
    (unset / "augury").write_text("not a folder")
    assert chosen() is None


def run(folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "XDG_CACHE_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(made.stdout) == pytest.approx(27 * 0.841471)
    return made.stderr


@pytest.mark.slow
def test_half_an_entry_is_replaced_and_then_used_again(tmp_path):
    assert "PERSISTENT COMPILATION CACHE MISS" in run(tmp_path)
    entries = list(tmp_path.rglob("*-cache"))
    for entry in entries:
        os.truncate(entry, entry.stat().st_size // 2)
    said = run(tmp_path)
    assert "PERSISTENT COMPILATION CACHE MISS" in said
    assert "Error" not in said
    assert "PERSISTENT COMPILATION CACHE MISS" not in run(tmp_path)


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    for age, name in enumerate(["new-cache", "old-cache", "older-cache"]):
        (tmp_path / name).write_bytes(b"(" * 100)
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    compilation.tidy(tmp_path, most_bytes=250)
    assert {path.name for path in tmp_path.glob("*-cache")} == {"new-cache", "old-cache"}
