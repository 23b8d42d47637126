"""What a parameter is about, and the unit its difference is given in."""

from __future__ import annotations

GROUPS = ("dynamics", "contact", "actuation", "sensors and markers")
"""What findings are about."""
_OF_KIND = {
    "geom": "contact",
    "pair": "contact",
    "exclude": "contact",
    "actuator": "actuation",
    "site": "sensors and markers",
    "sensor": "sensors and markers",
}
_OF_PARAMETER = {
    "joint actfrcrange": "actuation",
    "joint actfrclimited": "actuation",
    "joint actgravcomp": "actuation",
    "option cone": "contact",
    "option noslip_iterations": "contact",
    "option magnetic": "sensors and markers",
    "body origin": "sensors and markers",
}
_METRES = ("pos", "ipos", "origin", "size", "hull", "margin", "gap", "length0", "lengthspring")
_UNITS = {
    "body mass": "kg",
    "body inertia": "kg·m²",
    "option gravity": "m/s²",
    "option wind": "m/s",
    "joint axis": "",
    "tendon range": "m",
}
_OF_HINGES = {
    "range": "rad",
    "springref": "rad",
    "margin": "rad",
    "armature": "kg·m²",
    "damping": "N·m·s/rad",
    "stiffness": "N·m/rad",
    "frictionloss": "N·m",
    "actfrcrange": "N·m",
}
_OF_SLIDES = {
    "range": "m",
    "springref": "m",
    "margin": "m",
    "armature": "kg",
    "damping": "N·s/m",
    "stiffness": "N/m",
    "frictionloss": "N",
    "actfrcrange": "N",
}


def group_of(parameter: str) -> str:
    """What a parameter is about: one of GROUPS."""
    return _OF_PARAMETER.get(parameter) or _OF_KIND.get(parameter.split()[0], "dynamics")


def unit_of(parameter: str, *, slides: bool = False) -> str:
    """The unit of a parameter, or nothing where it has none; joints that slide have units of their own."""
    kind, name = parameter.split(maxsplit=1)
    if kind == "joint" and name != "pos":
        return (_OF_SLIDES if slides else _OF_HINGES).get(name, "")
    return _UNITS.get(parameter) or ("m" if name in _METRES else "")
