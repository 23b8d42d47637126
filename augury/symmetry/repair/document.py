"""A model as the text it is written in: its elements by their index in the compiled model."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mujoco

from augury.errors import UserError

_BODY_PARTS = {"joint": ("joint", "freejoint"), "geom": ("geom",), "site": ("site",)}
_SECTIONS = {"actuator": "actuator", "tendon": "tendon", "equality": "equality"}
_ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
_PLACES = ("pos", "quat", "axis", "anchor")


class NotEditable(Exception):  # noqa: N818  (caught where a finding is put right)
    """An element's place is written in the frame of another element."""


class Document:
    """An MJCF file that can be edited: comments and all that is not edited stay."""

    def __init__(self, path: Path):
        self.path = path
        self.root = _read(path)
        text = path.read_text()
        self._around = text[: text.index("<mujoco")], text[text.rindex(">") + 1 :]
        self._elements = self._listed()

    def compile(self) -> mujoco.MjModel:
        """The model that the text describes; what was added has an index from here on."""
        self._elements = self._listed()
        try:
            model = mujoco.MjModel.from_xml_string(self._text(self.path.parent.resolve(), absolute=True))
        except ValueError as error:
            raise UserError(f"cannot compile {self.path}: {' '.join(str(error).split())}") from error
        compiled = {"body": model.nbody, "joint": model.njnt, "geom": model.ngeom, "site": model.nsite}
        compiled |= {"actuator": model.nactuator, "tendon": model.ntendon, "equality": model.neq}
        for kind, count in compiled.items():
            if count != len(self._elements[kind]):
                raise UserError(
                    f"{self.path} writes {len(self._elements[kind])} of {count} {kind} elements: save it "
                    "with MuJoCo first, so that what it replicates, composes or attaches is written out"
                )
        return model

    def write(self, path: Path) -> None:
        """Write it where it finds the same meshes and textures."""
        before, after = self._around
        path.write_text(before + self._text(path.parent.resolve(), absolute=False) + after)

    def element(self, kind: str, index: int) -> Element:
        """The element of a kind with an index."""
        return self._elements[kind][index]

    def section(self, tag: str) -> Element:
        """A section of the file; a new one where there is none."""
        found = self.root.find(tag)
        if found is None:
            found = Element(tag)
            found.tail = self.root.text
            self.root.insert(0, found)
        return found

    def mesh(self, name: str, vertices: Any) -> None:
        """Add a mesh of these vertices, or replace the one of this name."""
        for section in self.root.findall("asset"):
            for old in section.findall(f"mesh[@name='{name}']"):
                section.remove(old)
        # The mass of a body is written; as a shell, a mesh may be as thin as it likes. Defaults may scale.
        asset = self.section("asset")
        self.add(asset, "mesh", name=name, inertia="shell", scale="1 1 1", vertex=vertices)

    def inertia(self, body: int, **attributes: Any) -> None:
        """Write the inertia of a body, in the place of the one that was written."""
        element = self.element("body", body)
        for old in element.findall("inertial"):
            element.remove(old)
        new = Element("inertial", {name: written(value) for name, value in attributes.items()})
        new.tail = element.text
        element.insert(0, new)

    @property
    def infers_inertia(self) -> bool:
        """Whether inertias that are written would be ignored, or scaled."""
        compilers = self.root.findall("compiler")
        return any(
            each.get("inertiafromgeom") == "true" or "settotalmass" in each.attrib for each in compilers
        )

    def take_inertias_as_written(self) -> None:
        """Neither infer inertias from geoms where they are written, nor scale them."""
        for compiler in self.root.findall("compiler"):
            compiler.attrib.pop("inertiafromgeom", None)
            compiler.attrib.pop("settotalmass", None)

    def set(self, kind: str, index: int, **attributes: Any) -> None:
        """Set attributes of an element."""
        self.set_on(self.element(kind, index), **attributes)

    def set_on(self, element: Element, **attributes: Any) -> None:
        """Set attributes; a new orientation replaces the old one, however that was written."""
        if element in self._framed and any(name in _PLACES for name in attributes):
            raise NotEditable
        if "quat" in attributes:
            for name in (*_ORIENTATIONS, "fromto"):
                element.attrib.pop(name, None)
        for name, value in attributes.items():
            element.set(name, written(value))

    def add(self, parent: Element, tag: str, **attributes: Any) -> Element:
        """Append a new element."""
        element = Element(tag, {name: written(value) for name, value in attributes.items()})
        element.tail = parent.text if len(parent) == 0 else parent[-1].tail
        if len(parent):
            parent[-1].tail = parent.text
        parent.append(element)
        return element

    def original(self, kind: str, name: str) -> Element | None:
        """The contact pair or the constraint of this name."""
        section = {"pair": "contact", "equality": "equality"}[kind]
        return self.root.find(f"{section}/*[@name='{name}']")

    def beside(self, element: Element) -> Element:
        """A copy of an element, behind it."""
        parent, new = self._parent(element), copy.deepcopy(element)
        parent.insert(list(parent).index(element) + 1, new)
        return new

    def remove(self, element: Element) -> None:
        """Take an element away."""
        self._parent(element).remove(element)

    def _parent(self, element: Element) -> Element:
        return next(each for each in self.root.iter() if element in list(each))

    def copied_to(self, body: int, element: Element) -> Element:
        """A copy of a geom or a site at the end of a body's own; it has no name."""
        parent, new = self.element("body", body), copy.deepcopy(element)
        new.attrib.pop("name", None)
        places = [place for place, each in enumerate(parent) if each.tag == element.tag]
        parent.insert(places[-1] + 1 if places else 0, new)
        return new

    @property
    def in_degrees(self) -> bool:
        """Whether angles are written in degrees."""
        angles = [each.get("angle") for each in self.root.findall("compiler") if each.get("angle")]
        return (angles or ["degree"])[-1] != "radian"

    def _listed(self) -> dict[str, list[Element]]:
        elements: dict[str, list[Element]] = {"body": [], "joint": [], "geom": [], "site": []}
        world = [each for each in self.root if each.tag == "worldbody"]
        for other in world[1:]:  # MuJoCo takes several for one
            world[0].extend(list(other))
            self.root.remove(other)
        self._framed: list[Element] = []
        pending = world[:1]
        while pending:
            body = pending.pop(0)
            elements["body"].append(body)
            inside = list(self._inside(body))
            for kind, tags in _BODY_PARTS.items():
                elements[kind] += [each for each in inside if each.tag in tags]
            pending = [each for each in inside if each.tag == "body"] + pending
        for kind, tag in _SECTIONS.items():
            found = [each for section in self.root.findall(tag) for each in section]
            elements[kind] = [each for each in found if isinstance(each.tag, str)]
        return elements

    def _inside(self, parent: Element) -> Iterator[Element]:
        """What a body holds; of its frames, what they hold."""
        for each in parent:
            if each.tag == "frame":
                framed = list(self._inside(each))
                self._framed += framed
                yield from framed
            else:
                yield each

    def _text(self, folder: Path, *, absolute: bool) -> str:
        """The text, with the folders of meshes and textures as they are seen from a folder."""
        root = copy.deepcopy(self.root)
        compilers = root.findall("compiler")
        said = {name: value for each in compilers for name, value in each.items()}  # the last one counts
        home = self.path.parent.resolve()
        if absolute or folder != home:
            if not compilers:
                compilers = [Element("compiler")]
                compilers[0].tail = root.text
                root.insert(0, compilers[0])
            for name in ("meshdir", "texturedir"):
                place = home / said.get(name, said.get("assetdir", ""))
                compilers[-1].set(name, str(place) if absolute else os.path.relpath(place, folder))
        text = ElementTree.tostring(root, encoding="unicode")
        return re.sub(
            r"<!--.*?-->| />",
            lambda found: found[0].replace(" />", "/>", found[0] == " />"),
            text,
            flags=re.S,
        )


def written(value: Any) -> str:
    """A value as MJCF has it: numbers with every digit but the last, which is rounding."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "__iter__"):
        numbers = [float(number) for number in value]
        rounding = 1e-15 * max(map(abs, numbers))
        return " ".join(written(number if abs(number) > rounding else 0.0) for number in numbers)
    return f"{float(value):.15g}"


def _read(path: Path) -> Element:
    """The file's root, with what it includes in place."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    return _with_includes(_parsed(text, path, ("mujoco", "mujocoinclude")), path)


def _parsed(text: str, path: Path, roots: tuple[str, ...] = ("mujoco",)) -> Element:
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    try:
        root = ElementTree.fromstring(text, parser)
    except ElementTree.ParseError as error:
        raise UserError(f"{path} is no XML: {error}") from error
    if root.tag not in roots:
        raise UserError(f"{path} is no MJCF: convert it with MuJoCo first")
    return root


def _with_includes(root: Element, path: Path) -> Element:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "include":
                file = path.parent / child.get("file", "")
                place = list(parent).index(child)
                parent.remove(child)
                for offset, included in enumerate(list(_read(file))):
                    parent.insert(place + offset, included)
    return root
