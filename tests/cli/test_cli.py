"""The command line as its users meet it: real processes, wrong input, kills, full disks."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import augury
from augury.cli import main
from augury.fleet import Arm, load_policies, resolved
from augury.runs import checkpoints, results

# Big enough that a run takes seconds, small enough that it compiles fast.
RUN = shlex.split(
    "train goal2d --augmentation goal2d/translate --ratio 0.5 --agents 3 --steps 16000 --random-steps 512 "
    "--updates 16 --batch-size 32 --hidden 16 16 --evaluate-every 4000 --evaluation-episodes 10"
)
QUICK = shlex.split(
    "train goal2d --agents 1 --steps 512 --random-steps 64 --updates 2 --batch-size 8 --hidden 8"
)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "augury", *map(str, arguments)]


def run(*arguments: str | Path, before: Sequence[str] = ()) -> subprocess.CompletedProcess:
    """A command that is waited for; `before` is a program that changes its own limits and becomes it."""
    return subprocess.run([*before, *command(*arguments)], capture_output=True, text=True, check=False)


def test_the_version_is_told(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"augury {augury.__version__}\n"


def refused(capsys, *arguments: str | Path) -> str:
    """The one line that bad input gets, from a command in this process."""
    with pytest.raises(SystemExit) as leaving:
        main([*map(str, arguments)])
    assert leaving.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("augury: ")
    assert said.count("\n") == 1
    return said


def killed_after_a_checkpoint(folder: Path, moment: float = 0.0) -> Path:
    """The checkpoint of a run that was killed so many seconds after its first one."""
    arguments = [*RUN, "--out", folder, "--checkpoint-every", "0.1"]
    process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = folder / checkpoints.NAME
    while not path.exists():
        assert process.poll() is None, "the run ended before its first checkpoint"
        time.sleep(0.01)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it was killed"
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert run(*RUN, "--out", folder).returncode == 0
    return folder


@pytest.fixture(scope="module")
def left(tmp_path_factory) -> Path:
    """What a run leaves that is killed after its first checkpoint."""
    folder = tmp_path_factory.mktemp("runs") / "left"
    killed_after_a_checkpoint(folder)
    return folder


@pytest.fixture
def killed(left, tmp_path) -> Path:
    """The same, to go on with."""
    return Path(shutil.copytree(left, tmp_path / "killed"))


def test_a_run_leaves_its_record_and_its_evaluations(finished):
    assert sorted(path.name for path in finished.iterdir()) == [
        "evaluations.npz",
        "policies.safetensors",
        "run.json",
    ]
    record = json.loads((finished / "run.json").read_text())
    assert record["asked"]["augmentation"] == "goal2d/translate"
    assert record["asked"]["ratio"] == 0.5
    assert record["versions"].keys() >= {"augury", "jax", "python"}
    assert record["seconds"] > 0
    with np.load(finished / "evaluations.npz") as evaluations:
        np.testing.assert_array_equal(evaluations["steps"], [4032, 8000, 12032, 16000])
        np.testing.assert_array_equal(evaluations["seeds"], [0, 1, 2])
        assert evaluations["success"].shape == (3, 4)
        names = set(evaluations.files)
    assert names >= {"returns", "augmented_replay_ratio", "observed_reward_density", "coverage", "diverged"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_killed_at_a_random_moment_and_resumed_ends_bit_for_bit_the_same(finished, tmp_path, seed):
    folder = tmp_path / "killed"
    path = killed_after_a_checkpoint(folder, moment=float(np.random.default_rng(seed).uniform(0, 0.5)))
    assert not (folder / "evaluations.npz").exists()

    resumed = run(*RUN, "--out", folder, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    with np.load(folder / "evaluations.npz") as ours, np.load(finished / "evaluations.npz") as theirs:
        assert set(ours.files) == set(theirs.files)
        for name in theirs.files:
            np.testing.assert_array_equal(ours[name], theirs[name])
    assert not path.exists()


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_resumes_from_the_start(tmp_path):
    results.write_run(_made(tmp_path / "early"), _asked(), finished=None)
    assert run(*QUICK, "--out", tmp_path / "early", "--resume").returncode == 0
    assert (tmp_path / "early" / "evaluations.npz").exists()


@pytest.mark.slow
def test_a_run_that_came_nowhere_gives_way_to_another(tmp_path):
    results.write_run(_made(tmp_path / "early"), _asked() | {"batch_size": 3}, finished=None)
    main([*QUICK, "--out", str(tmp_path / "early")])
    assert results.read(tmp_path / "early").asked["batch_size"] == 8


def test_runs_of_two_environments_are_not_numbered(finished, tmp_path, capsys):
    for name in ("goal2d", "panda-push"):
        shutil.copytree(finished, tmp_path / name)
        record = json.loads((finished / "run.json").read_text())
        record["asked"]["environment"] = name
        (tmp_path / name / "run.json").write_text(json.dumps(record))
    shutil.copytree(tmp_path / "goal2d", tmp_path / "again")
    main(["report", str(tmp_path), "--json"])
    said = {(row["task"], row["arm"]) for row in json.loads(capsys.readouterr().out)["arms"]}
    label = "translate m=0.5 α=1"
    assert said == {("goal2d", f"{label} (1)"), ("goal2d", f"{label} (2)"), ("panda-push", label)}


def test_an_interrupt_saves_a_checkpoint_and_says_how_to_go_on(finished, tmp_path):
    folder = tmp_path / "stopped"
    process = subprocess.Popen(
        command(*RUN, "--out", folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()  # the first evaluation: training goes on
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert f"go on with the same command and --resume --out {folder}" in said
    assert "Traceback" not in said
    assert run(*RUN, "--out", folder, "--resume").returncode == 0
    with np.load(folder / "evaluations.npz") as ours, np.load(finished / "evaluations.npz") as theirs:
        np.testing.assert_array_equal(ours["success"], theirs["success"])


def test_a_finished_run_is_not_run_again(finished):
    before = (finished / "evaluations.npz").stat().st_mtime_ns
    again = run(*RUN, "--out", finished, "--resume")
    assert again.returncode == 0
    assert "nothing to do" in again.stdout
    assert (finished / "evaluations.npz").stat().st_mtime_ns == before


def test_an_existing_folder_is_left_alone(finished, capsys):
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    assert "exists already" in refused(capsys, *RUN, "--out", finished)
    assert before == {path.name: path.read_bytes() for path in finished.iterdir()}


def test_resuming_with_other_settings_names_the_difference(finished, capsys):
    said = refused(capsys, *RUN, "--out", finished, "--resume", "--batch-size", "64")
    assert "was made with batch_size = 32, not 64" in said


def test_a_folder_in_use_is_refused(tmp_path, capsys):
    folder = tmp_path / "busy"
    with subprocess.Popen(command(*RUN, "--out", folder), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert "in use by another run" in refused(capsys, *RUN, "--out", folder, "--resume")
        process.kill()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "replaced"])
def test_a_damaged_checkpoint_is_refused_and_left_for_inspection(killed, damage, capsys):
    path = killed / checkpoints.NAME
    content = path.read_bytes()
    spoiled = {
        "truncated": content[: len(content) // 2],
        "flipped": content[:-100] + bytes(byte ^ 1 for byte in content[-100:]),
        "emptied": b"",
        "replaced": b"not a checkpoint at all",
    }[damage]
    path.write_bytes(spoiled)
    said = refused(capsys, *RUN, "--out", killed, "--resume")
    assert said.startswith(f"augury: checkpoint {path} is damaged")
    assert path.read_bytes() == spoiled


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_keeps_the_last_checkpoint(killed):
    """A limit on the size of files stands in for the disk: the same call fails, with an error of the OS."""
    path = killed / checkpoints.NAME
    before = path.read_bytes()

    arguments = [*RUN, "--out", killed, "--resume", "--checkpoint-every", "0.1"]
    limited = ["sh", "-c", 'ulimit -f 50; exec "$@"', "sh"]
    stopped = run(*arguments, before=limited)
    assert stopped.returncode == 2, stopped.stderr
    assert stopped.stderr.startswith(f"augury: cannot write {path}")
    assert stopped.stderr.count("\n") == 1
    assert path.read_bytes() == before
    assert not list(killed.glob(".*.partial"))
    assert run(*arguments).returncode == 0


def test_an_output_folder_that_cannot_be_made_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert "cannot use" in refused(capsys, *QUICK, "--out", tmp_path / "file" / "below")
    assert "cannot use" in refused(capsys, *QUICK, "--out", tmp_path / "file")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "thesis.tex").write_text("precious")
    assert "exists already" in refused(capsys, *QUICK, "--out", tmp_path / "kept")
    assert "cannot read" in refused(capsys, *QUICK, "--out", tmp_path / "kept", "--resume")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["thesis.tex"]


@pytest.mark.slow
def test_a_picture_that_cannot_be_written_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    said = refused(capsys, "show", "goal2d/rotate", "--out", tmp_path / "file" / "picture.png")
    assert "cannot write" in said


@pytest.mark.slow
def test_a_run_killed_between_its_two_last_writes_is_finished_by_resuming(finished, tmp_path):
    folder = tmp_path / "almost"
    folder.mkdir()
    (folder / "evaluations.npz").write_bytes((finished / "evaluations.npz").read_bytes())
    record = json.loads((finished / "run.json").read_text())
    results.write_run(folder, record["asked"], finished=None)
    assert run(*RUN, "--out", folder, "--resume").returncode == 0
    assert json.loads((folder / "run.json").read_text())["finished"]


@pytest.mark.slow
def test_a_checkpoint_fits_another_number_of_cores(finished, killed):
    confine = (
        "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    moved = run(*RUN, "--out", killed, "--resume", before=[sys.executable, "-c", confine])
    assert moved.returncode == 0, moved.stderr
    with np.load(killed / "evaluations.npz") as ours, np.load(finished / "evaluations.npz") as theirs:
        np.testing.assert_array_equal(ours["success"], theirs["success"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("train goal3d", "unknown environment 'goal3d': did you mean 'goal2d'?"),
        ("train goal2d --augmentation goal2d/tranlate", "did you mean 'goal2d/translate'?"),
        ("train goal2d --algorithm tdd3", "unknown algorithm 'tdd3': did you mean 'td3'?"),
        ("train goal2d --agents 0", "agents must be at least 1, not 0"),
        ("train goal2d --steps -1", "steps must be at least 1, not -1"),
        ("train goal2d --steps many", "--steps"),
        ("train goal2d --agents 99999999999999999999", "agents must be below 2^31"),
        ("train goal2d --hidden 99999999999999", "hidden must be widths of at least 1 and below 2^31"),
        ("train goal2d --checkpoint-every nan", "checkpoint_every must be 0 or more, not nan"),
        ("study run studies/paper/figure-1.toml --on ray --cpus 0", "a fleet needs at least 1 CPU"),
        ("train goal2d --update-ratio 1", "update_ratio 1 needs an augmentation"),
        ("train goal2d --ratoi 1", "unknown option '--ratoi': did you mean '--ratio'?"),
        ("train", "augury train needs ENV"),
        ("trian goal2d", "unknown command 'trian': did you mean 'train'?"),
        ("show goal2d/rotat", "did you mean 'goal2d/rotate'?"),
        ("report nowhere", "no folder nowhere"),
        ("evaluate nowhere", "cannot read nowhere/run.json: No such file or directory"),
        ("report .", "no finished run in ."),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, *arguments.split())
    assert not list(tmp_path.iterdir())


def test_list_names_everything_also_for_programs(capsys):
    main(["list"])
    text = capsys.readouterr().out
    assert "goal2d/translate-proximal(p)" in text
    main(["list", "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert listed["algorithms"] == ["ddpg", "td3", "sac", "dqn"]
    assert {"goal2d", "walker2d", "humanoid-paper"} < set(listed["environments"])
    needs = {row["augmentation"]: row["needs"] for row in listed["augmentations"]}
    assert needs["goal2d/translate-proximal(p)"] == needs["walker2d/reflect"] == []
    assert needs["ant/rotate"] == ["x_velocity", "y_velocity"]


def test_show_writes_a_picture(tmp_path, capsys):
    main(["show", "goal2d/rotate", "--out", str(tmp_path / "rotate.png")])
    assert (tmp_path / "rotate.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_lets_the_agents_of_a_run_play(finished, capsys):
    arguments = ["evaluate", str(finished), "--environment", "goal2d-quadrant", "--episodes", "40"]
    main(arguments)
    heading, *rows, said = capsys.readouterr().out.splitlines()
    assert heading.split() == ["seed", "success", "return"]
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "IQM"]
    assert said == "40 episodes of each agent on goal2d-quadrant, trained on goal2d"
    main([*arguments, "--json"])
    first = json.loads(capsys.readouterr().out)
    assert [f"{agent['success']:.2f}" for agent in first["agents"]] == [row.split()[1] for row in rows[:3]]
    main([*arguments, "--json", "--seed", "1"])
    assert json.loads(capsys.readouterr().out)["agents"] != first["agents"]

    rows = np.random.default_rng(0).uniform(-1, 1, (500, 4))
    actions = np.concatenate([load_policies(finished).act(agent, rows) for agent in range(3)])
    assert (actions >= 0).all()  # in the environment's units
    assert (actions <= [1, 2 * np.pi]).all()
    assert actions[:, 1].max() > np.pi


def test_report_prints_a_table_and_writes_a_page_and_figures(finished, capsys, tmp_path):
    folder = tmp_path / "study"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for path in finished.iterdir():
            (folder / name / path.name).write_bytes(path.read_bytes())
    main(["report", str(folder)])
    assert capsys.readouterr().out.count("translate m=0.5 α=1") == 2
    assert {"report.html", "study.png", "study.pdf"} <= {path.name for path in folder.iterdir()}
    main(["report", str(folder), "--json"])
    rows = json.loads(capsys.readouterr().out)["arms"]
    assert [row["agents"] for row in rows] == [3, 3]
    assert rows[0]["beta"] == pytest.approx(0.25 / 0.5, rel=0.05)


@pytest.mark.parametrize("name", ["run.json", "evaluations.npz"])
def test_damaged_results_are_named(finished, tmp_path, capsys, name):
    for path in finished.iterdir():
        content = path.read_bytes()
        (tmp_path / path.name).write_bytes(content[:50] if path.name == name else content)
    assert f"{name} is damaged" in refused(capsys, "report", tmp_path)


@pytest.mark.parametrize("name", ["train", "evaluate", "report", "show", "list", "study run", "study status"])
def test_help_has_an_example(name, capsys):
    with pytest.raises(SystemExit) as leaving:
        main([*name.split(), "--help"])
    assert leaving.value.code == 0
    assert f"Example: augury {name}" in capsys.readouterr().out


def test_importing_augury_imports_no_optional_package():
    script = "import augury, augury.cli, sys; print(*sys.modules)"
    listed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"torch", "stable_baselines3", "sbx", "pybullet", "ray", "warp"} & set(listed.stdout.split())


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _asked() -> dict:
    return resolved(
        Arm(agents=1, steps=512, random_steps=64, updates=2, batch_size=8, hidden=(8,))
    ).described()
