"""What the site adds to MkDocs.

A page may link to a file anywhere in the repository, with the relative path that works on a code host too.
The file becomes part of the site. Every public name must stand in the API reference, with a docstring.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

log = logging.getLogger("mkdocs.hooks.augury")  # under "mkdocs", so that a warning fails a strict build
ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(\]\()(\.\./[^)#\s]+)")
SERVED_AT = "repository"


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside docs/ that pages link to."""
    for page in files.documentation_pages():
        for path in _outside(page.content_string, page.src_uri):
            served = f"{SERVED_AT}/{path}"
            if (ROOT / path).is_file() and files.get_file_from_path(served) is None:
                files.append(File.generated(config, served, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to where the site serves their files; broken ones stay broken."""
    uri = page.file.src_uri

    def moved(link: re.Match[str]) -> str:
        path = _repository_path(link[2], uri)
        if path is None:
            return link[0]
        return link[1] + posixpath.relpath(f"{SERVED_AT}/{path}", posixpath.dirname(uri) or ".")

    return LINK.sub(moved, markdown)


def on_env(env: Any, config: Any, **_: Any) -> Any:
    """Warn of public names that have no docstring, or no place in the API reference."""
    listed = config.plugins["autorefs"].get_item_url
    for name, found in public_names(config.extra["public"]):
        if not found.has_docstring:
            log.warning("%s is public, but it has no docstring", name)
        try:
            listed(found.path)
        except KeyError:
            log.warning("%s is public, but the API reference does not list it", name)
    return env


def public_names(packages: list[str]) -> Iterator[tuple[str, griffe.Object]]:
    """Every name in the `__all__` of these packages, and what it is, without importing them."""
    root = griffe.load("augury", search_paths=[str(ROOT)], resolve_aliases=True)
    for package in packages:
        module = root if package == "augury" else root[package.removeprefix("augury.")]
        for name in map(str, module.exports or ()):
            if name.startswith("__"):
                continue
            found = module[name]
            if found.is_module and name in found.members:  # a function in a module of the same name
                found = found[name]
            yield f"{package}.{name}", found


def _outside(markdown: str, uri: str) -> Iterator[str]:
    for link in LINK.finditer(markdown):
        if path := _repository_path(link[2], uri):
            yield path


def _repository_path(link: str, uri: str) -> str | None:
    """The path from the repository's root, of a link that leaves docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), link))
    return None if path.startswith(("docs/", "..")) else path
