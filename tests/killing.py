"""Commands that are killed, and given again."""

import os
import signal
import subprocess
import sys

import numpy as np

from augury.runs import checkpoints, results


def assert_resumes_after_a_kill(asked, folder, paths=()):
    """`augury train` with these arguments ends with the same bits if it is killed and resumed."""
    command = [sys.executable, "-m", "augury", "train", *asked]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*paths, *sys.path)))}
    whole, killed = folder / "whole", folder / "killed"
    subprocess.run([*command, "--out", str(whole)], check=True, env=environment, capture_output=True)
    run = subprocess.Popen([*command, "--out", str(killed)], env=environment, stdout=subprocess.DEVNULL)
    while not (killed / checkpoints.NAME).exists():
        assert run.poll() is None, "it ended before it could be killed"
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert not (killed / results.EVALUATIONS).exists()
    subprocess.run([*command, "--out", str(killed), "--resume"], check=True, env=environment)
    ended, resumed = (results.read(run).evaluations for run in (whole, killed))
    for name, values in ended.items():
        np.testing.assert_array_equal(resumed[name], values)
