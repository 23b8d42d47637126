"""Ctrl-C and termination, noticed where there is something to save first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deferred_interrupt(note: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Take note of a request to stop instead of obeying at once; yields whether there was one.

    A second one is final. An exception raised by a signal would not do: it may fall into somebody's callback,
    where Python ignores it.
    """
    asked = False

    def handle(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        note()

    try:
        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: signals are somebody else's
        before = {}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
