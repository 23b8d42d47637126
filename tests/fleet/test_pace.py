"""Speed and time left: those of learning, whatever compiling and the random phase take."""

import pytest

from augury.fleet import Arm, resolved
from augury.fleet.pace import Pace, duration
from augury.fleet.progress import Display
from augury.fleet.training import Progress, seconds_to_save

ROUNDS, FIRST_UPDATE, DUE = 1_000, 200, (250, 500, 750, 1_000)


def pace() -> Pace:
    return Pace(ROUNDS, FIRST_UPDATE, DUE)


def test_nothing_is_told_in_the_random_phase():
    one = pace()
    one.advanced(0, 1, seconds=15.0)
    one.advanced(1, 199, seconds=0.1)
    assert one.speed is None
    assert one.left(200) is None


def test_speed_is_that_of_rounds_that_learn():
    one = pace()
    one.advanced(0, 1, seconds=15.0)
    one.advanced(1, 199, seconds=0.1)
    one.advanced(200, 1, seconds=0.5)
    one.advanced(201, 9, seconds=4.5)
    assert one.speed == pytest.approx(2.0)
    assert one.left(210) == pytest.approx(790 / 2)


def test_the_call_that_compiles_is_not_measured_when_a_run_is_resumed():
    one = pace()
    one.advanced(600, 1, seconds=20.0)
    assert one.speed is None
    one.advanced(601, 4, seconds=2.0)
    assert one.speed == pytest.approx(2.0)
    assert one.left(605) == pytest.approx(395 / 2)


def test_evaluations_to_come_take_their_time_too_but_not_the_first_ones_compilation():
    one = pace()
    one.advanced(0, 1, seconds=1.0)
    one.advanced(200, 50, seconds=50.0)
    one.evaluated(30.0)
    assert one.left(250) == pytest.approx(750)
    one.advanced(250, 250, seconds=250.0)
    one.evaluated(3.0)
    assert one.left(500) == pytest.approx(500 + 2 * 3.0)
    assert one.left(1_000) == 0.0


def test_a_machine_that_slows_down_is_noticed():
    one = pace()
    one.advanced(0, 1, seconds=1.0)
    one.advanced(200, 100, seconds=50.0)
    for first in range(300, 360, 10):
        one.advanced(first, 10, seconds=50.0)
    assert one.speed == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0:00"), (125, "2:05"), (3725, "1:02:05")])
def test_durations_are_short(seconds, words):
    assert duration(seconds) == words


def test_a_run_says_that_it_is_in_its_random_phase_and_then_what_is_left():
    display = Display(resolved(Arm(agents=2, steps=20_000)))
    assert display._pace(Progress(10_000, None, None, None, {})) == "random phase"
    assert display._pace(Progress(10_048, None, None, None, {})) == ""  # resumed: its first call has compiled
    assert (
        display._pace(Progress(12_000, 10_400.4, 125.0, None, {})) == "10,400 agent-steps/s  about 2:05 left"
    )


def test_checkpoints_come_soon_and_then_less_often():
    age, ages = 0.0, []
    for _ in range(6):
        age += seconds_to_save(age, saving=0.1, checkpoint_every=60.0)
        ages.append(age)
    assert ages == [5, 10, 20, 40, 80, 140]


def test_checkpoints_take_no_more_than_their_share_and_come_as_often_as_asked():
    assert seconds_to_save(age=0.0, saving=2.0, checkpoint_every=60.0) == pytest.approx(40.0)
    assert seconds_to_save(age=0.0, saving=0.0, checkpoint_every=0.1) == 0.1
