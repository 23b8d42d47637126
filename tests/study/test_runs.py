"""Running studies: real processes that are killed, stopped and run again, and what their folders hold."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from augury.cli import main
from augury.errors import UserError
from augury.files import replacing
from augury.fleet import Arm, Result
from augury.runs import checkpoints, results
from augury.runs.files import claimed
from augury.study import chances, runner, worker
from augury.study.arms import Size, StudyArm, arms_of
from augury.study.local import Local
from augury.study.runner import Died, Event, Job, Stopped, jobs_of, run
from augury.study.schema import ChanceStudy, Study, read
from augury.study.store import FINISHED, FLEETS, PROGRESS, Store
from augury.study.view import View
from augury.study.worker import LOG

pytestmark = pytest.mark.slow

PAPER = Path(__file__).parents[2] / "studies" / "paper"
SOON = 240.0
"""Seconds after which what has not happened will not: machines that run tests are busy."""

# Two fleets: the first takes half a second, the second a few, so that it can be killed at work.
SMALL = """
title = "Small"
task = "goal2d"
agents = 2
steps = 40_000

[settings]
random_steps = 512
updates = 16
batch_size = 32
hidden = [16, 16]
evaluate_every = 4_000
evaluation_episodes = 10

[[arms]]

[[arms]]
augmentation = "goal2d/translate"
ratio = [1, 2]

[[claims]]
says = "translation beats none"
better = "translate, m = 2"
than = "none"
"""
NONE, TRANSLATE = "goal2d/none", ["goal2d/translate-m-1", "goal2d/translate-m-2"]


def until(holds: Callable[[], Any], what: str) -> Any:
    """Wait for something to hold."""
    end = time.monotonic() + SOON
    while not (found := holds()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.005)
    return found


def small(folder: Path, text: str = SMALL) -> Path:
    """The study's file. What is run is called after it."""
    path = folder / "small.toml"
    path.write_text(text)
    return path


def arguments(file: Path) -> list[str]:
    return ["study", "run", str(file), "--out", str(file.parent), "--checkpoint-every", "0.1"]


def command(file: Path) -> list[str]:
    return [sys.executable, "-m", "augury", *arguments(file)]


def refused(capsys, *words: str | Path) -> str:
    """The one line that a command in this process gets."""
    with pytest.raises(SystemExit) as leaving:
        main([*map(str, words)])
    assert leaving.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("augury: ")
    assert said.count("\n") == 1
    return said


