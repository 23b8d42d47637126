"""How long a study will take: from what its fleets tell, while others still wait."""

from pathlib import Path

import pytest

from augury.fleet import Arm, resolved
from augury.study.arms import StudyArm
from augury.study.runner import Job
from augury.study.store import Store
from augury.study.time_left import TimeLeft

STEPS, RANDOM = 20_032, 10_048  # whole rounds


def job(name: str, agents: int = 2, policy_data: float = 1) -> Job:
    arm = resolved(Arm(agents=agents, policy_data=policy_data, steps=STEPS, random_steps=RANDOM))
    return Job(Store(Path("study")), (StudyArm("goal2d", name, arm),), Path(name))


def test_the_random_phase_is_no_work_and_policy_data_is():
    assert job("plain").work == 2 * (STEPS - RANDOM)
    assert job("plain").work_after(RANDOM // 2) == job("plain").work
    assert job("double", policy_data=2).work == 2 * job("plain").work


def test_no_time_is_told_before_a_fleet_learns():
    one = job("one")
    left = TimeLeft([one], at_once=1)
    assert left.words() == []
    left.told(one, 5_000, None, None)
    assert left.words() == ["random phase"]
    assert left.seconds is None


def test_fleets_that_wait_take_as_long_as_those_that_train():
    first, second, larger = job("first"), job("second"), job("larger", agents=4)
    left = TimeLeft([first, second, larger], at_once=1)
    half = RANDOM + (STEPS - RANDOM) // 2
    left.told(first, half, speed=500.0, left=30.0)
    assert left.seconds == pytest.approx(30 + 60 + 120)
    assert left.words() == ["500 agent-steps/s", "about 3:30 left"]
    left.ended(first)
    assert left.seconds == pytest.approx(60 + 120)
    left.told(second, 1_000, None, None)
    assert left.words() == ["random phase", "about 3:00 left"]


def test_a_fleet_that_is_resumed_has_only_its_rest_to_do():
    first, second = job("first"), job("second")
    left = TimeLeft([first, second], at_once=1)
    half = RANDOM + (STEPS - RANDOM) // 2
    left.told(first, half, speed=500.0, left=30.0)
    left.told(second, half, None, None)
    assert left.seconds == pytest.approx(30 + 30)
    assert left.words()[0] == "500 agent-steps/s"


def test_fleets_at_the_same_time_share_the_rest_but_none_is_cut():
    first, second, larger = job("first"), job("second"), job("larger", agents=4)
    left = TimeLeft([first, second, larger], at_once=2)
    left.told(first, RANDOM, speed=500.0, left=60.0)
    assert left.seconds == pytest.approx((60 + 60 + 120) / 2)
    left.ended(first)
    left.ended(second)
    assert left.seconds == pytest.approx(120)
