"""A process that trains one fleet of a study: `python -m augury.study.worker`.

The first line of its standard input is the fleet's folder, as JSON. The folder's job.json says which arms,
and where their results belong. Progress goes out as lines of JSON. When its standard input ends, it saves a
checkpoint and exits. That takes a moment, so the next worker on the same folder waits for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from augury import envs
from augury.errors import UserError
from augury.files import replacing
from augury.fleet import Arm, Interrupted, Progress, keep_compiled, train_fleet, use_all_cores
from augury.runs import checkpoints, results
from augury.runs.files import LOCK
from augury.study.store import FINISHED, PLACES, PROGRESS, UNFINISHED

JOB, LOG = "job.json", "log.txt"
INTERRUPTED, REFUSED = 130, 2


def write_job(folder: Path, arms: list[Arm], places: list[str], names: list[tuple[str, str]]) -> None:
    """Write a fleet's job.json."""
    folder.mkdir(parents=True, exist_ok=True)
    job = {"asked": [arm.described() for arm in arms], "places": places, "names": names}
    with replacing(folder / JOB) as temporary:
        temporary.write_text(json.dumps(job, indent=2) + "\n", encoding="utf-8")


def work(folder: Path, tell: Callable[[dict[str, Any]], None], checkpoint_every: float = 60.0) -> None:
    """Train a folder's fleet, from its checkpoint on if it has one, and leave its results in `finished`."""
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    arms = [Arm.from_description(asked) for asked in job["asked"]]
    ends = np.cumsum([arm.agents for arm in arms])[:-1]
    measure = envs.make(arms[0].environment).measure

    def watch(progress: Progress) -> None:
        scores = None
        if progress.evaluated is not None:
            by_arm = np.split(getattr(progress.evaluated, measure), ends)
            scores = [[results.rounded(score, 4) for score in own] for own in by_arm]
        standing: dict[str, Any] = {
            "steps": progress.steps,
            "of": arms[0].rounds * arms[0].round_steps,
            "speed": None if progress.speed is None else round(progress.speed, 1),
            "left": None if progress.left is None else round(progress.left, 1),
            "measure": measure,
            "scores": scores,
        }
        if scores is not None:
            with replacing(folder / PROGRESS) as temporary:
                temporary.write_text(json.dumps({**standing, "arms": job["names"]}) + "\n", encoding="utf-8")
        tell(standing)

    saved = folder / checkpoints.NAME
    trained = train_fleet(arms, checkpoint=saved, checkpoint_every=checkpoint_every, watch=watch)
    partial = folder / UNFINISHED
    for number, result in enumerate(trained):
        (partial / str(number)).mkdir(parents=True, exist_ok=True)
        results.write(partial / str(number), result)
    with replacing(partial / PLACES) as temporary:
        temporary.write_text(json.dumps(job["places"]), encoding="utf-8")
    partial.rename(folder / FINISHED)


def main() -> int:
    """Work; report the outcome by an exit code and, after a failure, a last line."""
    if not (line := _first_line()):
        return 0  # nobody waits for this worker
    said = json.loads(line)
    folder = Path(said["folder"])
    answers = os.fdopen(os.dup(1), "w", buffering=1)

    def tell(what: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # nobody listens any more: there is a checkpoint to be saved yet
            answers.write(json.dumps(what) + "\n")

    threading.Thread(target=_leave_when_left, daemon=True).start()
    try:
        with (folder / LOG).open("a", encoding="utf-8") as log:
            os.dup2(log.fileno(), 2)
        os.dup2(2, 1)  # nobody else writes answers
        use_all_cores()
        keep_compiled()
        with (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / FINISHED).exists():
                work(folder, tell, said["checkpoint_every"])
    except Interrupted:
        return INTERRUPTED
    except (UserError, OSError, MemoryError, RuntimeError) as error:  # JAX's out of memory is the last
        traceback.print_exc()
        tell({"failed": f"{error}".splitlines()[0] if f"{error}" else type(error).__name__})
        return REFUSED
    return 0


def _first_line() -> bytes:
    """Of standard input; not through sys.stdin, which would read on."""
    line = b""
    while not line.endswith(b"\n"):
        if not (read := os.read(0, 1)):
            return b""
        line += read
    return line


def _leave_when_left() -> None:
    """Our standard input ends with whoever started us: then stop as if asked to."""
    while os.read(0, 1):  # not through sys.stdin, whose lock would be held when the process ends
        pass
    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main())
