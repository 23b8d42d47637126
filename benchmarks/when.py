"""When does augmentation help? The table of trained arms, put together by what is thought to decide it.

    python benchmarks/when.py results/advice/table.csv [--figure docs/when.png]

Prints the worth of augmentations as a multiple of policy data: geometric means over arms, with the number of
arms, and the share whose gain over none is decided and positive, or decided and negative. Then what the paper
claims, as pairs of arms that differ in one thing: the ratio of their worths with its 90% interval over tasks,
and the share of pairs in which the first is worth more. With --figure it draws the first.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from augury.advise import table
from augury.advise.table import Row
from augury.report.figures import COLOURS

FEWEST_TASKS = 3
"""Of which an interval over tasks says something."""
RIGHT = ("exact", "coverage-only", "reward-only")
KINDS = {
    "reward-only": "adds\nreward",
    "coverage-only": "adds\ncoverage\nalone",
    "exact": "other\nexact ones",
    "useless": "copies\nof what was\nobserved",
    "slightly-wrong": "slightly\nwrong",
    "badly-wrong": "badly\nwrong",
}
ARM = {"augmentation", "ratio", "update_ratio"}
COMPARED: tuple[tuple[str, str, tuple[tuple[Any, Any], ...]], ...] = (
    ("ratio", "m", ((4, 1),)),
    ("update_ratio", "α", ((4, 1), (1, 0.25))),
    ("replay_ratio", "updates a step", ((0.25, 0.5), (1, 0.5), (2, 0.5))),
    ("steps", "steps", ((24_000, 8_000),)),
    ("algorithm", "learner", (("ddpg", "td3"), ("sac", "td3"))),
)
"""Settings, what they are called, and the pairs of their values."""
WORTHS = (0.125, 0.25, 0.5, 1, 2, 4, 8)
SIZES = (0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
MIRRORS = re.compile(r"family/(reflect|permute)(\(error=[\d.]+\))?$")
"""Augmentations that were made wrong by a known amount, and the same ones right."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--figure", type=Path, help="a PNG")
    asked = parser.parse_args()
    rows = [row for row in table.read(asked.table) if row.worth is not None]
    plain = [row for row in rows if (row.ratio, row.update_ratio) == (1, 1)]
    right = [row for row in rows if row.truth in RIGHT]
    show("what it is (m = α = 1)", plain, lambda row: row.truth)
    show("right ones (m = α = 1)", [row for row in plain if row.truth in RIGHT], lambda row: row.family)
    grid = settings(right)
    show("right ones: m, α", grid, lambda row: f"{row.ratio:g}, {row.update_ratio:g}")
    show(
        "error of the next observation",
        mirrors(rows),
        lambda row: f"α = {row.update_ratio:g}, {row.steps:,} steps, error {row.error:g}",
    )
    show(
        "error of the reward (m = α = 1)",
        [row for row in plain if "(reward_error=" in row.augmentation],
        lambda row: f"{row.error:g}",
    )
    show("wind: reflections along it", winds(plain), lambda row: knob(row.task, "wind"))
    moved = [
        row for row in rows if (row.signals.get("invalid") or 0) > 0.5 and not row.signals["reward_error"]
    ]
    for weight in (1, 4):
        show(
            f"error, as a share of what a step changes, in every copy (α = {weight})",
            [row for row in moved if row.update_ratio == weight],
            lambda row: size(row.signals.get("relative_error") or 0),
        )
    claims(rows)
    correlations(rows)
    if asked.figure:
        draw(rows).savefig(asked.figure, dpi=150)


