"""Learning curves of the Panda tasks: arms of one task, side by side.

python benchmarks/manipulation.py panda-push none panda/translate-goal:8:1 --agents 6 --out results/panda-push

An arm is an augmentation, its ratio m and its update ratio α. Those that share a program train in one fleet.
A run that was stopped goes on from its checkpoint when the same command is given again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from augury.fleet import Arm, Interrupted, resolved, train_fleet, use_all_cores
from augury.fleet.building import fleets_of
from augury.fleet.training import Progress
from augury.runs import results


def main(
    environment: Annotated[str, tyro.conf.Positional],
    arms: Annotated[tuple[str, ...], tyro.conf.Positional],
    out: Path,
    agents: int = 6,
    environments: int = 8,
    steps: int | None = None,
    evaluate_every: int = 20_000,
    as_ratio_figures: bool = False,
) -> None:
    """Train the arms of a task and write each one's results into a folder of its own.

    Args:
        environment: The task.
        arms: none, or augmentation:m:α.
        out: Where the results go.
        agents: Of each arm.
        environments: Of each agent.
        steps: Of each agent; by default the paper's.
        evaluate_every: Steps between evaluations.
        as_ratio_figures: As in the paper's replay-ratio figures: no random actions, an update a step.
    """
    use_all_cores()
    asked = [read(arm) for arm in arms]
    shared: dict[str, Any] = {
        "agents": agents,
        "environments": environments,
        "evaluate_every": evaluate_every,
    }
    shared |= {} if steps is None else {"steps": steps}
    if as_ratio_figures:
        shared |= {"random_action_probability": 0.0, "collect": 1, "updates": 1}
    settings = [resolved(Arm(environment=environment, **shared, **own)) for own in asked]
    out.mkdir(parents=True, exist_ok=True)
    for number, places in enumerate(fleets_of(settings)):
        fleet = [settings[place] for place in places]
        checkpoint = out / f"fleet-{number}.checkpoint"

        def show(progress: Progress, places: list[int] = places) -> None:
            if progress.evaluated is not None:
                by_arm = progress.evaluated.success.reshape(len(places), agents)
                means = "  ".join(
                    f"{arms[place]} {success.mean():.2f}"
                    for place, success in zip(places, by_arm, strict=True)
                )
                print(f"{progress.steps:9,d}  {progress.speed or 0:7,.0f} agent-steps/s  {means}", flush=True)

        try:
            finished = train_fleet(fleet, checkpoint=checkpoint, watch=show)
        except Interrupted as stop:
            raise SystemExit(f"{stop}: give the same command again to go on") from None
        for place, result in zip(places, finished, strict=True):
            folder = out / arms[place].replace("/", "-").replace(":", "_")
            folder.mkdir(exist_ok=True)
            results.write(folder, result)
        checkpoint.unlink(missing_ok=True)


def read(arm: str) -> dict[str, Any]:
    """An arm's own settings."""
    if arm == "none":
        return {}
    augmentation, ratio, update_ratio = arm.rsplit(":", 2)
    return {"augmentation": augmentation, "ratio": float(ratio), "update_ratio": float(update_ratio)}


if __name__ == "__main__":
    tyro.cli(main)
