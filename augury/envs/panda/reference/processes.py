"""Where an engine's simulations run: one in this process, or each in a process of its own.

Both hold an array of rows (see `row_type`). The engine writes requests into rows and calls `run`. When that
returns, the same rows hold the answers.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

import augury
from augury.envs.mujoco.physics import available_cores
from augury.envs.panda.goals import GoalTask
from augury.envs.panda.reference.simulation import Simulation, row_type
from augury.envs.panda.settings import task_name
from augury.errors import UserError

Chosen = npt.NDArray[np.intp]

_PROGRAM = """
import sys, types
folder, task, count, cores, shared, *sys.path = sys.argv[1:]
for name, path in (("augury", folder), ("augury.envs", f"{folder}/envs")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from augury.envs.panda.reference.server import main
main(task, int(count), int(cores), int(shared))
"""
"""Runs the server without importing the rest of the package, since that imports JAX, and a process with JAX
must not fork."""


class Simulations(Protocol):
    """Rows, and the simulations that carry out their requests."""

    rows: npt.NDArray[Any]

    def run(self, chosen: Chosen) -> None: ...

    @property
    def close(self) -> Callable[[], Any]: ...


def require_panda_gym() -> None:
    """Raise an error that says what to install where the optional packages are missing."""
    if any(importlib.util.find_spec(name) is None for name in ("panda_gym", "pybullet")):
        raise UserError(
            "panda-gym and PyBullet are not installed: pip install 'augury[panda-gym]' "
            "(PyBullet has wheels up to Python 3.11)"
        )


class LocalSimulation:
    """A single simulation, in this process."""

    def __init__(self, goals: GoalTask, *, pictures: bool = False) -> None:
        require_panda_gym()
        self.rows = np.zeros(1, row_type(goals))
        self._simulation = Simulation(task_name(goals), pictures=pictures)

    def run(self, chosen: Chosen) -> None:
        for index in chosen:
            self._simulation.carry_out(self.rows[index])

    def picture(self) -> npt.NDArray[np.uint8]:
        """A picture by panda-gym's camera."""
        return self._simulation.picture()

    @property
    def close(self) -> Callable[[], Any]:
        """Also called when the simulation is garbage collected."""
        return self._simulation.close


class ForkedSimulations:
    """Many simulations, each in a process of its own; at most `cores` of them run at a time."""

    def __init__(self, goals: GoalTask, count: int, cores: int | None = None) -> None:
        require_panda_gym()
        if not hasattr(os, "fork"):
            raise UserError("many panda-gym environments at once need a system that can fork: Linux or macOS")
        kind, cores = row_type(goals), min(available_cores() if cores is None else cores, count)
        file = _memory(count * kind.itemsize)
        self.rows = np.ndarray(count, kind, mmap.mmap(file.fileno(), 0))
        task, shared = task_name(goals), file.fileno()
        folder = Path(augury.__file__).parent
        arguments = [str(part) for part in (folder, task, count, cores, shared, *sys.path)]
        self._server = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(shared,),
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},  # it forks
        )
        file.close()
        self.close = weakref.finalize(self, _hang_up, self._server)
        self._ask(b"")

    def run(self, chosen: Chosen) -> None:
        if not self.close.alive:
            raise UserError("these environments are closed")
        self._ask(np.array([len(chosen), *chosen], np.int32).tobytes())

    def _ask(self, request: bytes) -> None:
        """Send a request and wait for its answer.

        If that is interrupted, the server is closed: nobody could know what the rows hold.
        """
        questions, answers = self._server.stdin, self._server.stdout
        assert questions is not None
        assert answers is not None
        try:
            with suppress(BrokenPipeError):  # then there is no answer either
                questions.write(request)
                questions.flush()
            answer = answers.read(1)
        except BaseException:
            self.close()
            raise
        if not answer:
            self.close()
            raise RuntimeError(f"the simulations of panda-gym ended, with status {self._server.returncode}")


def _memory(size: int) -> IO[bytes]:
    """Shared memory: a file without a name, which other processes can map."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("augury"), "wb")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115
    file.truncate(size)
    return file


def _hang_up(server: subprocess.Popen[bytes]) -> None:
    """Close the server's pipes, on which it and all simulations exit."""
    for stream in (server.stdin, server.stdout):
        assert stream is not None
        with suppress(BrokenPipeError):  # it exited first
            stream.close()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