def show(title: str, rows: Sequence[Row], key: Callable[[Row], Any]) -> None:
    """A table of arms that share a key."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    print(f"\n| {title} | arms | worth | helps | hurts |\n|---|---:|---:|---:|---:|")
    for name, found in sorted(groups.items(), key=lambda item: str(item[0])):
        helps, hurts = helping(found)
        print(f"| {name} | {len(found)} | {worth_of(found):.2f} | {helps:.0%} | {hurts:.0%} |")


def worth_of(rows: Sequence[Row]) -> float:
    """The geometric mean."""
    return float(2 ** np.mean([log_worth(row) for row in rows]))


def log_worth(row: Row) -> float:
    """log2 of the worth."""
    assert row.worth is not None
    return float(np.log2(row.worth))


def helping(rows: Sequence[Row]) -> tuple[float, float]:
    """Shares of arms whose gain is decided: those that gain, and those that lose."""
    return float(np.mean([row.gain_low > 0 for row in rows])), float(
        np.mean([row.gain_high < 0 for row in rows])
    )


def settings(right: Sequence[Row]) -> list[Row]:
    """Arms of augmentations that were trained with several α."""
    varied = {(row.setting, row.augmentation) for row in right if row.update_ratio != 1}
    return [row for row in right if (row.setting, row.augmentation) in varied]


def mirrors(rows: Sequence[Row]) -> list[Row]:
    """Mirror images with and without a known error, where nothing else is wrong with them."""
    return [
        row for row in rows if MIRRORS.match(row.augmentation) and "wind" not in row.task and row.ratio == 1
    ]


def winds(plain: Sequence[Row]) -> list[Row]:
    """Reflections along the wind, right but for it, where the wind is all that differs from the default."""
    return [
        row
        for row in plain
        if row.augmentation == "family/reflect" and re.fullmatch(r"family/\w+(\(wind=[\d.]+\))?", row.task)
    ]


def size(error: float) -> str:
    """The range that an error is in."""
    place = int(np.digitize(error, SIZES))
    return f"{SIZES[place - 1]:g} to {SIZES[place]:g}" if place < len(SIZES) else f"{SIZES[-1]:g} and more"


def knob(task: str, name: str) -> str:
    """The value of a knob in a task's name."""
    found = re.search(rf"\b{name}=([\d.]+)", task)
    return found[1] if found else "0"


def claims(rows: Sequence[Row]) -> None:
    """What the paper says of its five tasks, on all of these."""
    exact = [row for row in rows if row.truth in RIGHT]
    print("\n| first against second | pairs | ratio of worths | first worth more |\n|---|---:|---:|---:|")
    compare("relabel against copies of what was observed", rows, named("relabel"), named("identity"))
    compare("reflect against copies (no wind)", rows, still(named("reflect")), named("identity"))
    compare("coverage alone against copies", rows, named("move-agent"), named("identity"))
    compare("coverage alone against new goals", rows, named("move-agent"), named("relabel"))
    compare("much reward (p = 0.5) against new goals", rows, named("relabel-near"), named("relabel"))
    for name, called, pairs in COMPARED:
        for first, second in pairs:
            says = f"{called}: {first} against {second}"
            compare(says, exact, having(name, first), having(name, second), [*ARM - {name}], apart=name)


def named(name: str) -> Callable[[Row], bool]:
    """Arms with this augmentation."""
    return lambda row: row.augmentation == f"family/{name}"


def still(chosen: Callable[[Row], bool]) -> Callable[[Row], bool]:
    """The same, where no wind blows."""
    return lambda row: chosen(row) and "wind" not in row.task


def having(setting: str, value: Any) -> Callable[[Row], bool]:
    """Arms with this value."""
    return lambda row: getattr(row, setting) == value


def compare(
    says: str,
    rows: Sequence[Row],
    first: Callable[[Row], bool],
    second: Callable[[Row], bool],
    same: Sequence[str] = ("ratio", "update_ratio"),
    apart: str = "",
) -> None:
    """A line: pairs of arms of one task that share these settings, overall and family by family.

    They share all else that arms are compared in, but for what sets them apart.
    """

    def key(row: Row) -> tuple[Any, ...]:
        shared = (value for name, value in row.setting._asdict().items() if name != apart)
        return (*shared, *(getattr(row, name) for name in same))

    others = {key(row): row for row in rows if second(row)}
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if first(row) and (other := others.get(key(row))):
            found[row.family][row.task + row.algorithm].append(log_worth(row) - log_worth(other))
    every = {task: values for tasks in found.values() for task, values in tasks.items()}
    if not every:
        return
    print(f"| {says} | {_pairs(every)} |")
    for family, tasks in sorted(found.items()):
        print(f"| … {family} | {_pairs(tasks)} |")


