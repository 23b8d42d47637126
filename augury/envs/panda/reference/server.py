"""The process in which simulations are born: one is made, and a copy of the process for each row steps it.

    server   makes a simulation, forks once for each row, and then passes on what the engine asks
    row      a copy of the server: it carries out what its row says, in memory that all of them share

A copy shares what it does not write to, so that a row takes 3 MB and 5 ms; a simulation of its own would take
41 MB and 50 ms, for which an evaluation of a few hundred episodes has no room. Only so many rows as there are
cores run at a time.

It all ends with the engine: who reads an end of file goes home.
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the engine to answer
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # nobody else writes answers
    rows = np.ndarray(count, row_type(GOAL_TASKS[task]), mmap.mmap(shared, 0))
    simulation = Simulation(task)
    _allow_many_files()
    gc.freeze()  # what exists by now is not touched again, and stays shared
    channels: list[socket.socket] = []
    try:
        channels.extend(_born(simulation, row) for row in rows)
        answers.write(DONE)
        _serve(channels, sys.stdin.buffer, answers, cores)
    except BrokenPipeError:
        pass  # the engine did not wait for an answer
    finally:
        _dismiss(channels)


def _serve(channels: list[socket.socket], questions: IO[bytes], answers: IO[bytes], cores: int) -> None:
    with selectors.DefaultSelector() as selector:
        for channel in channels:
            selector.register(channel, selectors.EVENT_READ)
        while (chosen := _request(questions)) is not None:
            _pass_on((channels[place] for place in chosen), selector, cores)
            answers.write(DONE)


def _request(questions: IO[bytes]) -> Any:
    """Which rows have something to do; none when there will be no more requests."""
    head = questions.read(4)
    if len(head) < 4:
        return None
    return np.frombuffer(questions.read(4 * int.from_bytes(head, sys.byteorder)), np.int32)


def _pass_on(chosen: Iterable[socket.socket], selector: selectors.BaseSelector, cores: int) -> None:
    """Wake these rows, a few at a time, and wait until all have done what they were asked."""
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


def _born(simulation: Simulation, row: Any) -> socket.socket:
    """A copy of this process that serves a row, at the other end of the socket."""
    here, there = socket.socketpair()
    if os.fork():
        there.close()
        return here
    status = 1
    try:
        # The server's ends of all sockets so far: with copies about, nobody would see it leave.
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
    """Let the rows go home, and see them off."""
    for channel in channels:
        channel.close()
    with suppress(ChildProcessError):  # when there is none left
        while True:
            os.wait()


def _allow_many_files() -> None:
    """As many as this system lets a process have: a row takes one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS names a number that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
