"""Where an engine's simulations are: in this process, or each in one of its own.

Either holds an array of rows (see `row_type`). Who wants something writes it into rows and calls `run`; when
that returns, the answers stand in the same rows.
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
from augury.envs.panda import settings as panda_settings
from augury.envs.panda.goals import GoalTask
from augury.envs.panda.reference.simulation import Simulation, row_type
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
"""The server alone: with the rest of the package comes JAX, which must not be in a process that forks."""


class Simulations(Protocol):
    """Rows, and who carries out what they say."""

    rows: npt.NDArray[Any]

    def run(self, chosen: Chosen) -> None: ...

    @property
    def close(self) -> Callable[[], Any]: ...


def require_panda_gym() -> None:
    """Say what to do where the optional packages are missing."""
    if any(importlib.util.find_spec(name) is None for name in ("panda_gym", "pybullet")):
        raise UserError(
            "panda-gym and PyBullet are not installed: pip install 'augury[panda-gym]' "
            "(PyBullet has wheels up to Python 3.11)"
        )


class Here:
    """A single simulation, in this process."""

    def __init__(self, goals: GoalTask, *, pictures: bool = False) -> None:
        require_panda_gym()
        self.rows = np.zeros(1, row_type(goals))
        self._simulation = Simulation(panda_settings.task_name(goals), pictures=pictures)

    def run(self, chosen: Chosen) -> None:
        for place in chosen:
            self._simulation.carry_out(self.rows[place])

    def picture(self) -> npt.NDArray[np.uint8]:
        """What a camera sees."""
        return self._simulation.picture()

    @property
    def close(self) -> Callable[[], Any]:
        """Also called when nobody holds it any longer."""
        return self._simulation.close


class Apart:
    """Many simulations, each in a process of its own; as many run at once as there are cores."""

    def __init__(self, goals: GoalTask, count: int, cores: int | None = None) -> None:
        require_panda_gym()
        if not hasattr(os, "fork"):
            raise UserError("many panda-gym environments at once need a system that can fork: Linux or macOS")
        kind, cores = row_type(goals), min(available_cores() if cores is None else cores, count)
        file = _memory(count * kind.itemsize)
        self.rows = np.ndarray(count, kind, mmap.mmap(file.fileno(), 0))
        task, shared = panda_settings.task_name(goals), file.fileno()
        folder = Path(augury.__file__).parent
        said = [str(part) for part in (folder, task, count, cores, shared, *sys.path)]
        self._server = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *said],
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
        """Ask and wait. Interrupted meanwhile it ends, since what the rows did could not be known."""
        questions, answers = self._server.stdin, self._server.stdout
        assert questions is not None
        assert answers is not None
        try:
            with suppress(BrokenPipeError):  # the answer tells the same
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
    """Memory behind a file that has no name, for other processes to share."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("augury"), "wb")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115
    file.truncate(size)
    return file


def _hang_up(server: subprocess.Popen[bytes]) -> None:
    """Which sends all of them home."""
    for stream in (server.stdin, server.stdout):
        assert stream is not None
        with suppress(BrokenPipeError):  # it left first
            stream.close()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
