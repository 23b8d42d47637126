"""Fleets on a Ray cluster, each a task that may run on any node.

Nodes need not share a file system. A task takes the files of its fleet along, trains in a folder of its own
as this machine would, and sends back what is new: progress, checkpoints, in the end the results. A fleet
whose node is lost goes on elsewhere, from the last checkpoint that arrived.
"""

from __future__ import annotations

import importlib
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median_high
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from augury.envs.mujoco.physics import CORES
from augury.errors import UserError
from augury.files import replacing
from augury.runs import checkpoints
from augury.study.local import Local
from augury.study.processes import check_needs
from augury.study.runner import Died, Job, Stopped
from augury.study.store import FINISHED, PROGRESS, UNFINISHED
from augury.study.worker import JOB, LOG

RESTARTS = 3
"""How often a fleet is started again after its node was lost."""
LOOK_EVERY = 1.0
"""Seconds between looks for a new checkpoint; a request to stop is noticed as often."""
PATIENCE = 600.0
"""Seconds to wait for what a node has announced: Ray may not notice that it will never come."""
_TAKEN, _SENT = (JOB, LOG, checkpoints.NAME), (PROGRESS, LOG, checkpoints.NAME)
_START_ONE = "start one with: ray start --head"


class File(NamedTuple):
    """A file that travels."""

    name: str
    """Its path below the fleet's folder."""
    content: np.ndarray[Any, Any]
    """An array of bytes: Ray copies those once, from the file into shared memory."""


class Ended(NamedTuple):
    """A node's last message about a fleet: why it died, or nothing."""

    why: str


class Cluster:
    """The Ray cluster that RAY_ADDRESS names, or the one that this machine is part of.

    A fleet takes `gpus` of a node, one if there are any, and `cpus`, by default its share of a typical node.
    By default as many fleets train at once as the cluster has room for.
    """

    def __init__(
        self,
        checkpoint_every: float = 60.0,
        cpus: int | None = None,
        gpus: int | None = None,
        at_once: int | None = None,
    ) -> None:
        check_needs(cpus, gpus)
        self.checkpoint_every = checkpoint_every
        self.at_once = at_once or 0
        self._asked = cpus, gpus
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        self._stopping = False

    def __enter__(self) -> Self:
        self._ray = ray = _ray()
        with ExitStack() as held:
            if not ray.is_initialized():
                _connect(ray)
                held.callback(ray.shutdown)
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            cpus, gpus, room = needs_of(nodes, *self._asked)
            self._held = held.pop_all()
        self._needs = cpus, gpus
        self._task = ray.remote(train_on_node).options(
            num_cpus=cpus, num_gpus=gpus, num_returns="streaming", max_retries=0
        )
        self.at_once = self.at_once or room
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def execute(self, job: Job, tell: Callable[[dict[str, Any]], None]) -> None:
        for _ in range(1 + RESTARTS):
            why = self._attempt(job, tell)
            if (job.folder / FINISHED).exists():
                return
            if self._stopping:
                raise Stopped
            with (job.folder / LOG).open("a", encoding="utf-8") as log:
                log.write(f"lost: {why}\n")
        raise Died(f"its node was lost {1 + RESTARTS} times: {why}")

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            for stream in self._running:
                self._ray.cancel(stream)

    def _attempt(self, job: Job, tell: Callable[[dict[str, Any]], None]) -> str:
        """Train a fleet on some node, from the newest checkpoint on; returns why, if it was lost."""
        errors, died = self._ray.exceptions, ""
        with self._running_task(job) as stream:
            try:
                for reference in stream:
                    match self._ray.get(reference, timeout=PATIENCE):
                        case File() as file:
                            _write(job.folder, file)
                        case Ended(died):
                            self._forget(stream)
                            if not died:
                                (job.folder / UNFINISHED).rename(job.folder / FINISHED)
                        case told:
                            tell(told)
            except errors.RayTaskError as error:
                died = str(error).strip().splitlines()[-1]
            except errors.GetTimeoutError:
                self._ray.cancel(stream)
                return "what its node sent did not arrive"
            except errors.RayError as error:
                return str(error).strip().split("\n")[0] or type(error).__name__
            except (UserError, OSError):
                self._ray.cancel(stream)
                raise
        if died and not self._stopping:
            raise Died(died)
        return "it was told to leave its node"

    @contextmanager
    def _running_task(self, job: Job) -> Iterator[Any]:
        """A task that trains the fleet, as the stream of what it sends."""
        files = [_read(job.folder, name) for name in _TAKEN if (job.folder / name).exists()]
        with self._lock:
            if self._stopping:
                raise Stopped
            stream = self._task.remote(job, files, self.checkpoint_every, *self._needs)
            self._running.add(stream)
        try:
            yield stream
        finally:
            self._forget(stream)

    def _forget(self, stream: Any) -> None:
        """Never cancel it again: Ray aborts this process if a task is cancelled in the moment it ends."""
        with self._lock:
            self._running.discard(stream)


