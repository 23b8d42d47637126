"""Does it learn? The arms that the project promises, on Goal2D with the paper's settings.

    python benchmarks/learning.py [--agents 20] [--save curves.json]

Prints the IQM success of evaluation episodes at chosen steps.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from augury.fleet import Arm, train, use_all_cores
from augury.runs.statistics import iqm_curve

ARMS = {
    "TD3, no augmentation": {"steps": 60_000},
    "TD3, translate m = 1": {"steps": 60_000, "augmentation": "goal2d/translate", "ratio": 1},
    "TD3, translate m = 8": {"steps": 60_000, "augmentation": "goal2d/translate", "ratio": 8},
    "DDPG, translate m = 1": {"steps": 150_000, "augmentation": "goal2d/translate", "algorithm": "ddpg"},
    "SAC, translate m = 1": {"steps": 150_000, "augmentation": "goal2d/translate", "algorithm": "sac"},
}
SHOWN = (30_000, 50_000, 60_000, 100_000, 150_000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--only", help="arms whose name contains this")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    use_all_cores()
    saved = {}
    print(
        f"{'IQM success, ' + str(options.agents) + ' agents':24s}"
        + "".join(f"{steps:>20,}" for steps in SHOWN)
    )
    for name, settings in ARMS.items():
        if options.only and options.only not in name:
            continue
        result = train([Arm(agents=options.agents, **settings)])[0]  # type: ignore[arg-type]
        steps, curve = result.evaluations["steps"], iqm_curve(result.curves())
        cells = []
        for shown in SHOWN:
            at = int(np.searchsorted(steps, shown))
            inside = at < len(steps) and steps[at] - shown < 1_000
            cells.append(
                f"{curve.middle[at]:.2f} [{curve.low[at]:.2f}, {curve.high[at]:.2f}]" if inside else "–"
            )
        print(
            f"{name:24s}" + "".join(f"{cell:>20s}" for cell in cells), f"{result.seconds:6.0f} s", flush=True
        )
        saved[name] = {"steps": steps.tolist(), "success": result.curves().round(4).tolist()}
        if options.save is not None:
            options.save.write_text(json.dumps(saved))


if __name__ == "__main__":
    main()
