"""Studies that come with Augury are found from anywhere."""

import json
from pathlib import Path

import pytest

from augury.cli import main
from augury.errors import UserError
from augury.study.arms import Size
from augury.study.entry import plan
from augury.study.shipped import found, named, shipped

STUDIES = Path(__file__).parents[2] / "studies"


def test_every_study_of_the_repository_has_a_name_of_its_own():
    files = list(STUDIES.rglob("*.toml"))
    assert {name: path.resolve() for name, path in shipped().items()} == {path.stem: path for path in files}
    assert len(shipped()) == len(files)


def test_a_study_is_found_by_name_and_by_the_path_that_the_docs_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in ("figure-6", "studies/paper/figure-6.toml"):
        assert found(Path(given)).resolve() == STUDIES / "paper" / "figure-6.toml"
        assert named(found(Path(given))) == "figure-6"
    planned = plan("figure-11", tmp_path, Size())
    assert planned.store.folder == tmp_path / "figure-11"


def test_a_file_goes_before_a_study_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "studies" / "first-look.toml"
    own.parent.mkdir()
    own.touch()
    assert found(Path("studies/first-look.toml")).resolve() == own
    assert named(Path("studies/first-look.toml")) == "studies/first-look.toml"


def test_an_unknown_name_is_told_from_a_file_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="unknown study 'first-lok': did you mean 'first-look'"):
        found(Path("first-lok"))
    assert found(Path("first-look.toml")) == Path("first-look.toml")  # reading it says that there is none
    assert found(Path("mine/first-look")) == Path("mine/first-look")


def test_without_a_folder_of_studies_those_that_come_along_are_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["study", "list", "--json"])
    assert {row["file"] for row in json.loads(capsys.readouterr().out)} == shipped().keys()
