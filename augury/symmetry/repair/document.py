"""A model as the text it is written in: its elements by their index in the compiled model."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import mujoco

from augury.errors import UserError

_BODY_PARTS = {"joint": ("joint", "freejoint"), "geom": ("geom",), "site": ("site",)}
_SECTIONS = {"actuator": "actuator", "tendon": "tendon", "equality": "equality"}
_ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")
_REARRANGED = ("frame", "replicate", "composite", "flexcomp", "attach")
"""Elements that MuJoCo takes apart: what they hold has another place in the compiled model."""


class Document:
    """An MJCF file that can be edited: comments and all that is not edited stay."""

    def __init__(self, path: Path):
        self.path = path
        self.flattened = False
        """Whether MuJoCo wrote the text anew, because the file uses elements that it takes apart."""
        self.root = _read(path)
        if next((each for each in self.root.iter() if each.tag in _REARRANGED), None) is not None:
            self.flattened = True
            self.root = _parsed(mujoco.MjSpec.from_file(str(path)).to_xml(), path)
        self.section("compiler")
        self._elements = self._listed()

    def compile(self) -> mujoco.MjModel:
        """The model that the text describes."""
        try:
            return mujoco.MjModel.from_xml_string(self._text(self.path.parent.resolve(), absolute=True))
        except ValueError as error:
            raise UserError(f"cannot compile {self.path}: {' '.join(str(error).split())}") from error

    def write(self, path: Path) -> None:
        """Write it where it finds the same meshes and textures."""
        path.write_text(self._text(path.parent.resolve(), absolute=False) + "\n")

    def element(self, kind: str, index: int) -> Element:
        """The element of a kind with an index."""
        return self._elements[kind][index]

    def section(self, tag: str) -> Element:
        """A section of the file; a new one where there is none."""
        found = self.root.find(tag)
        if found is None:
            found = Element(tag)
            found.tail = "\n\n  "
            self.root.insert(0, found)
        return found

    def set(self, kind: str, index: int, **attributes: Any) -> None:
        """Set attributes of an element; a new orientation replaces the old one, however that was written."""
        element = self.element(kind, index)
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

    def copied(self, kind: str, index: int, parent: Element) -> Element:
        """A copy of an element at the end of a parent."""
        element = copy.deepcopy(self.element(kind, index))
        parent.append(element)
        return element

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
        pending = world[:1]
        while pending:
            body = pending.pop(0)
            elements["body"].append(body)
            for kind, tags in _BODY_PARTS.items():
                elements[kind] += [each for each in body if each.tag in tags]
            pending = [each for each in body if each.tag == "body"] + pending
        for kind, tag in _SECTIONS.items():
            found = [each for section in self.root.findall(tag) for each in section]
            elements[kind] = [each for each in found if isinstance(each.tag, str)]
        return elements

    def _text(self, folder: Path, *, absolute: bool) -> str:
        """The text, with the folders of meshes and textures as they are seen from a folder."""
        root = copy.deepcopy(self.root)
        compilers = root.findall("compiler")
        said = {name: value for each in compilers for name, value in each.items()}  # the last one counts
        for name in ("meshdir", "texturedir"):
            place = self.path.parent.resolve() / said.get(name, said.get("assetdir", ""))
            compilers[-1].set(name, str(place) if absolute else os.path.relpath(place, folder))
        return ElementTree.tostring(root, encoding="unicode")


def written(value: Any) -> str:
    """A value as MJCF has it: numbers with every digit."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "__iter__"):
        return " ".join(map(written, value))
    number = float(value)
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


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
