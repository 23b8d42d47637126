"""Where results come from: hardware, versions, time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from augury.study.record import Finished, Record

MINUTE = 60
"""Of seconds, as an hour is of minutes."""


def facts(record: Record) -> dict[str, str]:
    """What is known, in words, by name."""
    abouts = [one.result.about for one in record.finished]
    known = {
        "Hardware": _joined(_machine(about["hardware"]) for about in abouts if about.get("hardware")),
        "Wall time": wall_time(record.finished),
        "Finished": _dates([about["finished"] for about in abouts if about.get("finished")]),
        "Restarts": restarts(record.finished),
        "Versions": _versions([about["versions"] for about in abouts if about.get("versions")]),
    }
    return {name: fact for name, fact in known.items() if fact}


def restarts(finished: Iterable[Finished]) -> str:
    """Which arms were resumed without going on exactly, as their environments cannot be brought back."""
    return _joined(one.result.restarts for one in finished)


def _joined(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(word for word in words if word))


def _machine(hardware: dict[str, Any]) -> str:
    devices = hardware.get("devices", 1)
    times = f"{devices} × " if devices > 1 else ""
    return f"{times}{hardware.get('device', 'unknown')} ({hardware.get('platform', 'unknown')})"


def _versions(versions: list[dict[str, str]]) -> str:
    """Every package once, with all the versions that took part."""
    names = dict.fromkeys(name for one in versions for name in one)
    each = {name: dict.fromkeys(one[name] for one in versions if name in one) for name in names}
    return ", ".join(f"{name} {' and '.join(found)}" for name, found in each.items())


def wall_time(finished: Iterable[Finished]) -> str:
    """How long fleets took, counting once what went on at the same time."""
    # Arms of one fleet were trained together, and each says how long all of them took.
    fleets = {
        (result.asked["environment"], result.about["finished"], result.seconds)
        for _, _, result in finished
        if result.seconds and result.about.get("finished")
    }
    ends = [(datetime.fromisoformat(at).timestamp(), seconds) for _, at, seconds in fleets]
    busy, until = 0.0, -math.inf
    for begun, ended in sorted((end - seconds, end) for end, seconds in ends):
        busy += max(0.0, ended - max(begun, until))
        until = max(ended, until)
    return f"{_duration(busy)} in {len(fleets)} fleet{'s' * (len(fleets) > 1)}" if fleets else ""


def _duration(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _dates(times: list[str]) -> str:
    if not times:
        return ""
    first, last = (datetime.fromisoformat(time) for time in (min(times), max(times)))
    until = f"{last.day} {last:%B %Y, %H:%M} UTC"
    return until if first.date() == last.date() else f"{first.day} {first:%B %Y} to {until}"