def train_on_node(
    job: Job, files: list[File], checkpoint_every: float, cpus: int, gpus: int
) -> Iterator[dict[str, Any] | File | Ended]:
    """Train a fleet here in a process of its own, and yield its progress, files and end."""
    os.environ[CORES] = str(cpus)
    if not gpus:
        os.environ["JAX_PLATFORMS"] = "cpu"  # Ray does not hide those that were not asked for
    with TemporaryDirectory(prefix="augury-") as made:
        folder = Path(made)
        for file in files:
            _write(folder, file)
        told: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        local, seen = Local(1, checkpoint_every), _times(folder)
        with ThreadPoolExecutor(1) as pool:
            training = pool.submit(local.execute, replace(job, folder=folder), told.put)
            training.add_done_callback(lambda _: told.put(None))
            try:
                yield from _news(folder, seen, told)
            finally:
                local.stop()
        try:
            training.result()
            ended = Ended("")
            yield from _results(folder)
        except Stopped:
            return  # the node is leaving
        except Died as error:
            ended = Ended(str(error).replace(str(folder), str(job.folder)))
    yield ended


def _news(
    folder: Path, seen: dict[str, int], told: queue.SimpleQueue[dict[str, Any] | None]
) -> Iterator[dict[str, Any] | File]:
    """Progress until the queue holds None, and files as they change, except those of a finished fleet."""
    going_on = True
    while going_on:
        with suppress(queue.Empty):
            standing = told.get(timeout=LOOK_EVERY)
            going_on = standing is not None
            if standing is not None:
                yield standing
        if not (folder / FINISHED).exists():
            now = _times(folder)
            yield from (_read(folder, name) for name in now if now[name] != seen.get(name))
            seen = now


def _times(folder: Path) -> dict[str, int]:
    return {name: (folder / name).stat().st_mtime_ns for name in _SENT if (folder / name).exists()}


def _results(folder: Path) -> Iterator[File]:
    made = folder / FINISHED
    for path in made.rglob("*"):
        if path.is_file():
            file = _read(made, str(path.relative_to(made)))
            yield file._replace(name=f"{UNFINISHED}/{file.name}")


def _read(folder: Path, name: str) -> File:
    path = folder / name
    empty = path.stat().st_size == 0  # which cannot be mapped
    return File(name, np.zeros(0, np.uint8) if empty else np.asarray(np.memmap(path, np.uint8, "r")))


def _write(folder: Path, file: File) -> None:
    path = folder / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        file.content.tofile(temporary)


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise UserError("a Ray cluster needs Ray: pip install 'augury[ray]'") from error


def _connect(ray: Any) -> None:
    address = os.environ.get("RAY_ADDRESS") or "auto"
    if address.startswith("ray://"):
        raise UserError(f"RAY_ADDRESS is {address}: name HOST:PORT instead, and run this on one of its nodes")
    try:
        if address != "auto":
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=10).close()  # Ray would try for minutes
        terminated = signal.getsignal(signal.SIGTERM)
        ray.init(address, log_to_driver=False, logging_level="ERROR")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, terminated)  # Ray has made it exit at once
    except (OSError, ValueError) as error:
        where = "" if address == "auto" else f" at {address}, which RAY_ADDRESS names"
        raise UserError(f"no Ray cluster was found{where}: {_START_ONE}") from error
    except RuntimeError as error:  # its versions of Ray or Python are others, say
        raise UserError(f"cannot join the Ray cluster: {' '.join(str(error).split())}") from error


def needs_of(nodes: list[Mapping[str, float]], cpus: int | None, gpus: int | None) -> tuple[int, int, int]:
    """CPUs and GPUs of a fleet, and how many fleets there is room for."""
    sizes = [(int(node.get("CPU", 0)), int(node.get("GPU", 0))) for node in nodes]
    if gpus is None:
        gpus = 1 if any(has for _, has in sizes) else 0
    able = [(size, has) for size, has in sizes if size >= (cpus or 1) and has >= gpus]
    if not able:
        raise UserError(f"no node of the Ray cluster has {cpus or 1} CPUs and {gpus} GPUs for a fleet")
    if cpus is None:
        cpus = max(1, median_high(size // (has // gpus if gpus else 1) for size, has in able))
    room = sum(min(size // cpus, has // gpus) if gpus else size // cpus for size, has in able)
    return cpus, gpus, max(1, room)
