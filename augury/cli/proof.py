"""`augury verify` and `augury show`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from augury import show
from augury.cli.output import console
from augury.report import tables
from augury.runs.files import slug
from augury.verify import verify

EXIT_CODES = {"invalid": 1, "outside the space": 1, "unknown": 3}


@dataclass(frozen=True)
class Verify:
    """Ask the simulator whether it agrees with an augmentation.

    The exit code is 1 where it does not, or where no such transition occurs, and 3 where it cannot tell.

    Example: augury verify humanoid/rotate --environment humanoid-paper
    """

    augmentation: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AUGMENTATION")]
    """Name of an augmentation (see `augury list`), or one of your own as module:name."""
    environment: str | None = None
    """Where to verify it: a name, or your own as module:name. By default the augmentation's own."""
    samples: int = 10_000
    """Transitions to verify."""
    tolerance: float | None = None
    """Largest error of a valid transition; by default 1e-8, or 1e-5 where 32 bits are observed."""
    seed: int = 0
    """Seed of what is collected and augmented."""
    data: Path | None = None
    """An .npz file of recorded transitions, to be verified instead of new ones."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        with Console(stderr=True).status("asking the simulator"):
            report = verify(
                self.augmentation,
                self.environment,
                samples=self.samples,
                tolerance=self.tolerance,
                seed=self.seed,
                data=self.data,
            )
        if self.json:
            print(json.dumps(report.as_json(), indent=2))
        else:
            console.print(tables.verification(report))
        if not report.valid:
            raise SystemExit(EXIT_CODES[report.verdict])


@dataclass(frozen=True)
class Show:
    """Draw observed transitions beside the augmented ones an augmentation makes of them.

    Example: augury show 'goal2d/translate-proximal(0.5)' --out proximal.png
    """

    augmentation: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AUGMENTATION")]
    """Name of an augmentation, parameters in brackets (see `augury list`), or your own as module:name."""
    environment: str | None = None
    """Where its transitions are from: a name, or your own as module:name. By default the augmentation's."""
    out: Path | None = None
    """The PNG to write; by default named after the augmentation."""
    seed: int = 0
    """Seed of what is drawn."""

    def run(self) -> None:
        path = self.out or Path(f"{slug(self.augmentation)}.png")
        show.draw_augmentation(self.augmentation, path, self.environment, seed=self.seed)
        print(f"picture in {path}")
