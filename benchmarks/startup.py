"""From the command to the first round that learns: cold, warm and resumed, of a fleet and of a study.

    python benchmarks/startup.py                                 this tree
    PYTHONPATH=/path/to/another python benchmarks/startup.py     another one

A run is started as users start it. Its cache is empty (cold) or not (warm); resumed, the run was killed
before. There are no random steps, and a checkpoint is asked for after every call, so the first one, or the
first new one, tells from outside that a round has learned, whatever the version. Use an idle machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = {"steps": 200_000, "random_steps": 0, "agents": 4}
STUDY = f"""
title = "Startup"
task = "goal2d"
agents = {SETTINGS["agents"]}
steps = {SETTINGS["steps"]}
[settings]
random_steps = {SETTINGS["random_steps"]}
[[arms]]
augmentation = "goal2d/translate"
"""
TREE = Path(__file__).parents[1]
CHECKPOINT = "checkpoint.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="times to measure each; the median is printed")
    repeat = parser.parse_args().repeat
    print(f"{'':8}{'':10}{'wall':>8}{'CPU':>8}   seconds to the first round that learns")
    for what in ("train", "study"):
        measured: dict[str, list[tuple[float, float]]] = {"cold": [], "warm": [], "resumed": []}
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                cache, out = Path(folder, "cache"), Path(folder, "out")
                measured["cold"].append(first_round(what, Path(folder, "cold"), cache))
                measured["warm"].append(first_round(what, out, cache))
                measured["resumed"].append(first_round(what, out, cache))
        for state, times in measured.items():
            wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{what:8}{state:10}{wall:8.1f}{cpu:8.1f}", flush=True)


def first_round(what: str, out: Path, cache: Path) -> tuple[float, float]:
    """Wall and CPU seconds until a run has a (new) checkpoint; it is killed then."""
    out.mkdir(parents=True, exist_ok=True)
    before = newest(out)
    began = time.monotonic()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    process = subprocess.Popen(
        command(what, out, resumed=before > 0),
        env={"PYTHONPATH": str(TREE), **environment, "XDG_CACHE_HOME": str(cache)},
        cwd=out,  # not a tree: it would come before PYTHONPATH
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while newest(out) <= before:
            if process.poll() is not None:
                raise SystemExit(f"{what} ended early, with code {process.returncode}")
            time.sleep(0.005)
        wall = time.monotonic() - began
    finally:
        workers = children_of(process.pid)
        spent = sum(map(cpu_seconds, [process.pid, *workers]))
        process.send_signal(signal.SIGKILL)
        process.wait()
    for worker in workers:
        wait_for(worker)  # it notices that nobody listens, saves and leaves
    return wall, spent


def command(what: str, out: Path, resumed: bool) -> list[str]:
    augury = [sys.executable, "-m", "augury"]
    always = ["--checkpoint-every", "0"]
    if what == "train":
        options = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
        run = ["train", "goal2d", "--augmentation", "goal2d/translate", *options, "--out", str(out / "run")]
        return [*augury, *run, *always, *(["--resume"] if resumed else [])]
    file = out / "startup.toml"
    file.write_text(STUDY)
    return [*augury, "study", "run", str(file), "--out", str(out), *always]


def newest(out: Path) -> int:
    """When the newest checkpoint below a folder was written; 0 if there is none."""
    found = 0
    for path in out.rglob(CHECKPOINT):
        try:
            found = max(found, path.stat().st_mtime_ns)
        except FileNotFoundError:
            continue
    return found


def cpu_seconds(process: int) -> float:
    """Spent by a process so far."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(process: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def wait_for(process: int) -> None:
    """Until it is gone; it is nobody's child any more."""
    while Path(f"/proc/{process}").exists():
        time.sleep(0.05)


if __name__ == "__main__":
    main()
