"""Starting workers. Importing this costs nothing, so a worker can import what it needs while the runner does.

A worker reads from its standard input what to train, and stops when that input ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from augury.errors import UserError

Worker = subprocess.Popen[str]


def start(at_once: int) -> Worker:
    """A worker that waits for its fleet; `at_once` of them may run at the same time."""
    # Each would take most of an accelerator's memory for itself.
    shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if at_once > 1 else {}
    importable = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # what can be imported here
    return subprocess.Popen(
        [sys.executable, "-m", "augury.study.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**shared, **os.environ, **importable},
        start_new_session=True,  # Ctrl-C is for the runner to answer
    )


def tell(worker: Worker, folder: Path, checkpoint_every: float) -> bool:
    """Send a worker its fleet; returns whether the worker is still there."""
    assert worker.stdin is not None
    try:
        worker.stdin.write(json.dumps({"folder": str(folder), "checkpoint_every": checkpoint_every}) + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return False
    return True


def hang_up(worker: Worker) -> None:
    """Ask a worker to stop."""
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        worker.stdin.close()


def let_go(worker: Worker) -> None:
    """Wait for a worker to end, and close what is left of it."""
    hang_up(worker)
    worker.wait()
    assert worker.stdout is not None
    worker.stdout.close()


@contextmanager
def spare_worker(at_once: int) -> Iterator[Worker]:
    """A worker that is started now, for whoever needs one first."""
    worker = start(at_once)
    try:
        yield worker
    finally:
        let_go(worker)


def check_needs(cpus: int | None, gpus: int | None) -> None:
    """Refuse numbers of CPUs and GPUs with which no fleet could train."""
    if (cpus is not None and cpus < 1) or (gpus is not None and gpus < 0):
        raise UserError("a fleet needs at least 1 CPU, and 0 GPUs or more")