def _pairs(tasks: Mapping[str, Sequence[float]]) -> str:
    """Cells: pairs, the ratio with its interval (tasks drawn again), the share above 1.

    Of few tasks an interval would say nothing.
    """
    values = list(tasks.values())
    generator = np.random.default_rng(0)
    drawn = [
        np.mean(
            np.concatenate([values[place] for place in generator.integers(len(values), size=len(values))])
        )
        for _ in range(2_000)
    ]
    every = np.concatenate(values)
    middle, low, high = 2 ** np.array([every.mean(), *np.quantile(drawn, [0.05, 0.95])])
    interval = f" [{low:.2f}, {high:.2f}]" if len(values) >= FEWEST_TASKS else ""
    return f"{len(every)} | {middle:.2f}{interval} | {(every > 0).mean():.0%}"


def correlations(rows: Sequence[Row]) -> None:
    """How each signal alone ranks the worths."""
    print("\n| signal | Spearman's rank correlation with the worth |\n|---|---:|")
    for name in sorted({name for row in rows for name in row.signals}):
        pairs = np.array([(value, row.worth) for row in rows if (value := row.signals.get(name)) is not None])
        if len(pairs) > 2 and np.ptp(pairs[:, 0]) > 0:
            print(f"| {name} | {spearmanr(*pairs.T).statistic:.2f} |")


def draw(rows: Sequence[Row]) -> Figure:
    """Kinds of augmentations, m and α, and how wrong it may be."""
    figure = Figure(figsize=(14, 4.4), layout="constrained")
    kinds, much, wrong = figure.subplots(1, 3, sharey=True, width_ratios=(2, 1, 1))
    families = sorted({row.family for row in rows})
    generator = np.random.default_rng(0)
    for place, kind in enumerate(KINDS):
        found = [row for row in rows if row.truth == kind and (row.ratio, row.update_ratio) == (1, 1)]
        for family in families:
            own = [log_worth(row) for row in found if row.family == family]
            kinds.scatter(
                place + generator.uniform(-0.3, 0.3, len(own)),
                own,
                s=9,
                color=COLOURS[families.index(family) % len(COLOURS)],
                label=family if kind == "exact" else None,
            )
        if found:
            kinds.hlines(np.log2(worth_of(found)), place - 0.4, place + 0.4, color="black", linewidth=2)
    kinds.set_xticks(range(len(KINDS)), KINDS.values())
    kinds.set_title("what it adds (m = α = 1)")
    kinds.set_yticks(np.log2(WORTHS), [f"{worth:g}" for worth in WORTHS])
    kinds.set_ylabel("worth, in multiples of policy data")
    grid = settings([row for row in rows if row.truth in RIGHT])
    for colour, m in enumerate(sorted({row.ratio for row in grid})):
        alphas = sorted({row.update_ratio for row in grid if row.ratio == m})
        worths = [
            np.log2(worth_of([r for r in grid if r.ratio == m and r.update_ratio == a])) for a in alphas
        ]
        much.plot(np.log2(alphas), worths, "o-", color=COLOURS[colour], label=f"m = {m:g}")
    much.set_xticks([-2, 0, 2], ["0.25", "1", "4"])
    much.set_xlabel("update ratio α")
    much.set_title("how much of a right one")
    much.legend(frameon=False)
    lines: dict[tuple[float, int], dict[float, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in mirrors(rows):
        if row.family != "goal2d" and row.algorithm != "sac":
            lines[row.update_ratio, row.steps][row.error].append(row)
    for colour, ((weight, steps), errors) in enumerate(sorted(lines.items())):
        if len(errors) > 1:
            worths = [np.log2(worth_of(errors[error])) for error in sorted(errors)]
            label = f"α = {weight:g}, {steps:,} steps"
            wrong.plot(np.sqrt(sorted(errors)), worths, "o-", color=COLOURS[colour], label=label)
    ticks = (0, 0.02, 0.1, 0.5)
    wrong.set_xticks(np.sqrt(ticks), [f"{tick:g}" for tick in ticks])
    wrong.set_xlabel("error of a number between -1 and 1")
    wrong.set_title("how wrong a mirror may be")
    wrong.legend(frameon=False)
    for axes in (kinds, much, wrong):
        axes.axhline(0, color="grey", linewidth=0.8, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*kinds.get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False)
    return figure


if __name__ == "__main__":
    main()
