"""Make actuators, tendons, constraints and every plain number of joints and geoms mirror images."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from augury.symmetry.audit.constraints import object_kind
from augury.symmetry.audit.findings import Comparison
from augury.symmetry.audit.joint_parameters import mirrored_range
from augury.symmetry.maps import Array
from augury.symmetry.pairing.actuators import mirrored_gear, target_kind
from augury.symmetry.pairing.names import given_name
from augury.symmetry.pairing.tendons import coefficients, mirrored_coefficients
from augury.symmetry.repair.document import Document
from augury.symmetry.repair.sides import Sides

Pair = tuple[int, int]
_Map = Callable[[Array], Array]

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
    "joint range": ("jnt_range", "range"),
    "joint actfrcrange": ("jnt_actfrcrange", "actuatorfrcrange"),
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

    def limits(self, parameter: str, pair: Pair) -> None:
        """A range; its ends are exchanged where the sign changes."""
        kind, (field, attribute) = parameter.split()[0], SIGNED[parameter]
        ranges, (mirrored, back) = getattr(self.model, field), self._mirrored_limits(parameter, pair)
        settled = self.sides.settled(self._bodies(kind, pair), tuple(ranges[list(pair)]), mirrored, back)
        for each, value in zip(pair, settled, strict=True):
            self._set_limits(kind, each, attribute, value, parameter)

    def limited(self, parameter: str, pair: Pair) -> None:
        """Whether there is a range at all; the one that has none gets that of the other."""
        kind, (field, attribute) = parameter.split()[0], PLAIN[parameter]
        have = [bool(getattr(self.model, field)[each]) for each in pair]
        shared = bool(self.sides.chosen(self._bodies(kind, pair), (have[0], have[1])))
        for each in pair:
            self.document.set(kind, each, **{attribute: shared})
        if shared:
            ranged = parameter.replace("limited", "range")
            ranges, maps = getattr(self.model, SIGNED[ranged][0]), self._mirrored_limits(ranged, pair)
            source, target, map_ = (0, 1, maps[0]) if have[0] else (1, 0, maps[1])
            value = map_(ranges[pair[source]])
            self._set_limits(kind, pair[target], SIGNED[ranged][1], value, ranged)

    def _mirrored_limits(self, parameter: str, pair: Pair) -> tuple[_Map, _Map]:
        """How a range is mirrored, and back."""
        kind, name = parameter.split()
        sign, offset = self.pairing.signs[kind][pair[0]], 0.0
        if kind == "actuator" and (offsets := self.pairing.offsets.get(name.removesuffix("range"))):
            offset = offsets[pair[0]]
        if parameter == "joint range" and self.model.jnt_type[pair[0]] != mujoco.mjtJoint.mjJNT_BALL:
            zeros = self.model.qpos0[self.model.jnt_qposadr[list(pair)]]
            offset = float(zeros[1] - sign * zeros[0])
        return lambda x: mirrored_range(x, sign) + offset, lambda x: mirrored_range(x - offset, sign)

    def _set_limits(self, kind: str, index: int, attribute: str, value: Array, parameter: str) -> None:
        turns = parameter == "joint range" and self.model.jnt_type[index] != mujoco.mjtJoint.mjJNT_SLIDE
        self.document.element(kind, index).attrib.pop("inheritrange", None)
        value = np.degrees(value) if turns and self.document.in_degrees else value
        self.document.set(kind, index, **{attribute: value})

    def gear(self, pair: Pair) -> None:
        """The gear of an actuator: a number, or a force and a torque in some frame."""
        gears = self.model.actuator_gear[list(pair)].copy()
        mirrored, back = (partial(self._mirrored_gear, each) for each in pair)
        values = self.sides.settled(self._bodies("actuator", pair), (gears[0], gears[1]), mirrored, back)
        for each, value in zip(pair, values, strict=True):
            self.document.set("actuator", each, gear=value)

    def _mirrored_gear(self, actuator: int, gear: Array) -> Array:
        """What the image of an actuator would have if it had this gear itself."""
        own = self.model.actuator_gear[actuator].copy()
        self.model.actuator_gear[actuator] = gear
        mirrored = self.pairing.signs["actuator"][actuator] * mirrored_gear(self.pairing, actuator)
        self.model.actuator_gear[actuator] = own
        return mirrored

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
        """The anchor of a connection or a weld, or the polynomial of joints; whether it is one of these."""
        model = self.model
        objects = [(int(model.eq_obj1id[each]), int(model.eq_obj2id[each])) for each in pair]
        kind = object_kind(model, pair[0])
        exchanged = tuple(self.pairing.image(kind, each) for each in objects[0]) != objects[1]
        if kind in ("joint", "tendon") and not exchanged:
            signs = self.pairing.signs[kind]
            other = signs[objects[0][1]] if objects[0][1] >= 0 else 1.0
            flips = np.asarray(signs[objects[0][0]] * other ** np.arange(5), float)
            attribute, data = "polycoef", model.eq_data[list(pair), :5]
            mirrored = back = _times(flips)
        elif kind == "body" and "relpose" not in self.document.element("equality", pair[0]).attrib:
            # The anchor of a connection is in the frame of the first body, that of a weld in the second's.
            # The rest MuJoCo derives at qpos0, where all is symmetric.
            of = int(model.eq_type[pair[0]] == mujoco.mjtEq.mjEQ_WELD)
            attribute, data = "anchor", model.eq_data[list(pair), :3]
            mirrored = self._mirrored_point(objects[0][of], objects[1][of])
            back = self._mirrored_point(objects[1][of], objects[0][of])
        else:
            return False
        values = self.sides.settled((objects[0][0], objects[1][0]), (data[0], data[1]), mirrored, back)
        for each, value in zip(pair, values, strict=True):
            self.document.set("equality", each, **{attribute: value})
        return True

    def _mirrored_point(self, body: int, frame: int) -> _Map:
        """Takes a point in a body's frame to its image in another body's, as both are at the reference."""
        positions, axes = self.pairing.mirror.frames["body"]
        image = self.pairing.images["body"][body]

        def mirrored(point: Array) -> Array:
            world = positions[image] + axes[image] @ self.comparison.places.image_of(body, point)
            return np.asarray(axes[frame].T @ (world - positions[frame]))

        return mirrored

    def add_image(self, kind: str, index: int) -> bool:
        """Add the mirror image of a constraint that has none; whether that can be written."""
        model = self.model
        if kind == "exclude":
            signature = int(model.exclude_signature[index])
            names = self._image_names("body", signature >> 16, signature & 0xFFFF)
            self.document.add(self.document.section("contact"), "exclude", body1=names[0], body2=names[1])
            return True
        of = {"pair": "geom", "equality": object_kind(model, index) if kind == "equality" else ""}[kind]
        fields = ("pair_geom1", "pair_geom2") if kind == "pair" else ("eq_obj1id", "eq_obj2id")
        names = self._image_names(of, *(int(getattr(model, field)[index]) for field in fields))
        element = self.document.original(kind, self.pairing.label(kind, index))
        if element is None or not all(names) or element.tag not in ("pair", "joint", "tendon", "connect"):
            return False
        image = self.document.beside(element)
        image.attrib.pop("name", None)
        for number, name in enumerate(names, start=1):
            if f"{of}{number}" in image.attrib:
                image.set(f"{of}{number}", name)
        return True

    def _image_names(self, kind: str, *indices: int) -> list[str]:
        """The names of images; of nothing, any."""
        images = [self.pairing.image(kind, index) for index in indices]
        return [given_name(self.model, kind, image) if image >= 0 else "none" for image in images]

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


def _times(factors: Array) -> _Map:
    return lambda x: factors * x
