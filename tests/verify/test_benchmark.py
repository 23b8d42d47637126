"""A selection of the augmentations in benchmarks/verifier.py, which has all of them."""

import importlib.util
import sys
from pathlib import Path

import pytest

from augury.verify import verify

PATH = Path(__file__).parents[2] / "benchmarks" / "verifier.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("verifier_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_what_is_wrong_is_caught_and_explained(benchmark):
    cases = [case for case in benchmark.wrong_others() if isinstance(case.environment, benchmark.Spring)]
    said = {case.name: verify(case.augmentation, case.environment, samples=200) for case in cases}
    assert {case.name: benchmark.judged(case, said[case.name]) for case in cases} == {
        "action forgotten": "right cause",
        "sign of the velocity": "right cause",
        "through the wall": "described",
        "noise upon the action": "described",
    }


def test_what_is_right_passes(benchmark):
    assert verify(benchmark.MIRROR, benchmark.Spring(), samples=200).valid
    for mirror, name in ((benchmark.CARTPOLE, "CartPole-v1"), (benchmark.ACROBOT, "Acrobot-v1")):
        report = verify(mirror, benchmark.gym(name), samples=200)
        assert (report.verdict, report.set_aside) == ("valid", 0)


@pytest.mark.slow
def test_there_are_sixty_wrong_ones_in_twelve_environments_and_forty_right_ones(benchmark):
    wrong = [*benchmark.wrong_robots(), *benchmark.wrong_others()]
    assert len(wrong) >= 60
    assert len({str(getattr(case.environment, "name", case.environment)) for case in wrong}) >= 12
    assert len(list(benchmark.right())) >= 40