@contextmanager
def started(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A study run by a process of its own, as from a terminal; killed in the end if it is still there."""
    with subprocess.Popen(
        command(file), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def workers(folder: Path) -> list[int]:
    """Processes that train a fleet of a study."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"augury.study.worker" in path.read_bytes().split(b"\0"):
                files = [str(one.readlink()) for one in path.with_name("fd").iterdir()]
                if any(file.startswith(f"{folder}/") for file in files):
                    found.append(int(path.parent.name))
    return found


@contextmanager
def held_up(processes: Sequence[int]) -> Iterator[None]:
    """Keep a worker, of which there should be one, from going on for a while."""
    (worker,) = processes
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def waits_for_a_lock(process: int) -> bool:
    return any("->" in row and f" {process} " in row for row in Path("/proc/locks").read_text().splitlines())


def one_file(folder: Path, pattern: str) -> Path | None:
    return next(folder.glob(pattern), None)


def at_work(folder: Path) -> bool:
    """Whether a fleet is in the middle: it has been evaluated, and has saved where it stands."""
    pattern = f"{FLEETS}/*/{{}}".format
    return bool(one_file(folder, pattern(checkpoints.NAME)) and one_file(folder, pattern(PROGRESS)))


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """What changes when a file is written again."""
    return {
        str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_same_tables(folder: Path, other: Path, places: Sequence[str] = (NONE, *TRANSLATE)) -> None:
    for place in places:
        ours, theirs = (results.read(each / "arms" / place).evaluations for each in (folder, other))
        assert set(ours) == set(theirs)
        for name, values in theirs.items():
            np.testing.assert_array_equal(ours[name], values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of a study that nobody interrupted."""
    file = small(tmp_path_factory.mktemp("whole"))
    ran = subprocess.run(command(file), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    (file.parent / "said.txt").write_text(ran.stdout)
    return file.parent / "small"


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    """The same in a folder to be spoiled, beside its file."""
    small(tmp_path)
    return Path(shutil.copytree(whole, tmp_path / "small"))


@pytest.fixture
def half(copy) -> Path:
    """The same with its second fleet not trained yet."""
    for place in TRANSLATE:
        shutil.rmtree(copy / "arms" / place)
    return copy


def test_a_study_trains_its_fleets_in_order_and_leaves_results_and_a_report(whole):
    said = (whole.parent / "said.txt").read_text().splitlines()
    assert said[0] == "Small: 3 arms, 0 finished, 2 fleets to train"
    kinds = [line for line in said if line.endswith(("started", "finished"))]
    assert kinds == [
        "goal2d: none  started",
        "goal2d: none  finished",
        "goal2d: translate, m = 1, translate, m = 2  started",
        "goal2d: translate, m = 1, translate, m = 2  finished",
    ]
    assert said[-1] == f"report in {whole / 'report.html'}"
    assert sorted(
        str(path.parent.relative_to(whole / "arms")) for path in whole.glob("arms/*/*/run.json")
    ) == [
        NONE,
        *TRANSLATE,
    ]
    assert not list((whole / FLEETS).iterdir())
    assert not list(whole.rglob(".*"))
    assert (whole / "study.toml").read_text() == SMALL
    assert {"report.html", "small.png", "small.pdf", "study.json"} < {path.name for path in whole.iterdir()}


def test_a_studys_folder_is_read_back(whole):
    record = Store(whole).record()
    assert (record.name, record.title, record.tasks) == ("small", "Small", ["goal2d"])
    assert [one.name for one in record.finished] == ["none", "translate, m = 1", "translate, m = 2"]
    assert (record.missing, record.failed) == ([], {})
    assert record.claims[0].arms == ("translate, m = 2", "none")
    assert [one.result.asked["ratio"] for one in record.finished] == [0, 1, 2]
    for one in record.finished:
        assert one.result.evaluations["success"].shape == (2, 10)


def test_a_finished_study_is_not_run_again(copy, capsys):
    before = stamps(copy / "arms")
    main(arguments(copy.parent / "small.toml"))
    assert "3 arms, 3 finished, 0 fleets to train" in capsys.readouterr().out
    assert stamps(copy / "arms") == before


def test_a_killed_study_loses_its_worker_and_goes_on_where_it_was(half, whole, capsys):
    file, before = half.parent / "small.toml", stamps(half / "arms")
    with started(file) as process:
        until(lambda: at_work(half), "a checkpoint")
        with held_up(workers(half)):
            assert "in use by another run" in refused(capsys, *arguments(file))
            process.kill()
            assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
    until(lambda: not workers(half), "the worker gone")
    assert "Traceback" not in "".join(path.read_text() for path in half.glob(f"{FLEETS}/*/{LOG}"))
    assert one_file(half, f"{FLEETS}/*/{checkpoints.NAME}")
    assert not one_file(half, f"{FLEETS}/*/{FINISHED}"), "the worker ended before it was left"

    main(["study", "status", str(half), "--json"])
    none, *others = json.loads(capsys.readouterr().out)
    assert (none["state"], none["steps"]) == ("finished", 40_000)
    for row in others:
        assert row["state"] == "begun"
        assert 0 < row["steps"] < 40_000
        assert 0 <= row["score"] <= 1
    main(["study", "status", str(half)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][:4] == ["goal2d", "none", "finished", "40,000"]
    assert lines[3][:6] == ["goal2d", "translate,", "m", "=", "2", "begun"]

    main(arguments(file))
    said = capsys.readouterr().out
    assert "3 arms, 1 finished, 1 fleets to train" in said
    steps = [line.split("/")[0].split()[-1] for line in said.splitlines() if "40,000 steps" in line]
    assert int(steps[0].replace(",", "")) > others[0]["steps"]
    assert_same_tables(half, whole)
    assert stamps(half / "arms").items() >= before.items()
    assert not list((half / FLEETS).iterdir())


def test_a_study_run_again_at_once_waits_for_the_worker_that_is_leaving(half, whole):
    """The runner is killed while its worker cannot notice; the next worker must not train beside it."""
    file = half.parent / "small.toml"
    with started(file) as process:
        until(lambda: at_work(half), "a checkpoint")
        (leaving,) = workers(half)
        with ExitStack() as stack:
            with held_up([leaving]):
                process.kill()
                successor = stack.enter_context(started(file))
                (new,) = until(lambda: {*workers(half)} - {leaving}, "another worker")
                until(lambda: waits_for_a_lock(new), "it waits")
            _, said = successor.communicate()
    assert (successor.returncode, said) == (0, "")
    assert not workers(half)
    assert_same_tables(half, whole)


def test_a_study_that_is_interrupted_saves_and_says_how_to_go_on(half, whole):
    file, before = half.parent / "small.toml", stamps(half / "arms")
    with started(file) as process:
        until(lambda: at_work(half), "a checkpoint")
        first = stamps(half / FLEETS).values()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all that it started
        _, said = process.communicate()
    assert process.returncode == 130
    assert said == "augury: stopped; the same command goes on from here\n"
    assert not workers(half)
    saved = one_file(half, f"{FLEETS}/*/{checkpoints.NAME}")
    assert saved is not None
    assert stamps(half / FLEETS)[str(saved.relative_to(half / FLEETS))] not in first
    assert stamps(half / "arms") == before
    assert run(jobs_of(Store(half), arms_in(file)), Local(), lambda event: None)
    assert_same_tables(half, whole)


def test_a_killed_worker_is_named_and_the_others_go_on(tmp_path, whole, capsys):
    file, folder = small(tmp_path), tmp_path / "small"
    with ThreadPoolExecutor(1) as other:
        killing = other.submit(lambda: os.kill(until(lambda: workers(folder), "a worker")[0], signal.SIGKILL))
        with pytest.raises(SystemExit) as leaving:
            main(arguments(file))
        killing.result()
    assert leaving.value.code == 1
    out, said = capsys.readouterr()
    assert said == "augury: some arms failed: the same command tries them again\n"
    assert "goal2d: none  failed: its process was killed by signal 9: see " in out
    assert_same_tables(folder, whole, TRANSLATE)
    main(["study", "status", str(folder), "--json"])
    none, *others = json.loads(capsys.readouterr().out)
    assert none["state"] == "failed"
    assert none["why"].startswith("its process was killed by signal 9: see ")
    assert Path(none["why"].split("see ")[1]).exists()
    assert [row["state"] for row in others] == ["finished", "finished"]

    before = stamps(folder / "arms")
    main(arguments(file))
    assert "3 arms, 2 finished, 1 fleets to train" in capsys.readouterr().out
    assert_same_tables(folder, whole)
    assert stamps(folder / "arms").items() >= before.items()
    assert Store(folder).record().failed == {}


@pytest.fixture
def little_disk(tmp_path) -> Iterator[Path]:
    """A disk with room for an arm but no checkpoint, where who runs the tests may have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, "size=96k"):
        pytest.skip("this user cannot mount a disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def mounted(folder: Path, options: str) -> bool:
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    return shutil.which("mount") is not None and not subprocess.run(mount, capture_output=True).returncode


def test_a_full_disk_is_said_and_what_was_there_stays(whole, little_disk, capsys):
    file, folder = small(little_disk), little_disk / "small"
    shutil.copytree(whole / "arms" / NONE, folder / "arms" / NONE)
    before = stamps(folder / "arms")
    with pytest.raises(SystemExit) as leaving:
        main(arguments(file))
    assert leaving.value.code == 2
    out, said = capsys.readouterr()
    assert "translate, m = 2  failed: cannot write " in out
    assert "No space left on device" in out
    assert said.startswith("augury: cannot write ")  # nor is there room for a report
    assert said.endswith(": No space left on device\n")
    assert said.count("\n") == 1
    assert stamps(folder / "arms") == before
    assert not list(folder.rglob("*.partial"))
    record = Store(folder).record()
    assert [one.name for one in record.finished] == ["none"]
    assert "No space left on device" in record.failed["goal2d", "translate, m = 1"]

    assert mounted(little_disk, "remount,size=64m")
    assert run(jobs_of(Store(folder), arms_in(file)), Local(), lambda event: None)
    assert_same_tables(folder, whole)
    assert stamps(folder / "arms").items() >= before.items()


def test_other_settings_are_refused_and_leave_the_folder_as_it_is(copy, capsys):
    file = small(copy.parent, SMALL.replace("40_000", "44_000"))
    before = stamps(copy)
    said = refused(capsys, *arguments(file))
    assert f"{copy / 'arms' / NONE} was made with steps = 40000, not 44000: choose another --out" in said
    assert stamps(copy) == before
    small(copy.parent)
    said = refused(capsys, *arguments(file), "--agents", "3")
    assert "was made with agents = 2, not 3" in said
    assert stamps(copy) == before


def test_damaged_results_are_set_aside_and_run_again(copy, whole, capsys):
    before = stamps(copy / "arms")
    spoiled = copy / "arms" / NONE / results.EVALUATIONS
    spoiled.write_bytes(spoiled.read_bytes()[:1000])
    main(["study", "status", str(copy), "--json"])
    row = json.loads(capsys.readouterr().out)[0]
    assert row["state"] == "failed"
    assert "evaluations.npz is damaged" in row["why"]

    main(arguments(copy.parent / "small.toml"))
    out, said = capsys.readouterr()
    assert (
        said
        == f"augury: {spoiled} is damaged (BadZipFile): it was moved to none.damaged-1, and is run again\n"
    )
    assert "3 arms, 2 finished, 1 fleets to train" in out
    assert_same_tables(copy, whole)
    kept = {name: stamp for name, stamp in before.items() if not name.startswith(NONE)}
    assert stamps(copy / "arms").items() >= kept.items()
    assert (copy / "arms" / f"{NONE}.damaged-1" / results.EVALUATIONS).stat().st_size == 1000


def left_unpublished(folder: Path, published: int = 0) -> dict[str, tuple[int, int]]:
    """A folder as a runner leaves it that dies while it publishes; returns all results' stamps."""
    before = stamps(folder / "arms")
    made = folder / FLEETS / "abc" / FINISHED
    made.mkdir(parents=True)
    (made / "places.json").write_text(json.dumps(TRANSLATE))
    for number, place in enumerate(TRANSLATE):
        if number >= published:
            (folder / "arms" / place).rename(made / str(number))
    return before


@pytest.mark.parametrize("published", [0, 1, 2])
def test_results_that_were_not_published_are_by_the_next_runner(copy, capsys, published):
    before = left_unpublished(copy, published)
    main(arguments(copy.parent / "small.toml"))
    assert "3 arms, 3 finished, 0 fleets to train" in capsys.readouterr().out
    assert stamps(copy / "arms") == before
    assert not list((copy / FLEETS).iterdir())


def test_a_fleet_that_was_half_forgotten_is_forgotten_by_the_next_runner(copy):
    left_unpublished(copy, published=2)
    (copy / FLEETS / "abc" / FINISHED / "places.json").unlink()
    assert begin(copy, copy.parent / "small.toml") == []
    assert not list((copy / FLEETS).iterdir())


def test_list_and_export_of_studies(copy, tmp_path, capsys):
    main(["study", "list", str(PAPER), "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert {Path(row["file"]).stem for row in rows} == {path.stem for path in PAPER.glob("*.toml")}
    (first,) = [row for row in rows if row["figure"] == "1"]
    assert (first["arms"], first["agents"], first["tasks"]) == (6, 50, ["goal2d"])
    main(["study", "list", str(PAPER)])
    listed = capsys.readouterr().out
    assert listed.index("figure-6.toml") < listed.index("figure-10.toml")
    assert "no studies in" in refused(capsys, "study", "list", copy / "arms")
    assert "no studies in" in refused(capsys, "study", "list", copy)  # but for what it was run from
    other = tmp_path / "other"
    (other / ".hidden").mkdir(parents=True)
    (other / ".hidden" / "study.toml").write_text(SMALL)
    (other / "pyproject.toml").write_text('[project]\nname = "something else"')
    assert "no studies in" in refused(capsys, "study", "list", other)
    assert "no folder" in refused(capsys, "study", "list", tmp_path / "nowhere")

    out = tmp_path / "all.csv"
    main(["study", "export", str(copy), "--out", str(out)])
    assert capsys.readouterr().out == f"60 rows in {out}\n"
    with out.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == 60
    evaluations = results.read(copy / "arms" / TRANSLATE[1]).evaluations
    own = [row for row in table if (row["arm"], row["seed"]) == ("translate, m = 2", "1")]
    assert [int(row["steps"]) for row in own] == evaluations["steps"].tolist()
    np.testing.assert_allclose([float(row["success"]) for row in own], evaluations["success"][1])
    assert {(row["study"], row["task"]) for row in table} == {("small", "goal2d")}
    assert "cannot write" in refused(capsys, "study", "export", copy, "--out", tmp_path / "no" / "all.csv")
    assert "holds no study" in refused(capsys, "study", "export", tmp_path, "--out", out)
    assert "holds no study" in refused(capsys, "study", "status", tmp_path)
    shutil.rmtree(copy / "arms")
    assert "nothing in" in refused(capsys, "study", "export", copy, "--out", out)


# Below the command line: fleets that take no time


def arms_in(file: Path) -> list[StudyArm]:
    study = read(file)
    assert isinstance(study, Study)
    return arms_of(study, str(file), Size())


def begin(folder: Path, file: Path) -> list[str]:
    study = read(file)
    assert isinstance(study, Study)
    folder.mkdir(exist_ok=True)
    arms = arms_of(study, str(file), Size())
    return Store(folder).begin(study, file.stem, file.read_bytes(), arms, "augury")


class Faked:
    """Fleets that are trained at once; `behave` may have something happen instead."""

    def __init__(self, behave: Callable[[Job], None] = lambda job: None, at_once: int = 1) -> None:
        self.at_once = at_once
        self.behave = behave
        self.executed: list[list[str]] = []
        self.stopped = False

    def execute(self, job: Job, tell: Callable[[dict[str, Any]], None]) -> None:
        self.executed.append([one.name for one in job.arms])
        standing = {
            "steps": 1,
            "of": 1,
            "speed": 10.0,
            "left": 0.0,
            "measure": "success",
            "scores": [[0.5]] * len(job.arms),
        }
        tell({**standing, "scores": None})
        self.behave(job)
        tell(standing)
        made = job.folder / FINISHED
        for number, one in enumerate(job.arms):
            (made / str(number)).mkdir(parents=True)
            results.write(made / str(number), result_of(one.arm))
        (made / "places.json").write_text(json.dumps([str(one.folder) for one in job.arms]))

    def stop(self) -> None:
        self.stopped = True


def result_of(arm: Arm) -> Result:
    table = np.full((arm.agents, 1), 0.5, np.float32)
    columns = {"success": table, "returns": table, "diverged": table > 1}
    shared = {"steps": np.array([arm.steps]), "updates": np.array([1]), "transitions": np.array([1])}
    return Result(arm.described(), {**columns, **shared, "seeds": np.array(arm.seeds)})


def begun(folder: Path, text: str = SMALL) -> tuple[Store, list[Job]]:
    """A study's store and what there is to train."""
    folder.mkdir(exist_ok=True)
    file = small(folder, text)
    begin(folder / "small", file)
    store = Store(folder / "small")
    return store, jobs_of(store, arms_in(file))


def test_arms_that_share_a_program_are_one_fleet(tmp_path):
    _, jobs = begun(tmp_path)
    assert [[one.name for one in job.arms] for job in jobs] == [
        ["none"],
        ["translate, m = 1", "translate, m = 2"],
    ]
    assert [job.work for job in jobs] == [2 * 39_488, 4 * 39_488]  # without 512 random steps each
    _, again = begun(tmp_path)
    assert [job.folder for job in again] == [job.folder for job in jobs]


def test_fleets_on_the_host_are_not_too_large(tmp_path):
    text = SMALL.replace('"goal2d"', '"ant"').replace("goal2d/translate", "ant/rotate").split("[[claims]]")[0]
    text = text.replace("agents = 2", "agents = 30").replace("[1, 2]", "[1, 2, 4, 8, 16]")
    _, jobs = begun(tmp_path, text)
    agents = [sum(one.arm.agents for one in job.arms) for job in jobs]
    assert agents == [30, 60, 60, 30]
    assert max(agents) <= runner.MOST_AGENTS


def test_equal_arms_of_two_panels_do_not_share_a_folder(tmp_path):
    text = SMALL.replace('"goal2d"', '"ant"').replace("agents = 2", "agents = 40").split("[[arms]]")[0]
    _, jobs = begun(tmp_path, text + '[[arms]]\npanel = "a"\n[[arms]]\npanel = "b"\n')
    assert len({job.folder for job in jobs}) == 2


def test_one_at_a_time_in_the_files_order_or_the_longest_first(tmp_path):
    for at_once, order in ((1, [0, 1]), (2, [1, 0])):
        _, jobs = begun(tmp_path / str(at_once))
        events: list[Event] = []
        assert run(jobs, Faked(at_once=at_once), events.append)
        started = [jobs.index(event.job) for event in events if event.kind == "started"]
        assert started == order
        for job in jobs:
            assert [event.kind for event in events if event.job is job] == [
                "started",
                "progress",
                "progress",
                "finished",
            ]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Died("its process died"), "its process died"),
        (RuntimeError("out of memory"), "out of memory"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (AssertionError("a mistake of ours"), "a mistake of ours"),
    ],
)
def test_a_fleet_that_fails_is_noted_until_it_is_tried_again(tmp_path, error, why):
    def fail(job: Job) -> None:
        if len(job.arms) == 1:
            raise error

    store, jobs = begun(tmp_path)
    events: list[Event] = []
    assert not run(jobs, Faked(fail), events.append)
    assert [(event.kind, event.why) for event in events if event.kind in ("failed", "finished")] == [
        ("failed", why),
        ("finished", ""),
    ]
    record = store.record()
    assert record.failed == {("goal2d", "none"): why}
    assert record.missing == [("goal2d", "none")]
    store, jobs = begun(tmp_path)
    assert store.record().failed == {}
    executor = Faked()
    assert run(jobs, executor, events.append)
    assert executor.executed == [["none"]]
    assert store.record().missing == []


def test_an_interrupt_stops_fleets_and_starts_no_other(tmp_path):
    store, jobs = begun(tmp_path)

    def interrupt(event: Event) -> None:
        if event.kind == "progress":
            raise KeyboardInterrupt

    def wait(job: Job) -> None:
        until(lambda: executor.stopped, "the request to stop")
        raise Stopped

    executor = Faked(wait)
    with pytest.raises(KeyboardInterrupt):
        run(jobs, executor, interrupt)
    assert executor.executed == [["none"]]
    assert store.record().failed == {}
    assert not any(store.is_finished(one) for job in jobs for one in job.arms)


def test_termination_stops_a_command_as_an_interrupt_does(tmp_path, monkeypatch, capsys):
    def terminate(job: Job) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: executor.stopped, "the request to stop")
        raise Stopped

    executor = Faked(terminate)
    monkeypatch.setattr("augury.cli.running.Local", lambda *_: executor)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as leaving:
        main(arguments(small(tmp_path)))
    assert leaving.value.code == 130
    assert capsys.readouterr().err == "augury: stopped; the same command goes on from here\n"
    assert executor.executed == [["none"]]
    assert signal.getsignal(signal.SIGTERM) is before
    with claimed(tmp_path / "small"):
        pass


def test_a_new_arm_alone_is_trained_and_one_that_is_gone_is_kept(tmp_path):
    store, jobs = begun(tmp_path)
    assert run(jobs, Faked(), lambda event: None)
    before = stamps(store.folder / "arms")
    file = small(tmp_path, SMALL.replace("[1, 2]", "[1, 4]").split("[[claims]]")[0])
    assert begin(store.folder, file) == [
        f"arms that are new since {store.folder} was begun: 1",
        f"arms in {store.folder} that are no longer in the study, and left as they are: 1",
    ]
    executor = Faked()
    assert run(jobs_of(store, arms_in(file)), executor, lambda event: None)
    assert executor.executed == [["translate, m = 4"]]
    assert stamps(store.folder / "arms").items() >= before.items()
    assert store.record().asked == [
        ("goal2d", name) for name in ("none", "translate, m = 1", "translate, m = 4")
    ]


def test_a_fleet_begun_with_other_settings_is_said_and_left(tmp_path):
    store, jobs = begun(tmp_path)
    for job in jobs:
        job.folder.mkdir(parents=True)
        (job.folder / checkpoints.NAME).write_bytes(b"hours of training")
        names = [[one.task, one.name] for one in job.arms]
        (job.folder / PROGRESS).write_text(json.dumps({"arms": names, "steps": 9}))
    assert len(store.progress()) == 3
    changed, others = begun(
        tmp_path, SMALL.replace("ratio = [1, 2]", "ratio = [1, 3]").split("[[claims]]")[0]
    )
    said = changed.others_begun([job.folder for job in others])
    assert said == [f"{jobs[1].folder} was begun with other arms or settings: it is left as it is"]
    assert (jobs[1].folder / checkpoints.NAME).read_bytes() == b"hours of training"
    assert store.progress().keys() == {("goal2d", "none")}
    assert store.others_begun([job.folder for job in jobs]) == []


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", "3", '{"format": 1}', '{"format": 1, "rows": [{}]}']
)
def test_a_damaged_record_is_said_and_mended_by_running_again(tmp_path, content):
    store, jobs = begun(tmp_path)
    assert run(jobs, Faked(), lambda event: None)
    (store.folder / "study.json").write_text(content)
    with pytest.raises(UserError, match="is damaged: run the study again, finished arms are kept"):
        store.record()
    begun(tmp_path)
    assert len(store.record().finished) == 3


def test_a_record_of_another_format_is_refused(tmp_path):
    store, _ = begun(tmp_path)
    (store.folder / "study.json").write_text('{"format": 9}')
    for attempt in (store.record, lambda: begun(tmp_path)):
        with pytest.raises(UserError, match="has format 9, not 1"):
            attempt()


def test_a_result_in_its_place_is_not_replaced(tmp_path):
    """A worker whose runner is gone may finish a fleet that another has finished meanwhile."""
    store, jobs = begun(tmp_path)
    assert run(jobs, Faked(), lambda event: None)
    before = stamps(store.folder / "arms")
    jobs[0].folder.mkdir()
    Faked().execute(jobs[0], lambda told: None)
    begun(tmp_path)
    assert stamps(store.folder / "arms") == before
    assert not list((store.folder / FLEETS).iterdir())


def test_a_fleets_results_appear_all_at_once(tmp_path, monkeypatch):
    """So that whoever looks, after a kill at whatever moment, finds all of them or none."""
    _, (_, job) = begun(tmp_path)
    names = [(one.task, one.name) for one in job.arms]
    worker.write_job(job.folder, [one.arm for one in job.arms], TRANSLATE, names)
    monkeypatch.setattr(worker, "train_fleet", lambda arms, **_: [result_of(arm) for arm in arms])
    seen = []

    def watched(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(path: Path, *others: Any, **options: Any) -> Any:
            outcome = change(path, *others, **options)
            if (job.folder / FINISHED).exists():
                seen.append(sorted(stamps(job.folder / FINISHED)))
            return outcome

        return changed

    for name in ("rename", "replace", "mkdir"):
        monkeypatch.setattr(Path, name, watched(getattr(Path, name)))
    worker.work(job.folder, lambda told: None)
    each = [f"{number}/{name}" for number in (0, 1) for name in (results.EVALUATIONS, results.RUN)]
    assert seen == [[*each, "places.json"]]


def test_a_file_is_on_the_disk_before_it_replaces_another(tmp_path, monkeypatch):
    path, synced = tmp_path / "study.json", []
    path.write_text("old")
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (synced.append(path.read_text()), sync(number)))

    def run_out_of_space() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="No space left on device"):
        run_out_of_space()
    assert (path.read_text(), synced) == ("old", [])
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert (path.read_text(), synced) == ("new", ["old"])
    assert [each.name for each in tmp_path.iterdir()] == ["study.json"]


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path, capsys):
    file = small(tmp_path)
    (tmp_path / "taken").write_text("")
    assert "cannot use" in refused(capsys, "study", "run", file, "--out", tmp_path / "taken")
    store, jobs = begun(tmp_path)
    (store.folder / FLEETS).mkdir(exist_ok=True)
    (store.folder / FLEETS / "abc" / FINISHED / "places.json").mkdir(parents=True)
    assert "cannot use" in refused(capsys, *arguments(file))
    shutil.rmtree(store.folder / FLEETS)
    (store.folder / "arms").write_text("in the way")
    events: list[Event] = []
    assert not run(jobs, Faked(), events.append)
    assert {event.why for event in events if event.kind == "failed"} == {
        "cannot keep the results: Not a directory"
    }


