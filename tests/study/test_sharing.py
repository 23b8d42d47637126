"""Arms that several studies ask for: trained once, and taken over with all their files."""

import json
import shutil
from pathlib import Path

import pytest

from augury.cli import main
from augury.study import run_study
from augury.study.arms import Size
from augury.study.entry import begin, plan
from tests.study.test_parts import FILE, NONE, ONE, TWO


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
    assert remarks == [f"goal2d: none is that of {place}, and not trained again"]
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


def test_a_damaged_arm_is_not(runs):
    (runs / "first" / "arms" / "goal2d" / "none" / "evaluations.npz").write_bytes(b"half")
    assert names(begin(planned(runs))[0]) == [[NONE], [ONE, TWO]]


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
