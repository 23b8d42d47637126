"""The page itself: text by a template, curves by a script; both treat a study's words as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from augury.files import replacing
from augury.report.figures import AXES, COLOURS
from augury.report.page import arms, claims, curves, origin
from augury.study.record import Record


def write_page(records: Sequence[Record], path: Path) -> None:
    """Write the report of some studies."""
    page = render(records)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render(records: Sequence[Record]) -> str:
    """The page as text; the same studies give the same."""
    environment = Environment(
        loader=PackageLoader(__package__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    studies = [_study(number, record) for number, record in enumerate(records, 1)]
    return environment.get_template("page.html").render(
        title=studies[0]["title"] if len(studies) == 1 else f"{len(studies)} studies",
        studies=studies,
        wall_time=origin.wall_time(one for record in records for one in record.finished),
        colours=COLOURS,
        columns=arms.COLUMNS,
        axes=AXES,
        statistics=curves.STATISTICS,
        data={
            "axes": AXES,
            "statistics": curves.STATISTICS,
            "studies": [_drawn(study["id"], record) for study, record in zip(studies, records, strict=True)],
        },
        css=beside("page.css"),
        javascript=beside("page.js"),
        plotly=Markup(get_plotlyjs()),
    )


def beside(name: str) -> Markup:
    """A file of this folder, to be put into a page as it is."""
    return Markup(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _study(number: int, record: Record) -> dict[str, Any]:
    """What the template says of a study."""
    shown = claims.claims(record)
    return {
        "id": f"study-{number}",
        "name": record.name,
        "title": record.title,
        "about": record.about,
        "figure": record.figure,
        "x_axis": record.x_axis,
        "absent": arms.absent(record),
        "tasks": {task: bool(record.on(task)) for task in record.tasks},
        "legend": curves.legend(record),
        "claims": shown,
        "counts": claims.counts(shown),
        "table": arms.table(record),
        "command": record.command,
        "facts": origin.facts(record),
    }


def _drawn(place: str, record: Record) -> dict[str, Any]:
    """What the script draws of it."""
    return {
        "id": place,
        "axis": record.x_axis,
        "legend": {entry.place: entry._asdict() for entry in curves.legend(record)},
        "panels": curves.panels(record),
    }
