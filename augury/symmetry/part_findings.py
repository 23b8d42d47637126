"""Which findings are about the part of a robot that is mirrored."""

from __future__ import annotations

from collections.abc import Iterable

from augury.symmetry.audit.constraints import object_kind
from augury.symmetry.audit.findings import Finding
from augury.symmetry.pairing.images import Pairing


def about_the_part(pairing: Pairing, findings: Iterable[Finding]) -> list[Finding]:
    """Findings without those about elements that stay as they are, or about constraints on these."""
    if not any(pairing.left_out.values()):
        return list(findings)
    left_out = {
        (kind, pairing.label(kind, index)) for kind, indices in pairing.left_out.items() for index in indices
    }
    left_out |= {(kind, pairing.label(kind, index)) for kind, index in _constraints(pairing)}
    return [each for each in findings if (each.parameter.split()[0], each.first) not in left_out]


def _constraints(pairing: Pairing) -> Iterable[tuple[str, int]]:
    """Contact pairs, exclusions and equality constraints that are on what stays as it is."""
    model, left_out = pairing.model, pairing.left_out
    geoms, bodies = left_out["geom"], left_out["body"]
    for pair, touching in enumerate(zip(model.pair_geom1, model.pair_geom2, strict=True)):
        if geoms & set(touching):
            yield "pair", pair
    for exclusion, signature in enumerate(model.exclude_signature.tolist()):
        if bodies & {signature >> 16, signature & 0xFFFF}:
            yield "exclude", exclusion
    for equality in range(model.neq):
        objects = {int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])}
        if objects & left_out[object_kind(model, equality)]:
            yield "equality", equality
