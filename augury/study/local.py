"""Fleets on this machine, each in a process of its own: so that a crash affects no other fleet."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from augury.study import processes
from augury.study.processes import Worker
from augury.study.runner import Died, Job, Stopped
from augury.study.store import FINISHED
from augury.study.worker import INTERRUPTED, LOG


class Local:
    """Processes of this machine, `at_once` at a time; the first may have been started before."""

    def __init__(self, at_once: int = 1, checkpoint_every: float = 60.0, spare: Worker | None = None) -> None:
        self.at_once = at_once
        self.checkpoint_every = checkpoint_every
        self._spare = spare
        self._running: set[Worker] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def execute(self, job: Job, tell: Callable[[dict[str, Any]], None]) -> None:
        worker = self._start(job)
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
                processes.hang_up(worker)

    def _forget(self, worker: Worker) -> None:
        """It has ended."""
        with self._lock:
            self._running.discard(worker)
            processes.let_go(worker)

    def _start(self, job: Job) -> Worker:
        with self._lock:
            if self._stopping:
                raise Stopped
            worker, self._spare = self._spare, None
            if worker is None or not processes.tell(worker, job.folder, self.checkpoint_every):
                worker = processes.start(self.at_once)
                processes.tell(worker, job.folder, self.checkpoint_every)
            self._running.add(worker)
        return worker


def _ending(code: int, job: Job) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"its process {how}: see {job.folder / LOG}"
