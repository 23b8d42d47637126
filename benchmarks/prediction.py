"""How well the worth of augmentations is predicted on families never seen, and with what coefficients.

    python benchmarks/prediction.py TABLE.csv [--write]

Prints the prediction beside its baselines, each family being left out in turn, then family by family, and the
coefficients by size. With --write they become those that are shipped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from augury.advise import table
from augury.advise.coefficients import SHIPPED, as_json, write
from augury.advise.judging import judge
from augury.advise.prediction import fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--write", action="store_true", help=f"write {SHIPPED.name}")
    asked = parser.parse_args()
    rows = table.read(asked.table)
    model = fit(rows)
    print(judge(rows).table(), "\n")
    print("| term | coefficient |\n|---|---|")
    for name, value in sorted(as_json(model)["coefficients"].items(), key=lambda item: -abs(item[1])):
        print(f"| {name} | {value:.3f} |")
    if asked.write:
        write(SHIPPED, model)


if __name__ == "__main__":
    main()
