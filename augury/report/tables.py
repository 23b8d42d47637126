"""Tables for a terminal: what the verifier and the audit of a model found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from augury.symmetry import AffineMap, Finding, Reflection, Simulated, Symmetrised, shown
from augury.symmetry.simulate import BEYOND
from augury.verify import Audit, Report
from augury.verify.reports import ANSWERS_BY_CHANCE

MOST_ROWS = 8


def verification(report: Report) -> RenderableType:
    """A verdict, and where transitions are wrong."""
    low, high = report.interval
    verdict = Text("valid", "bold green") if report.valid else Text(report.verdict.upper(), "bold red")
    facts = _plain_table()
    facts.add_row("verdict", verdict)
    facts.add_row(
        "invalid",
        f"{report.invalid:,} of {report.samples:,} at {report.tolerance:g}, "
        f"{report.invalid / report.samples:.2%}",
    )
    facts.add_row("95% interval", f"{low:.2%} to {high:.2%}, over {report.episodes:,} episodes")
    facts.add_row(
        "largest error",
        f"{report.largest_error:.2g} (repeating what was observed: {report.repeating_error:.2g})",
    )
    if report.set_aside:
        hint = report.would_repeat
        advice = "" if hint is None else f"; nearly all with --tolerance {hint:g}"
        own = report.set_aside - report.by_chance
        facts.add_row("set aside", f"{own:,} that the environment cannot repeat itself{advice}")
    if report.by_chance:
        facts.add_row("", f"{report.by_chance:,} where it {ANSWERS_BY_CHANCE}")
    if (contact := report.contact) is not None:
        facts.add_row(
            "in contact",
            f"{contact.touching / report.samples:.0%}; invalid {contact.invalid_touching:,} of "
            f"{contact.touching:,} in contact, {contact.invalid_free:,} of {contact.free:,} free",
        )
    if report.outside:
        most = ", ".join(f"{one.name} ({one.transitions:,})" for one in report.outside[:3])
        facts.add_row("outside the space", f"{report.outside_space:,}: {most}")
    if report.outside_goals:
        facts.add_row("warning", f"{report.outside_goals:,} have goals that the task never sets")
    if report.unseen:
        facts.add_row("never seen", f"{', '.join(report.unseen)}: a policy that gets there would show it")
    if report.cause is not None:
        facts.add_row("likely cause", Text(report.cause, "bold"))
    elif report.description is not None:
        facts.add_row("what is wrong", report.description)
    parts: list[RenderableType] = [Text(f"{report.augmentation} on {report.environment}", "bold"), facts]
    if report.dimensions:
        dimensions = Table("wrong in", box=None, header_style="bold")
        dimensions.add_column("transitions", justify="right")
        dimensions.add_column("largest error", justify="right")
        for one in report.dimensions[:MOST_ROWS]:
            dimensions.add_row(one.name, f"{one.invalid:,}", f"{one.largest_error:.2g}")
        more = len(report.dimensions) - MOST_ROWS
        worst = Table("worst", "in", box=None, header_style="bold")
        worst.add_column("claimed", justify="right")
        worst.add_column("simulated", justify="right")
        for offender in report.worst:
            worst.add_row(
                f"transition {offender.index}",
                offender.dimension,
                f"{offender.claimed:.6g}",
                f"{offender.simulated:.6g}",
            )
        parts += [dimensions, *([Text(f" and {more} more")] if more > 0 else []), worst]
    return Group(*parts)


_SHOWN_CONTACTS = 3


def mirror_map(audit: Audit) -> RenderableType:
    """Which number of an observation, with which sign, is each number of its mirror image."""
    table = Table("", "mirrored", "is", "", "of", box=None, header_style="bold")
    _add_map(table, "", audit.observation, [quantity.name for quantity in audit.table])
    _add_map(table, "action ", audit.reflection.ctrl, list(audit.reflection.pairs["actuator"]))
    return table


def _add_map(table: Table, prefix: str, given: AffineMap, names: list[str]) -> None:
    for place, row in enumerate(given.matrix):
        sources = row.nonzero()[0].tolist()
        factor = " ".join({1.0: "+", -1.0: "-"}.get(row[source], f"{row[source]:.4g}") for source in sources)
        source = "itself" if sources == [place] else ", ".join(names[source] for source in sources)
        source += f" {given.offset[place]:+.6g}" if given.offset[place] else ""
        numbers = ",".join(f"{prefix}{source}" for source in sources)
        table.add_row(f"{prefix}{place}", names[place], factor, numbers, source)


def audited(audit: Audit) -> RenderableType:
    """What breaks a model's symmetries."""
    mirror = audit.reflection
    parts: list[RenderableType] = [
        Text(f"{audit.name}, reflected through the plane with {mirror.plane}", "bold"),
        *_about_mirror(mirror),
        _findings(mirror.findings, "nothing breaks the reflection"),
        _simulated(audit.simulated),
        *(Text(f" not compared: {what}") for what in mirror.not_compared),
        _verdict(audit),
    ]
    if audit.simulated_rotation is not None:
        parts += [
            Text(f"{audit.name}, rotated about the vertical", "bold"),
            _findings(audit.rotation_findings, "nothing breaks the rotation"),
            _simulated(audit.simulated_rotation),
        ]
    return Group(*parts)