def test_a_busy_folder_is_refused_and_left_alone(tmp_path, capsys):
    store, _ = begun(tmp_path)
    before = stamps(store.folder)
    with claimed(store.folder):
        assert "is in use by another run" in refused(capsys, *arguments(tmp_path / "small.toml"))
        assert stamps(store.folder).items() >= before.items()
    with claimed(store.folder):
        pass


def test_a_worker_that_cannot_begin_says_why(tmp_path):
    store, jobs = begun(tmp_path)
    jobs[0].folder.mkdir(parents=True)
    (jobs[0].folder / checkpoints.NAME).write_text("not a checkpoint")
    events: list[Event] = []
    assert not run(jobs[:1], Local(), events.append)
    assert [event.kind for event in events] == ["started", "failed"]
    assert events[1].why.startswith(f"checkpoint {jobs[0].folder / checkpoints.NAME} is damaged")
    assert (jobs[0].folder / checkpoints.NAME).read_text() == "not a checkpoint"
    assert store.record().failed[("goal2d", "none")] == events[1].why


def test_a_worker_that_breaks_points_to_its_log(tmp_path):
    _, jobs = begun(tmp_path)
    broken = replace(jobs[0], arms=(jobs[0].arms[0]._replace(arm=replace(jobs[0].arms[0].arm, steps="x")),))
    worker.write_job(broken.folder, [broken.arms[0].arm], ["place"], [("goal2d", "none")])
    with pytest.raises(Died) as died:
        Local().execute(broken, lambda told: None)
    assert str(died.value) == f"its process ended with code 1: see {broken.folder / LOG}"
    assert "TypeError" in (broken.folder / LOG).read_text()


