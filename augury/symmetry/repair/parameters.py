"""Make actuators, tendons, constraints and every plain number of joints and geoms mirror images."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.audit.constraints import object_kind
from augury.symmetry.audit.findings import Comparison
from augury.symmetry.audit.joint_parameters import mirrored_range
from augury.symmetry.maps import Array
from augury.symmetry.pairing.actuators import mirrored_gear, target_kind
from augury.symmetry.pairing.tendons import coefficients, mirrored_coefficients
from augury.symmetry.repair.document import Document
from augury.symmetry.repair.sides import Sides

Pair = tuple[int, int]

PLAIN = {
    "body gravcomp": ("body_gravcomp", "gravcomp"),
    "joint limited": ("jnt_limited", "limited"),
    "joint stiffness": ("jnt_stiffness", "stiffness"),
    "joint margin": ("jnt_margin", "margin"),
    "joint solref": ("jnt_solref", "solreflimit"),
    "joint solimp": ("jnt_solimp", "solimplimit"),
    "joint actfrclimited": ("jnt_actfrclimited", "actuatorfrclimited"),
    "joint actgravcomp": ("jnt_actgravcomp", "actuatorgravcomp"),
    "joint armature": ("dof_armature", "armature"),
    "joint damping": ("dof_damping", "damping"),
    "joint frictionloss": ("dof_frictionloss", "frictionloss"),
    "joint friction solref": ("dof_solref", "solreffriction"),
    "joint friction solimp": ("dof_solimp", "solimpfriction"),
    "geom condim": ("geom_condim", "condim"),
    "geom priority": ("geom_priority", "priority"),
    "geom friction": ("geom_friction", "friction"),
    "geom margin": ("geom_margin", "margin"),
    "geom gap": ("geom_gap", "gap"),
    "geom solref": ("geom_solref", "solref"),
    "geom solimp": ("geom_solimp", "solimp"),
    "geom solmix": ("geom_solmix", "solmix"),
    "tendon limited": ("tendon_limited", "limited"),
    "tendon stiffness": ("tendon_stiffness", "stiffness"),
    "tendon damping": ("tendon_damping", "damping"),
    "tendon frictionloss": ("tendon_frictionloss", "frictionloss"),
    "tendon armature": ("tendon_armature", "armature"),
    "tendon margin": ("tendon_margin", "margin"),
    "tendon solref_lim": ("tendon_solref_lim", "solreflimit"),
    "tendon solimp_lim": ("tendon_solimp_lim", "solimplimit"),
    "tendon solref_fri": ("tendon_solref_fri", "solreffriction"),
    "tendon solimp_fri": ("tendon_solimp_fri", "solimpfriction"),
    "tendon actfrclimited": ("tendon_actfrclimited", "actuatorfrclimited"),
    "actuator ctrllimited": ("actuator_ctrllimited", "ctrllimited"),
    "actuator forcelimited": ("actuator_forcelimited", "forcelimited"),
    "actuator actlimited": ("actuator_actlimited", "actlimited"),
    "actuator cranklength": ("actuator_cranklength", "cranklength"),
    "equality active0": ("eq_active0", "active"),
    "equality solref": ("eq_solref", "solref"),
    "equality solimp": ("eq_solimp", "solimp"),
}
"""Parameters that a mirror leaves as they are: where the model has them, and their name in MJCF."""
SIGNED = {
    "tendon range": ("tendon_range", "range"),
    "tendon actfrcrange": ("tendon_actfrcrange", "actuatorfrcrange"),
    "tendon lengthspring": ("tendon_lengthspring", "springlength"),
    "actuator ctrlrange": ("actuator_ctrlrange", "ctrlrange"),
    "actuator forcerange": ("actuator_forcerange", "forcerange"),
    "actuator actrange": ("actuator_actrange", "actrange"),
}
"""Ranges whose ends are exchanged where the sign changes."""
_GAINS, _BIASES = ("fixed", "affine", "muscle"), ("none", "affine", "muscle")
_DYNAMICS = ("none", "integrator", "filter", "filterexact", "muscle")
_OF_SHORTCUTS = ("kp", "kv", "dampratio", "timeconst", "inheritrange")


class ParameterRepair:
    """Writes what is neither a place nor a shape."""

    def __init__(self, document: Document, comparison: Comparison, sides: Sides):
        self.document, self.comparison, self.sides = document, comparison, sides
        self.model, self.pairing = comparison.model, comparison.pairing

    def plain(self, parameter: str, pair: Pair) -> None:
        """A number, a choice or several numbers that both sides should share."""
        kind, (field, attribute) = parameter.split()[0], PLAIN[parameter]
        values = getattr(self.model, field)
        places = [int(self.model.jnt_dofadr[each]) for each in pair] if field.startswith("dof_") else pair
        first, second = (values[place] for place in places)
        bodies = self._bodies(kind, pair)
        if np.issubdtype(values.dtype, np.floating):
            shared: Any = self.sides.settled(bodies, (first, second), _same, _same)[1]
        else:
            shared = self.sides.chosen(bodies, (first, second))
            limits = attribute.endswith(("limited", "active", "gravcomp"))
            shared = bool(shared) if limits else int(shared)
        for each in pair:
            self.document.set(kind, each, **{attribute: shared})

    def contact(self, pair: Pair) -> None:
        """Let both geoms touch what one of them can touch; with a side, what that side can touch."""
        model, bodies = self.model, self._bodies("geom", pair)
        kept = self.sides.kept(*bodies)
        for name in ("contype", "conaffinity"):
            first, second = (int(getattr(model, f"geom_{name}")[each]) for each in pair)
            shared = {1: first, -1: second, 0: first | second}[kept]
            for each in pair:
                self.document.set("geom", each, **{name: shared})

    def signed_range(self, parameter: str, pair: Pair) -> None:
        """A range of a tendon or an actuator."""
        kind, (field, attribute) = parameter.split()[0], SIGNED[parameter]
        sign = self.pairing.signs[kind][pair[0]]
        offsets = self.pairing.offsets.get(parameter.removeprefix("actuator ").removesuffix("range"))
        offset = offsets[pair[0]] if kind == "actuator" and offsets else 0.0
        ranges = self.sides.settled(
            self._bodies(kind, pair),
            tuple(getattr(self.model, field)[list(pair)]),
            lambda x: mirrored_range(x, sign) + offset,
            lambda x: mirrored_range(x - offset, sign),
        )
        for each, value in zip(pair, ranges, strict=True):
            self.document.element(kind, each).attrib.pop("inheritrange", None)
            self.document.set(kind, each, **{attribute: value})

    def gear(self, pair: Pair) -> None:
        """The gear of an actuator on a joint or a tendon."""
        gears, sign = self.model.actuator_gear, self.pairing.signs["actuator"][pair[0]]
        mirrored = sign * mirrored_gear(self.pairing, pair[0])
        # On a joint or a tendon that is a sign, which is its own inverse.
        factor = np.where(mirrored * gears[pair[0]] < 0, -1.0, 1.0)
        values = self.sides.settled(
            self._bodies("actuator", pair), tuple(gears[list(pair)]), lambda x: factor * x,
            lambda x: factor * x,
        )  # fmt: skip
        for each, value in zip(pair, values, strict=True):
            self.document.set("actuator", each, gear=value)

    def motor(self, pair: Pair) -> None:
        """Gain, bias and dynamics of an actuator, which becomes a general one."""
        model, sign = self.model, self.pairing.signs["actuator"][pair[0]]
        flips: dict[str, Array] = {name: np.ones(10) for name in ("gainprm", "biasprm", "dynprm")}
        if model.actuator_gaintype[pair[0]] == mujoco.mjtGain.mjGAIN_AFFINE:
            flips["gainprm"][1:3] = sign
        if model.actuator_biastype[pair[0]] == mujoco.mjtBias.mjBIAS_AFFINE:
            flips["biasprm"][0] = sign
        bodies = self._bodies("actuator", pair)
        settled = {name: self._flipped(bodies, pair, name, flip) for name, flip in flips.items()}
        for place, actuator in enumerate(pair):
            element = self.document.element("actuator", actuator)
            element.tag = "general"
            for name in _OF_SHORTCUTS:
                element.attrib.pop(name, None)
            self.document.set(
                "actuator",
                actuator,
                gaintype=_GAINS[model.actuator_gaintype[actuator]],
                biastype=_BIASES[model.actuator_biastype[actuator]],
                dyntype=_DYNAMICS[model.actuator_dyntype[actuator]],
                **{name: values[place] for name, values in settled.items()},
            )
            if model.actuator_ctrllimited[actuator]:
                self.document.set("actuator", actuator, ctrlrange=model.actuator_ctrlrange[actuator])

    def coefficients(self, pair: Pair) -> None:
        """The coefficients of a tendon of joints."""
        first, second = pair
        sign, own = self.pairing.signs["tendon"][first], coefficients(self.model, second)
        mirrored = mirrored_coefficients(self.pairing, first)
        settled = {joint: (sign * mirrored[joint] + own[joint]) / 2 for joint in own}
        images, signs = self.pairing.images["joint"], self.pairing.signs["joint"]
        back = {images[joint]: sign * signs[joint] * value for joint, value in settled.items()}
        for tendon, values in ((first, back), (second, settled)):
            for part in self.document.element("tendon", tendon):
                if part.tag == "joint":
                    part.set("coef", repr(float(values[self.model.joint(part.get("joint")).id])))

    def constraint(self, pair: Pair) -> bool:
        """The anchor of a connection, or the polynomial of two joints; whether it is one of these."""
        model, places = self.model, self.comparison.places
        objects = [(int(model.eq_obj1id[each]), int(model.eq_obj2id[each])) for each in pair]
        kind = object_kind(model, pair[0])
        if tuple(self.pairing.image(kind, each) for each in objects[0]) != objects[1]:
            return False
        data = model.eq_data[list(pair)]
        if kind in ("joint", "tendon"):
            signs = self.pairing.signs[kind]
            other = signs[objects[0][1]] if objects[0][1] >= 0 else 1.0
            flips = signs[objects[0][0]] * other ** np.arange(5)
            values = self.sides.settled(
                (0, 0), (data[0, :5], data[1, :5]), lambda x: flips * x, lambda x: flips * x
            )
            for each, value in zip(pair, values, strict=True):
                self.document.set("equality", each, polycoef=value)
            return True
        if kind != "body" or model.eq_type[pair[0]] != mujoco.mjtEq.mjEQ_CONNECT:
            return False
        first, second = objects[0][0], objects[1][0]
        values = self.sides.settled(
            (first, second), (data[0, :3], data[1, :3]), lambda x: places.image_of(first, x),
            lambda x: places.image_of(second, x),
        )  # fmt: skip
        for each, value in zip(pair, values, strict=True):
            self.document.set("equality", each, anchor=value)
        return True

    def exclusion(self, index: int) -> None:
        """Exclude the images of two bodies, too."""
        signature = int(self.model.exclude_signature[index])
        names = [
            self.model.body(self.pairing.image("body", body)).name
            for body in (signature >> 16, signature & 0xFFFF)
        ]
        self.document.add(self.document.section("contact"), "exclude", body1=names[0], body2=names[1])

    def option(self, name: str) -> bool:
        """An option of the whole model; whether it can be put right."""
        option, matrix = self.document.section("option"), self.pairing.mirror.matrix
        if name in ("gravity", "wind"):
            vector = getattr(self.model.opt, name)
            option.set(name, " ".join(map(repr, ((vector + matrix @ vector) / 2).tolist())))
        elif name == "solver":
            option.set("solver", "Newton")
        elif name == "noslip_iterations":
            option.set("noslip_iterations", "0")
        elif name == "cone":
            option.set("cone", "elliptic")
        else:
            return False
        return True

    def _flipped(self, bodies: Pair, pair: Pair, name: str, flip: Array) -> tuple[Array, Array]:
        """Parameters of two motors, some of which change their sign."""
        values = getattr(self.model, f"actuator_{name}")[list(pair)]
        flip = flip[: values.shape[1]]
        return self.sides.settled(bodies, (values[0], values[1]), lambda x: flip * x, lambda x: flip * x)

    def _bodies(self, kind: str, pair: Pair) -> Pair:
        """The bodies that tell the sides of two elements; the world where they have none."""
        model = self.model
        if kind == "body":
            return pair
        fields: dict[str, npt.NDArray[Any]] = {
            "joint": model.jnt_bodyid, "geom": model.geom_bodyid, "site": model.site_bodyid,
        }  # fmt: skip
        if kind == "actuator":
            kind = target_kind(model, pair[0])
            pair = int(model.actuator_trnid[pair[0], 0]), int(model.actuator_trnid[pair[1], 0])
        if kind not in fields:
            return 0, 0
        return int(fields[kind][pair[0]]), int(fields[kind][pair[1]])


def _same(value: Array) -> Array:
    return value
