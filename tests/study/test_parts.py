"""Studies that are run in parts: what a part is, what its folder tells, and what comes of all parts."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from augury.cli import main
from augury.errors import UserError
from augury.report import verdicts_of
from augury.runs import checkpoints
from augury.study import run_study
from augury.study.arms import Size, arms_of
from augury.study.entry import Planned, begin, plan
from augury.study.parts import part_of
from augury.study.schema import Study
from augury.study.store import PROGRESS, Store
from augury.study.worker import write_job

# The fleet of the arm "none" is one of test_entry, and compiled once for both.
FILE = """
title = "Parts"
task = "goal2d"
agents = 4
steps = 1024
[settings]
random_steps = 256
updates = 4
batch_size = 8
hidden = [8]
evaluate_every = 512
evaluation_episodes = 4
[[arms]]
[[arms]]
augmentation = "goal2d/translate"
ratio = [1, 2]
[[claims]]
says = "translation beats none"
better = "translate, m = 2"
than = "none"
[[claims]]
says = "m does not matter"
alike = ["translate, m = 1", "translate, m = 2"]
within = 0.1
"""
NONE, ONE, TWO = "none", "translate, m = 1", "translate, m = 2"


def file_in(folder: Path) -> Path:
    path = folder / "parts.toml"
    path.write_text(FILE)
    return path


def planned(folder: Path, *only: str) -> Planned:
    found = plan(file_in(folder), folder, Size(), only=only)
    found.store.folder.mkdir(exist_ok=True)
    return found


def shapes(found: Planned) -> tuple[list[list[str]], list[str]]:
    """The fleets to train, by their arms' names, and the remarks for the user."""
    fleets, remarks = begin(found)
    return [[one.name for one in fleet.arms] for fleet in fleets], remarks


TWO_TASKS = arms_of(
    Study(
        title="Two tasks",
        task=["goal2d", "ant"],
        agents=1,
        arms=[{"name": "a"}, {"name": "b", "learning_rate": 0.1}, {"name": "c", "panel": "all {task}"}],
    ),
    "two",
    Size(),
)


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ([], ["goal2d: a", "goal2d: b", "all goal2d: c", "ant: a", "ant: b", "all ant: c"]),
        (["a"], ["goal2d: a", "ant: a"]),
        ("a", ["goal2d: a", "ant: a"]),
        (["b", "a"], ["goal2d: a", "goal2d: b", "ant: a", "ant: b"]),
        (["ant"], ["ant: a", "ant: b"]),
        (["ant", "all ant"], ["ant: a", "ant: b", "all ant: c"]),
        (["ant", "b"], ["ant: b"]),
        (["ant: b"], ["ant: b"]),
        (["ant: b", "goal2d: a"], ["goal2d: a", "ant: b"]),
        (["ant: b", "a"], ["goal2d: a", "ant: a", "ant: b"]),
        (["all goal2d: c", "ant", "b"], ["all goal2d: c", "ant: b"]),
    ],
)
def test_a_part_is_the_named_arms_on_the_named_tasks(only, expected):
    assert [f"{one.task}: {one.name}" for one in part_of(TWO_TASKS, only, "two")] == expected


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (["goal2"], "two: unknown arm or task 'goal2': did you mean 'goal2d'?"),
        (["a", "z"], "two: unknown arm or task 'z': choose from a, all ant, all goal2d, ant, b, c, goal2d"),
        (["ant: d"], "two: unknown arm or task 'ant: d': did you mean 'ant: "),
        (["c", "ant", "goal2d"], "two: there is no arm 'c' on 'ant' or 'goal2d'"),
    ],
)
def test_a_part_that_is_not_there_is_refused(only, message):
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        part_of(TWO_TASKS, only, "two")


@pytest.fixture(scope="module")
def part(tmp_path_factory) -> Path:
    """The folder of a study with one of its three arms run."""
    folder = tmp_path_factory.mktemp("parts")
    run_study(file_in(folder), out=folder, only=[NONE])
    return folder / "parts"


def test_a_part_of_a_study_is_trained_and_all_of_it_recorded(part):
    record = Store(part).record()
    assert [one.name for one in record.finished] == [NONE]
    assert record.missing == [("goal2d", ONE), ("goal2d", TWO)]
    assert [(one.verdict, one.agents, one.text) for one in verdicts_of(record)] == [
        ("undecided", (0, 4), f"{TWO} has not been run"),
        ("undecided", (0, 0), f"{ONE} has not been run; {TWO} has not been run"),
    ]


