"""Advice as people see it: a card for each augmentation, on a terminal and on a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from augury.advise.advice import Advice, Verdict
from augury.advise.fitting import MOST
from augury.advise.reasons import percent
from augury.advise.spread import Spread
from augury.files import replacing
from augury.report.page.writing import beside

WORDS: dict[Verdict, str] = {
    "helps": "it helps",
    "does not help": "it does not help",
    "undecided": "undecided: train it beside an arm without, with --race",
    "wrong": "it is wrong: the simulator disagrees with most of its transitions",
    "not known": "not known: nothing is predicted",
}
COLOURS: dict[Verdict, str] = {
    "helps": "bold green",
    "does not help": "bold red",
    "undecided": "bold yellow",
    "wrong": "bold red",
    "not known": "bold yellow",
}
CLASSES: dict[Verdict, str] = {
    "helps": "supported",
    "does not help": "contradicted",
    "undecided": "undecided",
    "wrong": "contradicted",
    "not known": "undecided",
}
"""Of the page's verdicts, for their colours."""


def cards(found: Sequence[Advice]) -> RenderableType:
    """A card for each augmentation, for a terminal."""
    parts: list[RenderableType] = []
    for advice in found:
        facts = Table(box=None, show_header=False, pad_edge=True)
        facts.add_column(no_wrap=True)
        facts.add_column()
        facts.add_row("verdict", Text(WORDS[advice.verdict], COLOURS[advice.verdict]))
        for name, said in facts_of(advice):
            facts.add_row(name, said)
        parts += [Text(f"{advice.augmentation} on {advice.environment}", "bold"), facts]
    return Group(*parts)


def _times(worth: float) -> str:
    """A multiple; the largest that was measured may be more."""
    return f"{worth:.2g}" + ("+" if worth >= 2**MOST else "")


def facts_of(advice: Advice) -> list[tuple[str, str]]:
    """What a card says below its verdict, in its order."""
    facts = [("valid", _validity(advice.signals.get("invalid")))]
    if advice.verdict == "wrong":
        pass  # what it would be worth to learn something false is no advice
    elif (worth := advice.prediction.worth) is not None:
        middle, low, high = map(_times, worth)
        facts.append(
            ("worth", f"{middle} [{low}, {high}] times the policy's own data, for {advice.steps:,} steps")
        )
        facts.append(
            ("", f"copies that change nothing: {advice.prediction.batch:.2g}, since batches are larger")
        )
        facts.append(("begin with", f"m = {advice.ratio:g}, α = {advice.update_ratio:g}"))
    else:
        facts.append(("worth", advice.prediction.outside))
    facts += [("because" if place == 0 else "", said) for place, said in enumerate(advice.reasons)]
    return facts + [("note" if place == 0 else "", said) for place, said in enumerate(advice.notes)]


def write_advice(path: Path, found: Sequence[Advice]) -> None:
    """Write the page: a card for each augmentation, beside where its data lies."""
    template = Environment(
        loader=PackageLoader("augury.report.page", ""), autoescape=True, undefined=StrictUndefined
    ).get_template("advice.html")
    shown = [
        {
            "augmentation": advice.augmentation,
            "verdict": WORDS[advice.verdict],
            "class": CLASSES[advice.verdict],
            "facts": facts_of(advice),
            "picture": None if advice.spread is None else _data_url(advice.spread),
        }
        for advice in found
    ]
    page = template.render(environment=found[0].environment, cards=shown, css=beside("page.css"))
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def draw(spread: Spread) -> Figure:
    """Where augmented data lies against observed data and evaluated states, in the plane of most variance."""
    figure = Figure(figsize=(5.4, 4.2), layout="constrained")
    axes: Any = figure.subplots()
    for points, colour, size, label in (
        (spread.augmented, "#e69f00", 7, "augmented"),
        (spread.observed, "#0072b2", 7, "observed"),
        (spread.evaluated, "#000000", 16, "evaluated"),
    ):
        marker = "x" if label == "evaluated" else "o"
        thin = {"linewidths": 0.8} if marker == "x" else {"linewidths": 0, "alpha": 0.55}
        axes.scatter(*points.T, s=size, c=colour, marker=marker, label=label, **thin)
    low, high = np.quantile(np.concatenate(spread), [0.005, 0.995], axis=0)
    room = np.where(high > low, 0.08 * (high - low), 1.0)  # states of one number lie on a line
    axes.set(xlim=(low[0] - room[0], high[0] + room[0]), ylim=(low[1] - room[1], high[1] + room[1]))
    axes.set_xlabel("states, along the direction of most variance")
    axes.set_ylabel("along the next")
    axes.tick_params(labelbottom=False, labelleft=False, length=0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, markerscale=1.6)
    return figure


def _data_url(spread: Spread) -> Markup:
    drawn = io.BytesIO()
    draw(spread).savefig(drawn, format="png", dpi=150)
    return Markup("data:image/png;base64," + base64.b64encode(drawn.getvalue()).decode())


def _validity(invalid: float | None) -> str:
    if invalid is None:
        return "not known"
    if invalid == 0:
        return "yes: the simulator agrees with all that it was asked about"
    return f"no: the simulator disagrees with {percent(invalid)} of what it was asked about"
