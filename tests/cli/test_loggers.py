"""What TensorBoard and Weights & Biases are told is what `evaluations.npz` holds."""

import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from augury.cli import loggers, main
from augury.fleet import Arm, resolved, train_fleet
from augury.fleet.training import Progress
from augury.runs import results

ARM = Arm(
    augmentation="goal2d/translate", agents=3, seed=5, steps=1024, random_steps=64, updates=2, batch_size=8,
    hidden=(8,), evaluate_every=256, evaluation_episodes=2,
)  # fmt: skip


class Killed(Exception):  # noqa: N818
    """As a kill, but the test goes on."""


def events(folder: Path) -> list[tuple[str, int, float]]:
    """What TensorBoard shows: a session that starts at a step replaces what others logged from there on."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    shown: list[tuple[str, int, float]] = []
    for file in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns):
        data, place = file.read_bytes(), 0
        while place < len(data):
            (length,) = struct.unpack_from("<Q", data, place)
            event = Event.FromString(data[place + 12 : place + 12 + length])
            place += length + 16  # length, its checksum, the event, its checksum
            if event.session_log.status == SessionLog.START:
                shown = [one for one in shown if one[1] < event.step]
            shown += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
    return shown


def test_what_is_logged_again_replaces_the_first(tmp_path):
    pytest.importorskip("tensorboardX")
    for steps in ((10, 20, 30), (20, 30, 40)):
        board = loggers.TensorBoard(tmp_path)
        for one in steps:
            board.log(one, {"success/iqm": one / 64})
        board.close()
    assert events(tmp_path) == [("success/iqm", steps, steps / 64) for steps in (10, 20, 30, 40)]


def test_scalars_are_named_after_the_arrays_they_come_from():
    evaluations = {
        "steps": np.array([10, 20]),
        "updates": np.array([1, 2]),
        "transitions": np.array([10, 20]),
        "seeds": np.array([3, 4]),
        "success": np.array([[0.0, 0.5], [0.0, 1.0]], np.float32),
        "augmented_replay_ratio": np.full((2, 2), np.nan, np.float32),
        "diverged": np.array([[False, False], [False, True]]),
    }
    assert loggers.newest(evaluations) == {
        "updates": 2, "transitions": 20, "success/iqm": 0.75, "success/seed-3": 0.5, "success/seed-4": 1.0,
        "diverged/share": 0.5, "diverged/seed-3": 0, "diverged/seed-4": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("option", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_logger_that_is_not_installed_is_named(option, package, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as leaving:
        main(["train", "goal2d", "--out", str(tmp_path / "run"), f"--{option}", "somewhere"])
    assert leaving.value.code == 2
    assert capsys.readouterr().err == f"augury: --{option} needs {package}: pip install 'augury[{option}]'\n"


def test_a_folder_that_cannot_be_written_is_told_before_training(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as leaving:
        main(["train", "goal2d", "--out", str(tmp_path / "run"), "--tensorboard", str(tmp_path / "file")])
    assert leaving.value.code == 2
    assert capsys.readouterr().err == f"augury: cannot write to {tmp_path}/file/run: Not a directory\n"


@pytest.mark.slow
def test_tensorboard_shows_what_a_resumed_run_leaves_and_nothing_twice(tmp_path):
    pytest.importorskip("tensorboardX")
    arm, made = resolved(ARM), []
    checkpoint, kept, folder = tmp_path / "checkpoint", tmp_path / "kept", tmp_path / "run"

    def train(path: Path, last: int | None = None) -> list[results.Result]:
        with loggers.watching(arm, folder, tensorboard=tmp_path / "logs", wandb=None) as log:

            def watch(standing: Progress) -> None:
                log(standing)
                made.append(standing.steps)
                if last is not None and len(made) == 2:
                    shutil.copy(path, kept)
                if len(made) == last:
                    raise Killed

            return train_fleet([arm], checkpoint=path, checkpoint_every=0.0, watch=watch)

    with pytest.raises(Killed):
        train(checkpoint, last=3)
    (result,) = train(kept)
    assert len(made) > len(set(made)), "some evaluations were made again"
    expected = {}
    for place, steps in enumerate(result.evaluations["steps"].tolist()):
        so_far = {
            name: values if name == "seeds" else values[..., : place + 1]
            for name, values in result.evaluations.items()
        }
        expected |= {(tag, steps): np.float32(value) for tag, value in loggers.newest(so_far).items()}
    shown = events(folder.parent / "logs" / folder.name)
    assert len(shown) == len(expected)
    assert {(tag, step): value for tag, step, value in shown} == expected


@pytest.mark.slow
def test_weights_and_biases_gets_the_same_and_goes_on_with_a_run(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    small = "--agents 1 --steps 512 --random-steps 64 --updates 2 --batch-size 8 --hidden 8"
    words = f"-m augury train goal2d {small} --out {tmp_path / 'run'} --wandb tests"
    subprocess.run([sys.executable, *shlex.split(words)], check=True, capture_output=True)
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    assert b"success/seed-0" in file.read_bytes()
    results.write_run(tmp_path / "run", resolved(Arm()).described(), finished=None)
    for _ in range(2):
        with loggers.watching(resolved(Arm()), tmp_path / "run", tensorboard=None, wandb="tests"):
            pass
    same = {path.name for path in (tmp_path / "wandb").glob("offline-run-*/*.wandb")} - {file.name}
    assert same == {f"run-{results.read_run(tmp_path / 'run')['wandb']}.wandb"}