@pytest.mark.parametrize("damage", ["text", "short"])
def test_damaged_results_are_told_of_and_the_others_reported(tmp_path, capsys, damage):
    store, jobs = begun(tmp_path)
    assert run(jobs, Faked(), lambda event: None)
    place = store.place(jobs[0].arms[0])
    if damage == "text":
        (place / "run.json").write_text("3")
    else:
        found = results.read(place)
        results.write(place, replace(found, evaluations=found.evaluations | {"steps": np.arange(99)}))
    assert set(store.record().failed) == {("goal2d", "none")}
    main(["report", str(store.folder)])
    assert f"small, goal2d: none failed: {place}" in capsys.readouterr().err
    main(["report", str(store.folder), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert [each["arm"] for each in said["arms"]] == ["translate, m = 1", "translate, m = 2"]
    assert [each["arm"] for each in said["failed"]] == ["none"]


def test_a_fleet_that_died_without_a_word_has_failed_all_the_same(tmp_path, capsys):
    def fail(job: Job) -> None:
        raise ZeroDivisionError

    store, jobs = begun(tmp_path)
    assert not run(jobs, Faked(fail), lambda event: None)
    assert set(store.record().failed.values()) == {"ZeroDivisionError"}
    main(["study", "status", str(store.folder), "--json"])
    assert {row["state"] for row in json.loads(capsys.readouterr().out)} == {"failed"}


def test_nobody_waits_for_a_fleet_that_failed(tmp_path):
    store, jobs = begun(tmp_path)
    console = Console(file=io.StringIO(), width=150, color_system=None)
    view = View([(store, [one for job in jobs for one in job.arms])], jobs, console)
    told = {"steps": 0, "of": 100, "speed": None, "left": None, "measure": "success", "scores": None}
    other = told | {"steps": 100, "speed": 1.0, "left": 0.0, "scores": [[0.5]] * len(jobs[1].arms)}
    for event in (
        Event(jobs[1], "progress", told),
        Event(jobs[0], "failed", why="no memory"),
        Event(jobs[1], "progress", other),
    ):
        view.show(event)
    assert "about 0:00 left" in console.file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_view_tells_what_happens(tmp_path, terminal):
    def fail(job: Job) -> None:
        if len(job.arms) == 1:
            raise Died("no [memory] left")

    store, jobs = begun(tmp_path)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=150, color_system=None)
    arms = [one for job in jobs for one in job.arms]
    with View([(store, arms)], jobs, console) as view:
        assert not run(jobs, Faked(fail), view.show)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "goal2d: none  failed: no [memory] left" in said
    if terminal:
        assert "2 of 3 arms" in said
        assert "translate, m = 2" in said
        assert "0.50" in said
    else:
        assert "goal2d: translate, m = 1, translate, m = 2  finished" in said
        assert "1/1 steps  so far 0.50, 0.50" in said


def test_status_of_a_study_with_an_agent_that_diverged_is_json(tmp_path, capsys):
    store, jobs = begun(tmp_path)
    jobs[0].folder.mkdir(parents=True)
    told = {"steps": 9, "measure": "returns", "scores": [[float("nan"), 1.0]], "arms": [["goal2d", "none"]]}
    (jobs[0].folder / PROGRESS).write_text(json.dumps(told))
    main(["study", "status", str(store.folder), "--json"])
    row, *others = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (row["state"], row["score"]) == ("begun", None)
    assert {each["state"] for each in others} == {"waiting"}
    main(["study", "status", str(store.folder)])


# Whole studies of the paper, made small


def smaller(folder: Path, name: str, changes: dict[str, str]) -> Path:
    """A study of the paper with less to do."""
    text = (PAPER / f"{name}.toml").read_text()
    for old, new in changes.items():
        assert old in text, f"{name} does not say: {old}"
        text = text.replace(old, new)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


def test_studies_of_every_family_run_from_end_to_end(tmp_path, capsys):
    """Goal2D's has the program of the study above, which need not be compiled again."""
    alike = SMALL.split("[settings]\n")[1].split("\n\n")[0].replace("\n", ", ")
    rotate = (PAPER / "figure-11.toml").read_text().split("\n\n")[2]
    assert "goal2d/rotate" in rotate
    tasks = '["panda-push", "panda-slide", "panda-pick-and-place", "panda-flip"]'
    little = "random_steps = 200, hidden = [8], batch_size = 8, evaluate_every = 200, evaluation_episodes = 2"
    files = [
        smaller(
            tmp_path,
            "figure-11",
            {rotate: "", "[1, 2, 4, 8]": "[1, 2]", "m = 8": "m = 2", "evaluate_every = 4_000": alike},
        ),
        smaller(
            tmp_path,
            "figure-6",
            {
                tasks: '"panda-push"',
                '["panda-pick-and-place"]': '["panda-push"]',
                "steps = 20_000": "steps = 400",
                "evaluate_every = 5_000, evaluation_episodes = 20": little,
            },
        ),
        smaller(
            tmp_path,
            "figure-17",
            {
                '["ant", "humanoid"]': '"ant"',
                '[[arms]]\nname = "none"\n': "",
                "steps = 20_000": "steps = 400",
                "evaluate_every = 5_000, evaluation_episodes = 3": little,
            },
        ),
        smaller(tmp_path, "probabilities", {"10_000_000": "2_000"}),
    ]
    out = tmp_path / "out"
    main(["study", "run", *map(str, files), "--out", str(out), "--quick", "--agents", "2", "--jobs", "2"])
    said = capsys.readouterr().out
    assert "failed" not in said
    for name, arms in (("figure-11", 2), ("figure-6", 5), ("figure-17", 3)):
        record = Store(out / name).record()
        assert (len(record.finished), record.missing, record.figure) == (arms, [], name.split("-")[1])
        for one in record.finished:
            assert len(one.result.curves()) == 2
            assert np.isfinite(one.result.curves()).all()
    assert (out / "report.html").exists()
    table = json.loads((out / "probabilities" / "chances.json").read_text())
    assert (table["samples"], len(table["chances"])) == (2_000, 5)


def test_chances_are_measured_to_their_errors():
    study = read(PAPER / "probabilities.toml")
    assert isinstance(study, ChanceStudy)
    rows = [chance for chance in study.chances if chance.task in ("panda-flip", "goal2d")]
    flip, goal2d = chances.measure(ChanceStudy(title="T", samples=300_000, chances=tuple(rows), within=0.1))
    angle = np.arccos(0.6)
    for one, exact in ((flip, (angle - np.sin(angle)) / np.pi), (goal2d, np.pi * 0.05**2 / 4)):
        assert abs(one.measured - exact) < 5 * one.error
        assert one.error == pytest.approx(np.sqrt(exact * (1 - exact) / 300_000), rel=0.1)
    assert flip.confirmed
    assert not goal2d.confirmed
    (few,) = chances.measure(ChanceStudy(title="T", samples=10, chances=(rows[0],)))
    assert few.measured * 10 == pytest.approx(round(few.measured * 10))
