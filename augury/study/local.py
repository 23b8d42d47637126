"""Fleets on this machine, each in a process of its own: whatever happens to it happens to it alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from augury.study.runner import Died, Job, Stopped
from augury.study.store import FINISHED
from augury.study.worker import INTERRUPTED

LOG = "log.txt"


class Local:
    """Processes of this machine."""

    def __init__(self, at_once: int = 1, checkpoint_every: float = 60.0) -> None:
        self.at_once = at_once
        self.checkpoint_every = checkpoint_every
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def execute(self, job: Job, tell: Callable[[dict[str, Any]], None]) -> None:
        with (job.folder / LOG).open("a", encoding="utf-8") as log:
            worker = self._start(job, log)
            assert worker.stdout is not None
            failed = ""
            for line in worker.stdout:
                with suppress(ValueError):  # cut short, when it was killed
                    told = json.loads(line)
                    failed = told.get("failed", "")
                    if not failed:
                        tell(told)
            code = worker.wait()
        self._forget(worker)
        if (job.folder / FINISHED).exists():
            return
        if code == INTERRUPTED or (code and self._stopping):
            raise Stopped
        raise Died(failed or _ending(code, job))

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            for worker in self._running:
                assert worker.stdin is not None
                with suppress(BrokenPipeError):
                    worker.stdin.close()

    def _forget(self, worker: subprocess.Popen[str]) -> None:
        """It has ended."""
        with self._lock:
            self._running.discard(worker)
            for pipe in (worker.stdin, worker.stdout):
                assert pipe is not None
                pipe.close()

    def _start(self, job: Job, log: Any) -> subprocess.Popen[str]:
        said = [str(job.folder), str(self.checkpoint_every)]
        # Each would take most of an accelerator's memory for itself.
        shared = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if self.at_once > 1 else {}
        with self._lock:
            if self._stopping:
                raise Stopped
            worker = subprocess.Popen(
                [sys.executable, "-m", "augury.study.worker", *said],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**shared, **os.environ},
                start_new_session=True,  # Ctrl-C is for the runner to answer
            )
            self._running.add(worker)
        return worker


def _ending(code: int, job: Job) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"its process {how}: see {job.folder / LOG}"
