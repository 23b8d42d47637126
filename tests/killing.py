"""Commands that are killed, and given again."""

import os
import signal
import subprocess
import sys

import numpy as np

from augury.runs import checkpoints, results


def kill_after_a_checkpoint(command, folder, environment=None):
    """Run a command until its first checkpoint is in the folder."""
    run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while not (folder / checkpoints.NAME).exists():
        assert run.poll() is None, "it ended before it could be killed"
    run.send_signal(signal.SIGKILL)
    run.wait()


def assert_resumes_after_a_kill(asked, folder, paths=()):
    """`augury train` with these arguments ends with the same bits if it is killed and resumed."""
    command = [sys.executable, "-m", "augury", "train", *asked]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*paths, *sys.path)))}
    whole, killed = folder / "whole", folder / "killed"
    subprocess.run([*command, "--out", str(whole)], check=True, env=environment, capture_output=True)
    kill_after_a_checkpoint([*command, "--out", str(killed)], killed, environment)
    assert not (killed / results.EVALUATIONS).exists()
    subprocess.run([*command, "--out", str(killed), "--resume"], check=True, env=environment)
    ended, resumed = (results.read(run).evaluations for run in (whole, killed))
    for name, values in ended.items():
        np.testing.assert_array_equal(resumed[name], values)
