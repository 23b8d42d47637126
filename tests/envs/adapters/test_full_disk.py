"""A full disk while a fleet trains on other libraries' environments."""

import shlex
import subprocess
import sys

import pytest

from augury.runs import checkpoints, results
from tests.killing import kill_after_a_checkpoint

SIZES = shlex.split(
    "--algorithm ddpg --agents 1 --steps 20000 --random-steps 100 --updates 1 --batch-size 16 --hidden 32 32 "
    "--evaluate-every 10000 --evaluation-episodes 1 --checkpoint-every 0.1"
)


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["gymnasium:Pendulum-v1", "gymnax:Pendulum-v1"])
def test_a_full_disk_is_one_line_and_keeps_the_last_checkpoint(environment, tmp_path):
    """A limit on the size of files stands in for the disk, as it does for Augury's own environments."""
    path = tmp_path / "run" / checkpoints.NAME
    command = [sys.executable, "-m", "augury", "train", environment, *SIZES, "--out", str(path.parent)]
    kill_after_a_checkpoint(command, path.parent)
    before = path.read_bytes()

    limited = ["sh", "-c", 'ulimit -f 20; exec "$@"', "sh", *command, "--resume"]
    stopped = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert stopped.returncode == 2, stopped.stderr
    assert stopped.stderr.startswith(f"augury: cannot write {path}")
    assert stopped.stderr.count("\n") == 1
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".*.partial"))
    subprocess.run([*command, "--resume"], check=True, capture_output=True)
    assert results.read(path.parent).curves().shape == (1, 2)
