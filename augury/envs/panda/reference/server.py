"""The process that makes one simulation and forks a copy of it for each row.

    server   makes a simulation, forks once for each row, and then passes on the engine's requests
    worker   a fork of the server: it carries out the requests in its row, in memory that all processes share

A fork shares the memory that it does not write to, so that a worker takes 3 MB and 5 ms. A simulation of its
own would take 41 MB and 50 ms, too much for an evaluation of a few hundred episodes. At most as many workers
run at a time as there are cores.

All processes end with the engine: server and workers exit when they read an end of file.
"""

from __future__ import annotations

import gc
import mmap
import os
import resource
import selectors
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any

import numpy as np

from augury.envs.panda.goals import GOAL_TASKS
from augury.envs.panda.reference.simulation import Simulation, row_type

DONE = b"."


def main(task: str, count: int, cores: int, shared: int) -> None:
    """Serve `count` rows of a task in the memory behind a file descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine handles Ctrl-C
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # so that nothing else is written among the answers
    rows = np.ndarray(count, row_type(GOAL_TASKS[task]), mmap.mmap(shared, 0))
    simulation = Simulation(task)
    _allow_many_files()
    gc.freeze()  # collections must not write to what exists: it stays shared
    channels: list[socket.socket] = []
    try:
        channels.extend(_forked(simulation, row) for row in rows)
        answers.write(DONE)
        _serve(channels, sys.stdin.buffer, answers, cores)
    except BrokenPipeError:
        pass  # the engine did not wait for an answer
    finally:
        _dismiss(channels)


def _serve(channels: list[socket.socket], requests: IO[bytes], answers: IO[bytes], cores: int) -> None:
    with selectors.DefaultSelector() as selector:
        for channel in channels:
            selector.register(channel, selectors.EVENT_READ)
        while (chosen := _next_request(requests)) is not None:
            _pass_on((channels[index] for index in chosen), selector, cores)
            answers.write(DONE)


def _next_request(requests: IO[bytes]) -> Any:
    """The indices of the rows with requests; None when no more requests will come."""
    head = requests.read(4)
    if len(head) < 4:
        return None
    return np.frombuffer(requests.read(4 * int.from_bytes(head, sys.byteorder)), np.int32)


def _pass_on(chosen: Iterable[socket.socket], selector: selectors.BaseSelector, cores: int) -> None:
    """Wake these workers, `cores` at a time, and wait until all have finished."""
    waiting, running = deque(chosen), 0
    while waiting or running:
        while waiting and running < cores:
            waiting.popleft().send(DONE)
            running += 1
        for key, _ in selector.select():
            channel: Any = key.fileobj
            if not channel.recv(1):
                raise SystemExit("a simulation ended unexpectedly")
            running -= 1


def _forked(simulation: Simulation, row: Any) -> socket.socket:
    """Fork a worker that serves a row, and return the socket to it."""
    here, there = socket.socketpair()
    if os.fork():
        there.close()
        return here
    status = 1
    try:
        # Close the server's ends of all sockets so far. While one is open, its worker sees no end of file.
        os.closerange(3, there.fileno())
        while there.recv(1):
            simulation.carry_out(row)
            there.send(DONE)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _dismiss(channels: list[socket.socket]) -> None:
    """Let the workers exit, and wait for them."""
    for channel in channels:
        channel.close()
    with suppress(ChildProcessError):  # raised when none is left
        while True:
            os.wait()


def _allow_many_files() -> None:
    """Raise the limit of open files as far as the system allows: every worker takes one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS reports a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
