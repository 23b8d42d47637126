"""Verdicts: what differences between arms, of known size and spread, say about claims."""

import json
from dataclasses import replace

import numpy as np
import pytest

from augury.fleet import Result
from augury.report.verdicts import FEWEST_AGENTS, MOST_AGENTS, verdicts_of
from augury.study.claims import Claim
from augury.study.record import Finished, Record

BETTER = Claim(says="augmentation helps", better="new", than="old")
ALIKE = Claim(says="it makes no difference", alike=("new", "old"), within=0.1)
STEPS = np.array([10, 20, 30])
NUMBERS = ("difference", "low", "high")


def result(curves, steps=STEPS, environment="goal2d", updates=None) -> Result:
    """An arm; a number for each agent stands for a curve that is flat."""
    curves = np.asarray(curves, float)
    if curves.ndim == 1:
        curves = np.repeat(curves[:, None], len(steps), axis=1)
    measured = {"success": curves, "returns": curves}
    axes = {"steps": steps, "updates": steps if updates is None else updates}
    return Result({"environment": environment}, {**axes, "seeds": np.arange(len(curves)), **measured})


def record(*claims, task="one", **arms) -> Record:
    finished = [Finished(name, task, arm) for name, arm in arms.items()]
    return Record("study", "", "", None, "steps", [task], ["new", "old"], claims, finished)


def verdict(claim, new, old, **options):
    """Of the only claim on the only task."""
    (only,) = verdicts_of(replace(record(claim, new=new, old=old), **options))
    return only


def spread(middle, width, agents=20):
    return middle + width * np.linspace(-0.5, 0.5, agents)


@pytest.mark.parametrize(
    ("by", "difference", "expected"),
    [
        (0, 0.1, "supported"),
        (0, -0.1, "contradicted"),
        (0, 0.01, "undecided"),
        (0, -0.01, "undecided"),
        (0.05, 0.1, "supported"),
        (0.15, 0.1, "contradicted"),
        (0.1, 0.1, "undecided"),
        (-0.1, -0.05, "supported"),  # hardly worse
    ],
)
def test_better_needs_the_whole_interval_above(by, difference, expected):
    claim = Claim(says="", better="new", than="old", by=by)
    found = verdict(claim, result(spread(0.5 + difference, 0.1)), result(spread(0.5, 0.1)))
    assert found.verdict == expected
    assert found.difference == pytest.approx(difference)
    assert found.low < found.difference < found.high
    assert found.high - found.low == pytest.approx(0.06, abs=0.02)
    assert found.agents == (20, 20)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("difference", "width", "expected"),
    [
        (0.02, 0.1, "supported"),
        (0.2, 0.1, "contradicted"),
        (0.1, 0.1, "undecided"),
        (0.02, 0.6, "undecided"),
        (0.12, 0.8, "undecided"),
    ],
)
def test_alike_needs_the_interval_inside_both_bounds(sign, difference, width, expected):
    new, old = result(spread(0.5 + sign * difference, width)), result(spread(0.5, width))
    assert verdict(ALIKE, new, old).verdict == expected


def test_arms_may_differ_in_agents():
    found = verdict(BETTER, result(spread(0.6, 0.1, 9)), result(spread(0.5, 0.1, 20)))
    assert (found.verdict, found.agents) == ("supported", (9, 20))


def test_scores_are_the_area_or_the_end():
    slow, fast = (result(np.tile(curve, (5, 1))) for curve in ([0.0, 0.5, 1.0], [0.0, 1.0, 0.75]))
    at_end = Claim(says="", better="new", than="old", measure="final")
    assert verdict(BETTER, fast, slow).difference == pytest.approx(0.6875 - 0.5)
    assert verdict(at_end, fast, slow).difference == pytest.approx(-0.25)
    assert [verdict(claim, fast, slow).verdict for claim in (BETTER, at_end)] == ["supported", "contradicted"]


def test_every_claim_is_judged_on_every_task_it_is_about():
    only_two = Claim(says="", better="old", than="new", tasks=("two",))
    arms = [
        Finished(name, task, result(spread(middle, 0.1)))
        for task, middles in (("one", (0.6, 0.5)), ("two", (0.5, 0.6)))
        for name, middle in zip(("new", "old"), middles, strict=True)
    ]
    study = replace(record(BETTER, only_two), tasks=["one", "two"], finished=arms)
    found = [(one.claim, one.task, one.verdict) for one in verdicts_of(study)]
    assert found == [
        (BETTER, "one", "supported"),
        (BETTER, "two", "contradicted"),
        (only_two, "two", "supported"),
    ]


def test_an_arm_without_a_result_leaves_it_undecided():
    (missing,) = verdicts_of(record(BETTER, old=result(np.zeros(5))))
    assert (missing.verdict, missing.agents) == ("undecided", (0, 5))
    assert missing.text == "new has not been run"
    assert missing.difference is missing.low is missing.high is missing.agents_needed is None
    failed = replace(record(BETTER, task="one"), failed={("one", "old"): "out of memory"})
    (neither,) = verdicts_of(failed)
    assert neither.text == "new has not been run; old failed: out of memory"