def _about_mirror(mirror: Reflection) -> list[Text]:
    """What a reader should know of a mirror before what breaks it."""
    lines = []
    if mirror.changes_nothing:
        lines.append(Text(" this mirror changes nothing: every state and control is its own image", "yellow"))
    for kind, names in mirror.left_out.items():
        lines.append(Text(f" left unchanged, and not compared: {kind}s {', '.join(names)}", "yellow"))
    return lines


def symmetrised(done: Symmetrised) -> RenderableType:
    """What was changed to make a model symmetric."""
    if not done.changes:
        return Text(" it is symmetric already: nothing was changed", "green")
    table = Table(
        "made symmetric", "of", "was", "its image", "was", "apart by", box=None, header_style="bold"
    )
    for one in done.changes:
        itself = one.first == one.second
        second = ("itself", "") if itself else (one.second, _short(one.second_value))
        table.add_row(one.parameter, one.first, _short(one.first_value), *second, one.difference)
    return table


def _simulated(found: Simulated | None) -> RenderableType:
    if found is None:
        return Text(" not simulated: what is left unchanged still moves the part that is mirrored")
    step = found.step
    lines = [
        f" in one step from {found.states} states it was off by {step.median:.2g} (median), "
        f"{step.largest:.2g} (largest)"
    ]
    lines += [
        f" after {spread.seconds:g} s from {spread.states} states positions are off by {spread.median:.2g} "
        f"(median), {spread.high:.2g} (99%); {spread.beyond:.0%} of the states are beyond {BEYOND:g}"
        for spread in found.horizons
    ]
    if found.unstable:
        lines.append(f" {found.unstable} states were left out: the simulation is unstable there")
    for first, second, count in found.contacts[:_SHOWN_CONTACTS]:
        lines.append(
            f" MuJoCo does not find the contacts of {first} and {second} mirrored, in {count} states"
        )
    if (more := len(found.contacts) - _SHOWN_CONTACTS) > 0:
        lines.append(f" nor those of {more} other pairs")
    return Text("\n".join(lines))


def _verdict(audit: Audit) -> Text:
    colour = {"exact": "green", "approximate": "yellow", "not symmetric": "red"}[audit.verdict]
    if audit.verdict == "exact":
        return Text(" exact", colour)
    return Text(f" {audit.verdict} at a tolerance of {audit.tolerance:g}: {audit.reason}", colour)


def _findings(findings: Sequence[Finding], otherwise: str) -> RenderableType:
    if not findings:
        return Text(f" {otherwise}", "green")
    parts: list[RenderableType] = []
    for group in dict.fromkeys(one.group for one in findings):
        table = Table(
            "parameter",
            "of",
            "is",
            "its image",
            "is",
            "off by",
            "",
            "in 1 s",
            "",
            box=None,
            header_style="bold",
        )
        for one in findings:
            if one.group == group:
                table.add_row(*_row(one))
        parts += [Text(f" {group}", "italic"), table]
    return Group(*parts)


def _row(one: Finding) -> tuple[str, ...]:
    itself = one.first == one.second
    return (
        one.parameter,
        one.first,
        _short(one.first_value),
        "itself" if itself else one.second,
        "" if itself else _short(one.second_value),
        one.difference,
        "" if one.relative is None else f"{100 * one.relative:.2g}%",
        "" if one.effect is None else f"{one.effect:.1g}",
        one.why if one.size is None else "",
    )


def _short(value: Any) -> str:
    """A value in few words: JSON has matrices in full."""
    return "matrix" if isinstance(value, tuple) and isinstance(value[0], tuple) else shown(value)


def _plain_table() -> Table:
    return Table(box=None, show_header=False)
