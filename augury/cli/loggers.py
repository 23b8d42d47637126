"""A run's evaluations, sent to TensorBoard or Weights & Biases as they are made.

Both get what `evaluations.npz` will hold, under its names: `success/iqm` is the interquartile mean over the
agents, `success/seed-3` one agent's value. A resumed run repeats the evaluations since its last checkpoint,
with the same results: TensorBoard discards the earlier ones, Weights & Biases is not sent the later ones.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from augury.errors import UserError
from augury.fleet import Arm
from augury.fleet.training import Progress, Watcher, evaluations_of
from augury.runs import results
from augury.runs.arrays import Arrays
from augury.runs.scores import interquartile_mean


class Logger(Protocol):
    """Where numbers go."""

    def log(self, steps: int, scalars: dict[str, float]) -> None:
        """Take the numbers of an evaluation."""

    def close(self) -> None:
        """Write what is left."""


class TensorBoard:
    """One event file in a folder."""

    def __init__(self, folder: Path) -> None:
        try:
            import tensorboardX
        except ImportError as error:
            raise UserError("--tensorboard needs tensorboardX: pip install 'augury[tensorboard]'") from error
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error.strerror}") from error
        self._folder, self._writer_in = folder, tensorboardX.SummaryWriter
        self._writer: Any = None

    def log(self, steps: int, scalars: dict[str, float]) -> None:
        if self._writer is None:  # whatever an interrupted run logged from here on is discarded
            self._writer = self._writer_in(
                str(self._folder), purge_step=steps, filename_suffix=f".from-{steps}"
            )
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, steps)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class WeightsAndBiases:
    """A run of a project; WANDB_MODE=offline keeps it on this machine."""

    def __init__(self, project: str, folder: Path, settings: dict[str, Any]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise UserError("--wandb needs wandb: pip install 'augury[wandb]'") from error
        self._run = wandb.init(
            project=project,
            name=folder.name,
            id=_wandb_id(folder),
            resume="allow",
            config=settings,
            settings=wandb.Settings(console="off", silent=True),
        )

    def log(self, steps: int, scalars: dict[str, float]) -> None:
        if steps >= self._run.starting_step:
            self._run.log(scalars, step=steps)

    def close(self) -> None:
        self._run.finish()


@contextmanager
def watching(arm: Arm, folder: Path, *, tensorboard: Path | None, wandb: str | None) -> Iterator[Watcher]:
    """What is to be called with a run's progress, for the loggers that are asked for."""
    with ExitStack() as held:
        loggers: list[Logger] = []
        if tensorboard is not None:
            loggers.append(TensorBoard(tensorboard / folder.name))
        if wandb is not None:
            loggers.append(WeightsAndBiases(wandb, folder, arm.described()))
        for logger in loggers:
            held.callback(logger.close)

        def watch(standing: Progress) -> None:
            if loggers and standing.evaluated is not None:
                scalars = newest(evaluations_of(arm, standing.history))
                for logger in loggers:
                    logger.log(standing.steps, scalars)

        yield watch


def newest(evaluations: Arrays) -> dict[str, float]:
    """The numbers of the last evaluation. What is not known, such as β without augmentation, is left out."""
    found = {name: float(evaluations[name][-1]) for name in ("updates", "transitions")}
    for name, values in evaluations.items():
        if values.ndim == 2:
            last = values[:, -1].astype(float)
            if values.dtype == bool:
                found[f"{name}/share"] = float(last.mean())
            else:
                found[f"{name}/iqm"] = float(interquartile_mean(last))
            found |= {
                f"{name}/seed-{seed}": value
                for seed, value in zip(evaluations["seeds"], last.tolist(), strict=True)
            }
    return {name: value for name, value in found.items() if np.isfinite(value)}


def _wandb_id(folder: Path) -> str:
    """The name under which a run goes on after a resume, kept in its `run.json`."""
    record = results.read_run(folder)
    name: str = record.setdefault("wandb", secrets.token_hex(4))
    results.write_run(folder, **record)
    return name
