"""Results as plain files: `run.json` holds the settings, `evaluations.npz` the measurements.

`policies.safetensors` holds what was learnt: the parameters of every agent's policy.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from augury.envs import ENVIRONMENTS
from augury.envs.base import Measure
from augury.errors import UserError
from augury.files import replacing
from augury.runs import arrays
from augury.runs.arrays import Arrays

RUN = "run.json"
EVALUATIONS = "evaluations.npz"
POLICIES = "policies.safetensors"
RESTARTS = "restarts"
"""In `run.json`, of a run that was resumed: after which steps its episodes began anew."""


@dataclass(frozen=True)
class Result:
    """One arm's outcome."""

    asked: dict[str, Any]
    """The arm's settings."""
    evaluations: Arrays
    """`steps`, `updates`, `transitions` (evaluations,); `seeds` (agents,); others (agents, evaluations)."""
    seconds: float = 0.0
    """Wall time of the fleet the arm was trained in, compilation included."""
    about: dict[str, Any] = field(default_factory=dict)
    """What the curves show, versions, hardware, time."""
    actors: Any = None
    """Parameters of the policies in the end, agents first; not read back (see `load_policies`)."""

    @property
    def label(self) -> str:
        """A short name for tables and legends."""
        asked = self.asked
        words = [] if asked["algorithm"] == "td3" else [asked["algorithm"].upper()]
        if asked["policy_data"] > 1:
            words.append(f"×{asked['policy_data']:.3g} policy data")
        if asked["augmentation"] is not None and asked["ratio"] != 0:
            name = re.split("[/:]", asked["augmentation"])[-1]
            words.append(f"{name} m={float(asked['ratio']):g} α={asked['update_ratio']:g}")
        elif asked["policy_data"] == 1:
            words.append("no augmentation")
        if asked.get("environments", 1) > 1:
            words.append(f"k={asked['environments']}")
        return " ".join(words)

    @property
    def diverged(self) -> dict[int, int]:
        """Seeds of agents whose parameters became non-finite, and the step at which that was seen."""
        lost = self.evaluations["diverged"]
        return {
            int(seed): int(self.evaluations["steps"][row.argmax()])
            for seed, row in zip(self.evaluations["seeds"], lost, strict=True)
            if row.any()
        }

    @property
    def measure(self) -> Measure:
        """What its learning curves show."""
        recorded: Measure | None = self.about.get("measure")
        return recorded or _measure_before_it_was_recorded(self.asked["environment"])

    @property
    def restarts(self) -> str:
        """Where the run was resumed without going on exactly, in words; mostly empty."""
        steps = " and ".join(f"{step:,}" for step in self.about.get(RESTARTS, ()))
        return f"resumed at step {steps}: episodes began anew" if steps else ""

    def curves(self, name: str | None = None) -> np.ndarray[Any, Any]:
        """A quantity as (agents, evaluations); by default what the environment is measured by."""
        return self.evaluations[name or self.measure]

    def mean_at_the_end(self, name: str) -> float:
        """Of a quantity at the last evaluation, over the agents for which it is known; NaN if for none."""
        last = self.evaluations.get(name, np.full((1, 1), np.nan))[:, -1]
        known = last[np.isfinite(last)]
        return float(known.mean()) if known.size else math.nan


def _measure_before_it_was_recorded(environment: str) -> Measure:
    """What runs of older versions show: runs outlive environments, so success if theirs is unknown."""
    return ENVIRONMENTS[environment].measure if environment in ENVIRONMENTS else "success"


WORDS: dict[Measure, str] = {"success": "success", "returns": "return"}
"""What one number of a learning curve is called."""


def score(measure: Measure, value: float) -> str:
    """A number on a learning curve, as tables and progress show it."""
    return f"{value:.2f}" if measure == "success" else f"{value:,.0f}"


def rounded(value: Any, digits: int) -> float | None:
    """A number for JSON, which has finite ones only."""
    return round(float(value), digits) if np.isfinite(value) else None


def write_run(folder: Path, asked: dict[str, Any], **about: Any) -> None:
    """Write `run.json`."""
    with replacing(folder / RUN) as temporary:
        temporary.write_text(json.dumps({"asked": asked, **about}, indent=2) + "\n")


def write(folder: Path, result: Result) -> None:
    """Write a finished arm: first what was learnt and measured, then the file that says it is finished."""
    if result.actors is not None:
        learnt = {name: np.ascontiguousarray(leaf) for name, leaf in arrays.named(result.actors).items()}
        arrays.save(folder / POLICIES, learnt, {})
    with replacing(folder / EVALUATIONS) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **result.evaluations)  # type: ignore[arg-type]
    write_run(folder, result.asked, seconds=round(result.seconds, 1), **result.about)


def read_run(folder: Path) -> dict[str, Any]:
    """Read `run.json`."""
    path = folder / RUN
    try:
        run = json.loads(path.read_text())
        return run if isinstance(run, dict) and "asked" in run else _damaged(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except ValueError:
        return _damaged(path)


def read(folder: Path) -> Result:
    """Read a finished arm back."""
    about = read_run(folder)
    path = folder / EVALUATIONS
    if not path.exists():
        raise UserError(f"{folder} holds no finished run: {EVALUATIONS} is missing")
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            evaluations = {name: file[name] for name in file.files}
    except Exception as error:  # zipfile, zlib and NumPy each raise their own
        raise UserError(f"{path} is damaged ({type(error).__name__})") from error
    return Result(about.pop("asked"), evaluations, about.pop("seconds", 0.0), about)


def _damaged(path: Path) -> Any:
    raise UserError(f"{path} is damaged: it is not the record of a run")
