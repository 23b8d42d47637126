"""What is advised on tasks of another kind than the table's, beside what came of training there.

    python benchmarks/elsewhere.py results/panda-push results/walker2d results/goal2d/figure-11

For every arm with augmentation below these folders: a pilot, its signals, the prediction; and the gain over
none in the mean score of the whole run, with its 90% interval over agents, where an arm without augmentation
was trained too. Pilots simulate a few minutes.
"""

from __future__ import annotations

import argparse
from functools import lru_cache
from pathlib import Path

from augury.advise import coefficients
from augury.advise.features import Settings, Signals
from augury.advise.pilot import Pilot, gather
from augury.advise.reasons import reasons
from augury.advise.signals.measuring import measure
from augury.fleet import keep_compiled
from augury.runs import results
from augury.runs.results import Result, score
from augury.runs.statistics import Bootstrap, area, difference

BOOTSTRAP = Bootstrap(confidence=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    keep_compiled()
    model = coefficients.read()
    print("| task | arm | gain over none | predicted worth | it helps with a probability of |")
    print("|---|---|---|---|---:|")
    said = {}
    for folder in parser.parse_args().folders:
        arms = [results.read(found.parent) for found in sorted(folder.glob("**/evaluations.npz"))]
        nones = {_task(arm): arm for arm in arms if arm.asked["augmentation"] is None and _plain(arm)}
        for arm in (arm for arm in arms if arm.asked["augmentation"] is not None and _plain(arm)):
            signals, notes = _signals(arm)
            asked = arm.asked
            settings = Settings(float(asked["ratio"]), asked["update_ratio"])
            prediction = model.predict(signals, settings)
            none = nones.get(_task(arm))
            cells = [_task(arm), arm.label, "not trained" if none is None else _gain(arm, none)]
            if prediction.worth is None:
                cells += [prediction.outside, ""]
            else:
                worth = prediction.worth
                cells += [
                    f"{worth.middle:.2f} [{worth.low:.2f}, {worth.high:.2f}]",
                    f"{prediction.helps:.0%}",
                ]
            print(f"| {' | '.join(cells)} |", flush=True)
            said[_task(arm), asked["augmentation"]] = (*reasons(signals), *notes)
    for (task, augmentation), sentences in said.items():
        print(f"\n{augmentation} on {task}:")
        print("\n".join(f"- {sentence}" for sentence in sentences))


@lru_cache(maxsize=1)
def _pilot(environment: str, algorithm: str) -> Pilot:
    return gather(environment, algorithm=algorithm)


def _signals(arm: Result) -> tuple[Signals, tuple[str, ...]]:
    asked = arm.asked
    found = measure(
        _pilot(asked["environment"], asked["algorithm"]),
        asked["augmentation"],
        ratio=float(asked["ratio"]),
        update_ratio=asked["update_ratio"],
    )
    return found.values(), found.notes


def _gain(arm: Result, none: Result) -> str:
    first, second = (area(one.evaluations["steps"], one.curves()) for one in (arm, none))
    gained = difference(first, second, "mean", BOOTSTRAP)
    middle, low, high = (score(arm.measure, value) for value in gained)
    return f"{middle} [{low}, {high}]"


def _task(arm: Result) -> str:
    return str(arm.asked["environment"])


def _plain(arm: Result) -> bool:
    """Neither more policy data, nor evaluated elsewhere."""
    asked = arm.asked
    return asked["policy_data"] == 1 and asked.get("evaluation_environment") in (None, asked["environment"])


if __name__ == "__main__":
    main()
