"""Arms that several studies ask for: trained once, and taken over with all their files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from augury.cli import main
from augury.runs import checkpoints
from augury.study import run_study
from augury.study.arms import Size
from augury.study.entry import begin, plan
from augury.study.runner import jobs_of
from augury.study.sharing import identity
from augury.study.worker import write_job
from tests.study.test_parts import FILE, NONE, ONE, TWO

EQUAL = """
[[arms]]
name = "equal"
learning_rate = 0.01
"""
"""An arm that trains in the fleet of the first."""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder in which a study's first arm is finished."""
    folder = tmp_path_factory.mktemp("out")
    (folder / "first.toml").write_text(FILE)
    run_study(folder / "first.toml", out=folder / "runs", only=NONE)
    return folder


@pytest.fixture
def runs(out, tmp_path):
    return shutil.copytree(out / "runs", tmp_path / "runs")


def planned(folder: Path, text: str = FILE):
    path = folder / "second.toml"
    path.write_text(text)
    found = plan(path, folder, Size())
    found.store.folder.mkdir(exist_ok=True)
    return found


def names(fleets):
    return [[one.name for one in fleet.arms] for fleet in fleets]


def test_a_finished_arm_of_another_study_is_taken_over(runs):
    study = planned(runs)
    fleets, remarks = begin(study)
    assert names(fleets) == [[ONE, TWO]]
    place = runs / "first" / "arms" / "goal2d" / "none"
    assert len(remarks) == 1
    assert remarks[0].startswith(f"goal2d: none is that of {place}, finished 20")
    assert remarks[0].endswith(": it is not trained again")
    for path in place.iterdir():
        assert (study.store.place(study.arms[0]) / path.name).read_bytes() == path.read_bytes()
    assert study.store.record().result("none").evaluations["steps"].tolist() == [512, 1024]
    assert begin(study)[1] == []  # and now it is its own


@pytest.mark.parametrize("change", ["agents = 5", "steps = 2048", "batch_size = 16"])
def test_an_arm_with_other_settings_is_not(runs, change):
    name = change.split()[0]
    lines = [change if line.startswith(f"{name} ") else line for line in FILE.splitlines()]
    fleets, remarks = begin(planned(runs, "\n".join(lines)))
    assert names(fleets) == [[NONE], [ONE, TWO]]
    assert remarks == []


@pytest.mark.parametrize("damage", ["half a file", "curves of another length", "a folder that was set aside"])
def test_a_damaged_arm_is_not(runs, damage):
    place = runs / "first" / "arms" / "goal2d" / "none"
    path = place / "evaluations.npz"
    if damage == "half a file":
        path.write_bytes(path.read_bytes()[:100])
    elif damage == "curves of another length":
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        np.savez_compressed(path, **{**arrays, "steps": arrays["steps"][:1]})
    else:
        place.rename(place.with_name("none.damaged-1"))
    assert names(begin(planned(runs))[0]) == [[NONE], [ONE, TWO]]


def test_what_is_named_by_its_module_is_not(runs):
    """Its file may have been edited since."""
    path = runs / "first" / "arms" / "goal2d" / "none" / "run.json"
    record = json.loads(path.read_text())
    assert identity(record["asked"]) is not None
    assert identity({**record["asked"], "augmentation": "mine:shift"}) is None
    assert identity({**record["asked"], "environment": "mine:Maze"}) is None


def test_a_fleet_that_was_begun_goes_on(runs):
    """Also where another study has finished one of its arms meanwhile."""
    study = planned(runs, FILE + EQUAL)
    begun, other = jobs_of(study.store, study.arms)
    assert names([begun, other]) == [[NONE, "equal"], [ONE, TWO]]
    write_job(
        begun.folder,
        [one.arm for one in begun.arms],
        [str(one.folder) for one in begun.arms],
        [(one.task, one.name) for one in begun.arms],
    )
    assert names(begin(study)[0]) == [[ONE, TWO], ["equal"]]  # no checkpoint yet: nothing is lost
    shutil.rmtree(study.store.folder / "arms")
    (begun.folder / checkpoints.NAME).write_bytes(b"a checkpoint")
    assert names(begin(study)[0]) == [[NONE, "equal"], [ONE, TWO]]


def test_of_two_studies_that_are_run_together_the_first_trains_for_both(runs):
    first = plan(runs / "first" / "study.toml", runs, Size(), name="third")
    first.store.folder.mkdir()
    fleets, _ = begin(first)
    assert names(fleets) == [[ONE, TWO]]
    assert begin(planned(runs), fleets)[0] == []


@pytest.mark.slow
def test_equal_arms_of_two_files_come_from_one_fleet(runs, tmp_path, capsys):
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(FILE)
    main(["study", "run", str(tmp_path / "one.toml"), str(tmp_path / "two.toml"), "--out", str(runs)])
    shown = capsys.readouterr().out
    assert "3 arms, 1 finished, 1 fleets to train" in shown
    assert "3 arms, 1 finished, 0 fleets to train, 2 arms come from those of another study" in " ".join(
        shown.split()
    )
    ours, theirs = (runs / name / "arms" / "goal2d" for name in ("one", "two"))
    assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()}
    records = [json.loads((each / "translate-m-2" / "run.json").read_text()) for each in (ours, theirs)]
    assert records[0] == records[1]
