"""How symmetric a model is: exactly, approximately, or not."""

from __future__ import annotations

import warnings
from typing import Literal

import mujoco

from augury.errors import UserError
from augury.symmetry.audit.findings import Finding, largest
from augury.symmetry.maps import SymmetryError
from augury.symmetry.occurring import occurring
from augury.symmetry.reflection import Reflection
from augury.symmetry.simulate import SIMULATED_TOLERANCE, STATES, Simulated, simulated

Verdict = Literal["exact", "approximate", "not symmetric"]
"""How symmetric a model is."""
DEFAULT_TOLERANCE = 0.05
"""Relatively smaller findings are what CAD and rounding leave; docs/robots.md says why."""


def verdict_of(mirror: Reflection, tolerance: float, simulated: Simulated | None) -> Verdict:
    """How symmetric a model is, by what was found and by what the simulator says.

    A model is exact if nothing was found, and approximate if all findings are within the tolerance. What was
    not compared may break the symmetry too: there, the simulator must agree, where it was asked.
    """
    if not all(finding.within(tolerance) for finding in mirror.findings):
        return "not symmetric"
    if simulated is None or tolerance == float("inf"):
        return "approximate" if mirror.findings else "exact"
    if not mirror.findings:
        return "exact" if _error(mirror, simulated) <= SIMULATED_TOLERANCE else "not symmetric"
    agrees = not mirror.not_compared or simulated.acceleration <= tolerance
    return "approximate" if agrees else "not symmetric"


def reason(mirror: Reflection, tolerance: float, simulated: Simulated | None) -> str:
    """Why a model is not exact, in one line; nothing if it is."""
    outside = [finding for finding in mirror.findings if not finding.within(tolerance)]
    worst = largest(outside or mirror.findings)
    if worst is not None and (outside or simulated is None or not _disagrees(mirror, tolerance, simulated)):
        more = f" and {len(mirror.findings) - 1} more" if len(mirror.findings) > 1 else ""
        return f"{worst}{_measured(worst)}{more}"
    if simulated is None or verdict_of(mirror, tolerance, simulated) == "exact":
        return ""
    maybe = f", maybe for what was not compared ({mirror.not_compared[0]})" if mirror.not_compared else ""
    return f"the simulator is off by {_error(mirror, simulated):.2g} in the mirror{maybe}"


def judged(model: mujoco.MjModel, mirror: Reflection, tolerance: float) -> tuple[Verdict, str]:
    """The verdict and its reason; the simulator is asked only where something was not compared."""
    limit = checked(tolerance)
    # The part of a robot is moved by the rest, too.
    ask = mirror.not_compared and not mirror.left_out and limit < float("inf")
    said = simulated(model, mirror, occurring(model, STATES), count=STATES) if ask else None
    return verdict_of(mirror, limit, said), reason(mirror, limit, said)


def accept(model: mujoco.MjModel, name: str, mirror: Reflection, tolerance: float | None) -> None:
    """Refuse what is not symmetric; warn of what is so approximately, unless a tolerance was said."""
    limit = DEFAULT_TOLERANCE if tolerance is None else tolerance
    verdict, why = judged(model, mirror, limit)
    if verdict == "not symmetric":
        raise SymmetryError(
            f"the model is not symmetric ({why}): correct it, or say tolerance=…, which is {limit:g}"
        )
    if verdict == "approximate" and tolerance is None:
        warnings.warn(
            f"{name} is only approximately symmetric ({why}): `augury symmetry` tells what that does "
            f"to its motion; say tolerance={limit:g} to accept it, or 0 to refuse it",
            stacklevel=3,
        )


def checked(tolerance: float) -> float:
    """A tolerance that means something."""
    if not tolerance >= 0:
        raise UserError(f"the tolerance must be at least 0, not {tolerance:g}")
    return tolerance


def _error(mirror: Reflection, simulated: Simulated) -> float:
    """The largest error of one step that tells against a model.

    Contacts that MuJoCo does not find mirrored excuse it, unless it has what may act in just these contacts.
    """
    unknown = any(not what.startswith("sensor ") for what in mirror.not_compared)
    return simulated.step.largest if unknown else simulated.unexplained


def _disagrees(mirror: Reflection, tolerance: float, simulated: Simulated) -> bool:
    return verdict_of(mirror, tolerance, simulated) == "not symmetric"


def _measured(finding: Finding) -> str:
    return "" if finding.relative is None else f": {finding.relative:.2g} of its size"
