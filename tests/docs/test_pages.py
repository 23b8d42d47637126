"""What the pages name is there: commands and their options, files, and the glossary's twenty words."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

import augury
from augury import cli
from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_COMMAND = re.compile(r"^(?:\$ )?(augury [a-z].*)$", re.MULTILINE)
_INLINE = re.compile(r"`(augury [a-z][^`]*)`")
_FILE = re.compile(r"(?<![\w/.])((?:augury|benchmarks|docs|examples|results|studies|tests)/[\w/.-]+\.\w+)")
_PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|…|[{}]")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def commands_of(page: Path) -> list[str]:
    text = page.read_text()
    inside = "\n".join(re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    found = _COMMAND.findall(inside.replace("\\\n", " "))
    found += [" ".join(command.split()) for command in _INLINE.findall(text)]
    return [command for command in found if not _PLACEHOLDER.search(command)]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_commands_of_a_page_can_be_given(page):
    for command in commands_of(page):
        _, *arguments = shlex.split(command, comments=True)
        if len(arguments) > 1 and arguments != ["study", "run"] and arguments[-1] != "--help":
            cli._parsed(arguments)
        else:
            assert arguments[0] in cli.COMMANDS, command


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_blank_of_a_page_was_left_to_fill(page):
    assert not re.findall(r"@[A-Z]+@|TODO|FIXME", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_files_that_a_page_names_exist(page):
    own = set(re.findall(r'title="([^"]+)"', page.read_text()))
    for path in set(_FILE.findall(page.read_text())) - own:
        assert (ROOT / path).exists(), f"{name(page)} names {path}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_python_of_a_page_can_be_read_and_imports_what_exists(page):
    for text in re.findall(r"^```python[^\n]*\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "augury":
                module = importlib.import_module(node.module or "")
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert not missing, f"{name(page)} imports {missing} from {node.module}"
            front = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if front and node.value.id == "augury":
                assert node.attr in augury.__all__ or importlib.util.find_spec(f"augury.{node.attr}")


def test_the_page_on_tasks_prints_the_example():
    [example] = re.findall(
        r'title="quadruped.py"\n(.*?)^```$', (DOCS / "how-to/task.md").read_text(), re.S | re.M
    )
    assert example == (ROOT / "examples" / "quadruped.py").read_text()


def test_the_glossary_has_twenty_words_in_order():
    words = re.findall(r"^### (.*)$", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    spoken = [word.replace("α", "alpha").replace("β", "beta").lower() for word in words]
    assert len(words) == 20
    assert [word[0] for word in spoken] == sorted(word[0] for word in spoken)
