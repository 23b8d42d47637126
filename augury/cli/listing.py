"""`augury list`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from rich.table import Table

from augury.agents import ALGORITHMS
from augury.augmentations import CATALOGUE
from augury.cli.output import console
from augury.envs import ENVIRONMENTS


@dataclass(frozen=True)
class List:
    """List environments, algorithms and augmentations.

    Example: augury list --json
    """

    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        augmentations = [
            {
                "augmentation": entry.signature,
                "environment": entry.environment,
                "needs": list(entry.needs),
                "does": entry.summary,
            }
            for entry in CATALOGUE.values()
        ]
        if self.json:
            names = {"environments": list(ENVIRONMENTS), "algorithms": list(ALGORITHMS)}
            print(json.dumps({**names, "augmentations": augmentations}, indent=2))
            return
        console.print(f"environments: {', '.join(ENVIRONMENTS)}")
        console.print(f"algorithms: {', '.join(ALGORITHMS)}")
        table = Table("augmentation", "environment", "does", box=None, header_style="bold")
        for row in augmentations:
            table.add_row(str(row["augmentation"]), str(row["environment"]), str(row["does"]))
        console.print(table)
