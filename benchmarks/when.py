"""When does augmentation help? The table of trained arms, put together by what is thought to decide it.

    python benchmarks/when.py results/advice/table.csv

Prints the worth of augmentations as a multiple of policy data: geometric means over arms, with the number of
arms, and the share whose gain over none is decided and positive, or decided and negative.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from augury.advise import table
from augury.advise.table import Row

RIGHT = ("exact", "coverage-only", "reward-only")


def show(title: str, rows: Sequence[Row], key: Callable[[Row], Any]) -> None:
    """A table of arms that share a key."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        if row.worth is not None:
            groups[key(row)].append(row)
    print(f"\n| {title} | arms | worth | helps | hurts |\n|---|---:|---:|---:|---:|")
    for name, found in sorted(groups.items(), key=lambda item: str(item[0])):
        worth = 2 ** np.mean([np.log2(row.worth) for row in found if row.worth])
        helps = np.mean([row.gain_low > 0 for row in found])
        hurts = np.mean([row.gain_high < 0 for row in found])
        print(f"| {name} | {len(found)} | {worth:.2f} | {helps:.0%} | {hurts:.0%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("table", type=Path)
    rows = table.read(parser.parse_args().table)
    plain = [row for row in rows if (row.ratio, row.update_ratio) == (1, 1)]
    right = [row for row in rows if row.truth in RIGHT]
    show("what it is (m = α = 1)", plain, lambda row: row.truth)
    show(
        "family, right ones (m = α = 1)", [row for row in plain if row.truth in RIGHT], lambda row: row.family
    )
    varied = {(row.task, row.augmentation) for row in right if row.update_ratio != 1}
    grid = [row for row in right if (row.task, row.augmentation) in varied]
    show("right ones: m, α", grid, lambda row: f"{row.ratio:g}, {row.update_ratio:g}")
    broken = [row for row in plain if row.augmentation.startswith(("family/reflect(", "family/relabel("))]
    broken += [
        row
        for row in plain
        if row.augmentation in ("family/reflect", "family/relabel") and row.truth == "exact"
    ]
    show("error added to the next observation or the reward", broken, lambda row: f"{row.error:g}")
    print("\n| signal | Spearman's rank correlation with the worth |\n|---|---:|")
    known = [row for row in rows if row.worth is not None]
    for name in sorted({name for row in known for name in row.signals}):
        pairs = np.array(
            [(value, row.worth) for row in known if (value := row.signals.get(name)) is not None]
        )
        if len(pairs) > 2 and np.ptp(pairs[:, 0]) > 0:
            print(f"| {name} | {spearmanr(*pairs.T).statistic:.2f} |")


if __name__ == "__main__":
    main()