def test_few_agents_decide_nothing():
    few = FEWEST_AGENTS - 1
    for agents in (1, few):
        found = verdict(BETTER, result(spread(1, 0.01, 10)), result(spread(0, 0.01, agents)))
        assert (found.verdict, found.difference, found.agents) == ("undecided", None, (10, agents))
        assert f"too few agents for an interval: {agents} in an arm" in found.text
    enough = verdict(BETTER, result(spread(1, 0.01, few + 1)), result(spread(0, 0.01, few + 1)))
    assert enough.verdict == "supported"


def test_chance_alone_decides_about_as_rarely_as_the_interval_says():
    generator = np.random.default_rng(0)
    decided = 0
    for _ in range(250):
        new, old = (result(generator.normal(0.5, 0.1, FEWEST_AGENTS)) for _ in "ab")
        decided += verdict(BETTER, new, old).verdict != "undecided"
    assert 0.02 < decided / 250 < 0.11


@pytest.mark.parametrize("agents", [(4, 4), (5, 7), (12, 6)])
@pytest.mark.parametrize("score", [0.0, 0.1, 0.3, 0.7, 1.0, 1234.56])
def test_arms_without_any_difference_are_alike_and_neither_is_better(score, agents):
    new, old = (result(np.full(number, score)) for number in agents)
    undecided = verdict(BETTER, new, old)
    assert (undecided.verdict, undecided.agents_needed) == ("undecided", None)
    assert undecided.text == (
        "0.00 [0.00, 0.00], asked for more than 0; "
        "no number of agents decides a difference that is just the bound"
    )
    exactly = Claim(says="", alike=("new", "old"), within=0)
    assert verdict(exactly, new, old).verdict == "supported"


def test_agents_without_spread_decide_a_difference():
    found = verdict(BETTER, result(np.ones(4)), result(np.zeros(4)))
    assert (found.verdict, found.low, found.high) == ("supported", 1, 1)


def test_an_interval_that_touches_its_bound_is_not_above_it():
    old = result(np.zeros(4))
    for by, expected in ((0.5, "undecided"), (0.49, "supported"), (0.51, "contradicted")):
        claim = Claim(says="", better="new", than="old", by=by)
        assert verdict(claim, result(np.full(4, 0.5)), old).verdict == expected
    for within, expected in ((0.5, "supported"), (0.49, "contradicted")):
        claim = Claim(says="", alike=("new", "old"), within=within)
        assert verdict(claim, result(np.full(4, 0.5)), old).verdict == expected
        assert verdict(claim, old, result(np.full(4, 0.5))).verdict == expected


@pytest.mark.parametrize(
    ("claim", "difference"),
    [
        (BETTER, 0.05),
        (BETTER, -0.05),
        (Claim(says="", better="new", than="old", by=0.2), 0.26),
        (ALIKE, 0.03),
        (ALIKE, -0.03),
        (ALIKE, 0.16),
        (ALIKE, -0.16),
    ],
)
def test_as_many_agents_as_are_needed_decide(claim, difference):
    new, old = spread(0.5 + difference, 1, 40), spread(0.5, 1, 40)

    def with_agents(number):
        """More agents of the same kind: forty at a time change neither IQM nor spread."""
        times = round(number / 40)
        return verdict(claim, result(np.tile(new, times)), result(np.tile(old, times)))

    first = with_agents(40)
    assert first.verdict == "undecided"
    assert first.agents_needed > 160
    assert with_agents(1.25 * first.agents_needed).verdict != "undecided"
    assert with_agents(0.75 * first.agents_needed).verdict == "undecided"
    assert f"about {first.agents_needed:,} agents an arm would decide it" in first.text
    assert with_agents(1.25 * first.agents_needed).agents_needed is None


def test_agents_needed_follow_from_the_end_on_the_side_of_the_bound():
    skewed, old = np.linspace(0, 1, 8) ** 4, np.zeros(8)
    middle, low, high = (getattr(verdict(BETTER, result(skewed), result(old)), n) for n in NUMBERS)
    assert high - middle > 1.5 * (middle - low)
    for claim, times in (
        (Claim(says="", better="new", than="old", by=middle + 0.04), (high - middle) / 0.04),
        (Claim(says="", better="new", than="old", by=middle - 0.04), (middle - low) / 0.04),
        (Claim(says="", alike=("new", "old"), within=middle + 0.04), (high - middle) / 0.04),
        (Claim(says="", alike=("new", "old"), within=middle - 0.04), (middle - low) / 0.04),
    ):
        found = verdict(claim, result(skewed), result(old))
        assert found.agents_needed == pytest.approx(8 * times**2, abs=2)