def test_status_and_report_of_a_part_tell_what_is_missing(part, capsys):
    main(["study", "status", str(part), "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["arm"], row["state"]) for row in rows] == [
        (NONE, "finished"),
        (ONE, "waiting"),
        (TWO, "waiting"),
    ]
    main(["report", str(part)])
    said = capsys.readouterr().out
    assert f"not run yet on goal2d: {ONE} · {TWO}\n" in said
    assert "2 of 3 arms are missing: 2 not run yet" in (part / "report.html").read_text()
    main(["report", str(part), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in told["arms"]] == [NONE]
    assert told["missing"] == [{"study": "parts", "task": "goal2d", "arm": arm} for arm in (ONE, TWO)]


@pytest.mark.slow
def test_parts_together_are_bit_for_bit_the_whole_study(part, tmp_path, capsys):
    whole = run_study(file_in(tmp_path), out=tmp_path / "whole")
    words = ["study", "run", str(part.parent / "parts.toml"), "--out", str(part.parent)]
    main([*words, "--only", f"goal2d: {TWO}", "--only", NONE])  # one more, and one that is there
    said = capsys.readouterr().out
    assert "Parts: 2 of 3 arms, 1 finished, 1 fleets to train\n" in said
    assert f"goal2d: {TWO}  finished\n" in said
    assert f"not run yet on goal2d: {ONE}\n" in said
    assert [one.difference is None for one in verdicts_of(Store(part).record())] == [False, True]

    main(words)
    said = capsys.readouterr().out
    assert "Parts: 3 arms, 2 finished, 1 fleets to train\n" in said
    assert "not run yet" not in said
    found = Store(part).record()
    assert found.command == f"augury study run {part.parent / 'parts.toml'}"
    assert [one.name for one in found.finished] == [NONE, ONE, TWO]
    for ours, theirs in zip(found.finished, whole.finished, strict=True):
        assert ours.result.evaluations.keys() == theirs.result.evaluations.keys()
        for name, values in theirs.result.evaluations.items():
            np.testing.assert_array_equal(ours.result.evaluations[name], values)


def checkpointed(found: Planned) -> None:
    """As if the fleets of a part had been stopped at work."""
    for fleet in begin(found)[0]:
        names = [(one.task, one.name) for one in fleet.arms]
        places = [str(one.folder) for one in fleet.arms]
        write_job(fleet.folder, [one.arm for one in fleet.arms], places, names)
        (fleet.folder / checkpoints.NAME).write_bytes(b"hours of training")
        (fleet.folder / PROGRESS).write_text(json.dumps({"arms": names, "steps": 9}))


def test_a_fleet_that_was_begun_goes_on_with_its_arms_in_a_later_run(tmp_path):
    checkpointed(planned(tmp_path, ONE))
    assert shapes(planned(tmp_path)) == ([[NONE], [ONE], [TWO]], [])
    assert shapes(planned(tmp_path, TWO, NONE)) == ([[NONE], [TWO]], [])
    assert Store(tmp_path / "parts").progress().keys() == {("goal2d", ONE)}


def test_a_fleet_that_a_part_takes_apart_is_said_and_left(tmp_path):
    checkpointed(planned(tmp_path, ONE, TWO))
    (taken,) = begin(planned(tmp_path, ONE, TWO))[0]
    said = [f"{taken.folder} was begun with other arms or settings: it is left as it is"]
    assert shapes(planned(tmp_path, ONE)) == ([[ONE]], said)
    checkpointed(planned(tmp_path, ONE))
    assert shapes(planned(tmp_path))[0] == [[NONE], [ONE, TWO]]  # what was begun together goes on together


def test_what_failed_is_told_until_it_is_tried_again(tmp_path):
    whole = planned(tmp_path)
    fleets, _ = begin(whole)
    for fleet in fleets:
        fleet.folder.mkdir(parents=True)
        whole.store.fail(fleet.folder, fleet.arms, "out of memory")
    begin(planned(tmp_path, NONE))
    assert whole.store.record().failed.keys() == {("goal2d", ONE), ("goal2d", TWO)}
    begin(planned(tmp_path, TWO))
    assert whole.store.record().failed == {}


def test_damaged_results_outside_a_part_are_left_as_they_are(tmp_path):
    damaged = tmp_path / "parts" / "arms" / "goal2d" / "translate-m-2" / "evaluations.npz"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no table")
    assert begin(planned(tmp_path, NONE))[1] == []
    assert damaged.exists()
    assert "translate-m-2.damaged-1, and is run again" in begin(planned(tmp_path, TWO))[1][0]
