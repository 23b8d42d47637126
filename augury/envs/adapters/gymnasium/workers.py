"""All copies of an environment: in this process, or a share of them in each of several (AsyncVectorEnv)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from augury.envs.adapters.gymnasium.share import (
    ENDS,
    EXTRAS,
    FAILURE,
    REMARK,
    RETURNS,
    Copies,
    Failure,
    Numbers,
    Plan,
    Share,
    each_part,
)
from augury.errors import RaisedElsewhere, UserError

LEAVING_SECONDS = 10.0
"""How long processes may take to end by themselves."""


class RowsStep(NamedTuple):
    """What a step of all rows gave."""

    observation: Any
    reward: Numbers
    terminated: Numbers
    truncated: Numbers
    ends: Any
    """Observations before rows that ended began anew; None where none ended."""
    extras: Numbers
    """(rows, names)."""
    remark: str
    """A line to tell the user; mostly empty."""


class AllRows(Protocol):
    """All copies of an environment, wherever they are."""

    def begin(self, plan: Plan) -> tuple[Any, Numbers]:
        """Begin the plan's episodes and repeat their steps: observations, and returns so far."""

    def step(self, actions: Numbers) -> RowsStep: ...

    def states(self) -> dict[str, Numbers]:
        """Where every row is, of environments that give their state; else empty."""

    def close(self) -> None: ...


def rows_of(copies: Copies, count: int, processes: int) -> AllRows:
    """So many copies, in at most so many processes. What they give does not depend on how many there are."""
    each = math.ceil(count / min(processes, count))
    return LocalRows(copies, count) if each == count else WorkerRows(copies, count, each)


class LocalRows:
    """In this process."""

    def __init__(self, copies: Copies, count: int) -> None:
        self._share = Share(copies, count, count)
        self._extras = np.zeros((count, 0), np.float32)

    def begin(self, plan: Plan) -> tuple[Any, Numbers]:
        self._share.plan = plan
        observation, infos = self._share.reset()
        _raise_failure(infos.get(FAILURE))
        return each_part(np.copy, observation), infos[RETURNS]

    def step(self, actions: Numbers) -> RowsStep:
        observation, reward, terminated, truncated, infos = self._share.step(actions)
        _raise_failure(infos.get(FAILURE))
        rest = infos.get(ENDS), infos.get(EXTRAS, self._extras), infos.get(REMARK, "")
        return RowsStep(each_part(np.copy, observation), reward, terminated, truncated, *rest)

    def states(self) -> dict[str, Numbers]:
        states = self._share.states()
        _raise_failure(states.get(FAILURE))
        return states

    def close(self) -> None:
        self._share.close()


class WorkerRows:
    """In processes of their own, each with `each` rows; the last may have fewer."""

    def __init__(self, copies: Copies, count: int, each: int) -> None:
        self._called, self._count, self._each, self._steps = copies.called, count, each, 0
        self._firsts = range(0, count, each)
        shares = [partial(Share, copies, each, min(each, count - first)) for first in self._firsts]
        self._extras = np.zeros((count, 0), np.float32)
        try:
            self._vector = AsyncVectorEnv(
                shares,
                copy=False,
                context="spawn",  # a process with JAX must not fork
                autoreset_mode=AutoresetMode.DISABLED,
            )
        except (EOFError, OSError) as error:
            raise UserError(
                f"the processes of {copies.called} did not start: a script must run what it does under "
                "if __name__ == '__main__'"
            ) from error

    def begin(self, plan: Plan) -> tuple[Any, Numbers]:
        plans = [plan.rows(_filled_up(first, self._each, self._count)) for first in self._firsts]
        self._asked(self._vector.set_attr, "plan", plans)
        observation, infos = self._asked(self._vector.reset)
        self._raise_failures(infos)
        return each_part(self._joined, observation), self._joined(infos[RETURNS])

    def step(self, actions: Numbers) -> RowsStep:
        self._steps += 1
        missing = len(self._firsts) * self._each - self._count
        given = np.concatenate([actions, np.repeat(actions[-1:], missing, 0)]) if missing else actions
        shared = given.reshape(len(self._firsts), self._each, *actions.shape[1:])
        observation, reward, terminated, truncated, infos = self._asked(self._vector.step, shared)
        self._raise_failures(infos)
        ends = each_part(self._joined, _entries(infos[ENDS])) if ENDS in infos else None
        extras = self._joined(infos[EXTRAS]) if EXTRAS in infos else self._extras
        remark = next((said for said in infos.get(REMARK, ()) if said), "")
        return RowsStep(
            each_part(self._joined, observation),
            self._joined(reward),
            self._joined(terminated),
            self._joined(truncated),
            ends,
            extras,
            remark,
        )

    def states(self) -> dict[str, Numbers]:
        shares = self._asked(self._vector.call, "states")
        for share in shares:
            _raise_failure(share.get(FAILURE))
        return {name: self._joined(np.stack([share[name] for share in shares])) for name in shares[0]}

    def close(self) -> None:
        if not self._vector.closed:
            self._asked(partial(self._vector.close, timeout=LEAVING_SECONDS))

    def _joined(self, values: Numbers) -> Numbers:
        """Rows of all shares, one after the other, without those that only fill up; a copy."""
        return values.reshape(-1, *values.shape[2:])[: self._count].copy()

    def _asked(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the processes answer. If that goes wrong they are ended: nobody knows what they are doing."""
        try:
            return function(*arguments)
        except (EOFError, OSError) as error:
            codes = self._end()
            raise UserError(
                f"a process of {self._called} died (exit code {codes}) in step {self._steps}"
            ) from error
        except BaseException:
            self._end()
            raise

    def _end(self) -> str:
        """End all processes; returns the exit codes of those that had ended before."""
        for process in self._vector.processes:
            process.join(0.1)
        codes = {process.exitcode for process in self._vector.processes if process.exitcode is not None}
        for process in self._vector.processes:
            process.terminate()
            process.join()
        self._vector.closed = True
        return " and ".join(map(str, sorted(codes))) or "unknown"

    def _raise_failures(self, infos: dict[str, Any]) -> None:
        for failure in infos.get(FAILURE, ()):
            _raise_failure(failure)


def _raise_failure(failure: Failure | None) -> None:
    if failure is not None:
        line, trace = failure
        raise UserError(line) from (RaisedElsewhere(trace) if trace else None)


def _filled_up(first: int, rows: int, count: int) -> Numbers:
    """So many rows from the first on; the last of all is repeated."""
    return np.minimum(np.arange(first, first + rows), count - 1)


def _entries(values: Any) -> Any:
    """Without the masks that Gymnasium adds to dicts of infos."""
    if not isinstance(values, dict):
        return values
    return {name: part for name, part in values.items() if f"_{name}" in values}