def test_agents_needed_are_counted_for_arms_of_equal_size():
    old = spread(0.5, 0.5, 8)
    even = verdict(BETTER, result(spread(0.55, 0.5, 8)), result(old))
    odd = verdict(BETTER, result(spread(0.55, 0.5, 8)), result(np.tile(old, 50)))
    narrower = ((odd.difference - odd.low) / odd.difference) ** 2
    assert odd.agents_needed == int(2 / (1 / 8 + 1 / 400) * narrower) + 1
    assert odd.agents_needed == pytest.approx(even.agents_needed, rel=0.5)


def test_very_many_agents_are_not_counted():
    found = verdict(BETTER, result(spread(0.501, 0.5, 8)), result(spread(0.5, 0.5, 8)))
    assert found.agents_needed == MOST_AGENTS
    assert found.text.endswith("; 10,000 or more agents an arm would decide it")


def test_only_the_common_span_is_compared():
    def ramp(steps):
        return result(np.tile(steps / 100, (5, 1)), steps)

    long, short = ramp(np.arange(10, 101, 10)), ramp(np.array([20, 45]))
    found = verdict(BETTER, long, short)
    assert found.difference == pytest.approx(0)
    assert ", from 20 to 45 steps" in found.text
    at_end = Claim(says="", better="new", than="old", measure="final")
    assert verdict(at_end, long, short).difference == pytest.approx(0)
    assert ", at 45 steps" in verdict(at_end, short, long).text
    assert "steps" not in verdict(BETTER, long, long).text
    apart = verdict(BETTER, ramp(np.array([10, 20])), ramp(np.array([30, 40])))
    assert (apart.verdict, apart.text) == ("undecided", "the arms were evaluated at no common steps")


def test_arms_are_compared_along_the_axis_of_the_study():
    ramp = np.tile(STEPS / 100, (5, 1))
    twice, once = result(ramp, updates=2 * STEPS), result(ramp)
    assert verdict(BETTER, twice, once).difference == 0
    found = verdict(BETTER, twice, once, x_axis="updates")
    assert found.difference == pytest.approx(-0.125)  # 0.1 to 0.15, against 0.2 to 0.3, from 20 to 30 updates
    assert ", from 20 to 30 updates" in found.text


def test_the_text_has_the_numbers():
    found = verdict(BETTER, result(spread(0.6, 0.1)), result(spread(0.5, 0.1)))
    assert found.text == f"0.100 [{found.low:.3f}, {found.high:.3f}], asked for more than 0"
    wide = verdict(ALIKE, result(spread(0.5, 0.6)), result(spread(0.5, 0.6)))
    assert wide.text.startswith(
        f"0.00 [{wide.low:.2f}, {wide.high:.2f}], asked for at most 0.1 either way; about"
    )
    large = verdict(BETTER, result(spread(5000, 900)), result(spread(1000, 900)))
    assert large.text == f"4,000 [{large.low:,.0f}, {large.high:,.0f}], asked for more than 0"


def test_arms_that_are_measured_differently_are_not_compared():
    found = verdict(BETTER, result(np.ones(5)), result(np.zeros(5), environment="walker2d"))
    assert found.verdict == "undecided"
    assert "measured by success" in found.text


def test_diverged_agents_count_against_their_arm():
    def arm(middle, lost):
        scores = spread(middle, 100)
        scores[:lost] = np.nan
        return result(scores, environment="walker2d")

    healthy = arm(1000, 0)
    assert verdict(BETTER, arm(2000, 1), healthy).verdict == "supported"
    some = verdict(BETTER, arm(2000, 5), healthy)
    assert (some.verdict, some.low, some.agents_needed) == ("undecided", -np.inf, None)
    assert some.text.endswith("; too many agents diverged")
    assert verdict(BETTER, arm(2000, 15), healthy).verdict == "contradicted"
    assert verdict(BETTER, healthy, arm(2000, 15)).verdict == "supported"
    assert verdict(ALIKE, arm(2000, 15), arm(2000, 15)).verdict == "undecided"


def test_verdicts_are_json():
    found = verdict(BETTER, result(spread(0.6, 0.1)), result(spread(0.5, 0.1, 9)))
    said = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert said == {
        "claim": "augmentation helps",
        "task": "one",
        "verdict": "supported",
        "arms": ["new", "old"],
        "measure": "area",
        "asked": [0, None],
        "difference": found.difference,
        "interval": [found.low, found.high],
        "agents": [20, 9],
        "agents_needed": None,
        "text": found.text,
    }
    lost = result(np.full(5, np.nan))
    nothing = json.loads(json.dumps(verdict(ALIKE, lost, lost).as_json(), allow_nan=False))
    assert (nothing["difference"], nothing["interval"]) == (None, [None, None])
    assert nothing["asked"] == [-0.1, 0.1]
