"""The table of advice: made of curves, written, read and checked."""

from dataclasses import fields, replace

import pytest

from augury.advise import table
from augury.advise.table import Described, Row, Setting, digest, read, rows_from, text, write
from augury.errors import UserError
from tests.advise.test_worth import POLICY, learners

ARM = Described(
    family="point",
    task="family/point(wind=0.1, walls=2)",
    augmentation="family/reflect(error=0.1)",
    truth="slightly-wrong",
    error=0.1,
    algorithm="td3",
    ratio=4,
    update_ratio=0.5,
    steps=200_000,
    signals={"coverage": 0.25, "asymmetry": None},
)


@pytest.fixture(scope="module")
def rows():
    arms = [
        (ARM, learners(4, seed=9)),
        (replace(ARM, ratio=float("inf"), signals={"coverage": 1 / 3}), learners(0.5, seed=9)),
    ]
    return rows_from(arms, {ARM.setting: POLICY})


def test_rows_hold_what_came_of_arms(rows):
    helps, hurts = rows
    assert helps.agents == 200
    assert helps.worth == pytest.approx(4, rel=0.05)
    assert helps.gain == pytest.approx(helps.area - helps.area_none)
    assert helps.gain_low < helps.gain < helps.gain_high
    assert helps.early_gain > 0.1 > hurts.early_gain
    assert helps.decided
    assert hurts.decided
    assert hurts.worth == pytest.approx(0.5, rel=0.05)
    assert not replace(helps, gain_low=-0.01).decided


def test_without_arms_of_more_data_a_worth_is_not_known_and_without_none_there_is_no_row():
    [row] = rows_from([(ARM, learners(4, seed=9))], {ARM.setting: {1: POLICY[1]}})
    assert row.worth is None
    other = Setting("point", ARM.task, "td3", 0.5, 100_000)
    with pytest.raises(UserError, match="200,000 steps has no arm without augmentation"):
        rows_from([(ARM, learners(4))], {other: POLICY})


def test_a_table_is_read_as_it_was_written_whatever_the_order_of_its_rows(rows, tmp_path):
    write(tmp_path / "table.csv", rows)
    again = read(tmp_path / "table.csv")
    assert text(again) == text(rows[::-1]) == (tmp_path / "table.csv").read_text()
    assert digest(again) == digest(rows) != digest(rows[:1])
    assert (again[0].task, again[1].ratio) == (ARM.task, float("inf"))
    assert again[1].signals == {"coverage": 0.3333, "asymmetry": None}
    assert again[0].worth == pytest.approx(rows[0].worth, rel=1e-3)


def test_merged_tables_hold_the_arms_of_both_and_the_later_of_two(rows):
    first, second = rows
    again = replace(second, area=0.5)
    assert table.merged([first, second], [again]) == [first, again]
    assert table.merged([first], [second]) == [first, second]


def test_every_field_of_a_row_is_a_column():
    assert {one.name for one in fields(Row)} - {"signals"} == set(table._COLUMNS)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("slightly-wrong", "slightly-wrnog", "line 2, column 'truth'.*did you mean 'slightly-wrong'"),
        ("family,task", "family,tusk", "line 1: unknown column 'tusk': did you mean 'task'"),
        (",td3,", ",,", "line 2, column 'algorithm': is empty"),
        ("0.25", "much", r"line 2, column 'signal.coverage': 'much' is not a number"),
        ("0.25", "inf", "line 2, column 'signal.coverage': inf is not finite"),
        (",200000,", ",2e5,", "line 2, column 'steps': '2e5' is not a whole number"),
        (",0.5,", ",-0.5,", "line 2, column 'update_ratio': -0.5 is not above 0"),
        (",inf,", ",4,", "line 3: the same arm as in line 2"),
        (",td3,", ",", "line 2: 22 cells, and 23 columns"),
        (",censored", "", "line 1: column 'censored' is there 0 times"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_column(rows, tmp_path, old, new, says):
    path = tmp_path / "table.csv"
    assert old in text(rows)
    path.write_text(text(rows).replace(old, new))
    with pytest.raises(UserError, match=says):
        read(path)


def test_a_table_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        read(tmp_path / "none.csv")
