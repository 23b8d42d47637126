"""`augury list`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from augury.agents import ALGORITHMS
from augury.augmentations import CATALOGUE
from augury.cli.output import console, say
from augury.envs import ENVIRONMENTS
from augury.registry import OURS, Listed


@dataclass(frozen=True)
class List:
    """List environments, algorithms and augmentations, those of installed packages too.

    Example: augury list --json
    """

    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        environments, augmentations = ENVIRONMENTS.listed(), CATALOGUE.listed()
        if self.json:
            usable = [one for one in environments if not one.problem]
            listed = {
                "environments": [one.name for one in usable],
                "algorithms": list(ALGORITHMS),
                "augmentations": [_augmentation(one) for one in augmentations if not one.problem],
                "origins": {one.name: one.origin for one in usable},
                "problems": {one.name: one.problem for one in (*environments, *augmentations) if one.problem},
            }
            print(json.dumps(listed, indent=2))
            return
        ours = [one.name for one in environments if one.origin == OURS]
        console.print(f"environments: {', '.join(ours)}")
        for one in environments:
            if one.origin != OURS and not one.problem:
                console.print(Text(f"  {one.name}, from {one.origin}"))
        console.print(f"algorithms: {', '.join(ALGORITHMS)}")
        table = Table("augmentation", "environment", "does", "from", box=None, header_style="bold")
        for row in (_augmentation(one) for one in augmentations if not one.problem):
            cells = (row["augmentation"], row["environment"] or "any", row["does"], row["origin"])
            table.add_row(*(Text(str(cell)) for cell in cells))
        console.print(table)
        for one in (*environments, *augmentations):
            if one.problem:
                say(f"'{one.name}' cannot be used: {one.problem}", code=0)


def _augmentation(listed: Listed) -> dict[str, object]:
    entry = CATALOGUE[listed.name]
    return {
        "augmentation": entry.listed,
        "environment": entry.environment,
        "needs": list(entry.needs),
        "does": entry.summary,
        "origin": listed.origin,
    }
