"""The site builds without a warning, and what is broken fails the build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS

ROOT = DOCS.parent


def build(folder, site) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_strictly_and_serves_results(tmp_path):
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    served = tmp_path / "repository" / "results" / "goal2d"
    assert (served / "report.html").read_bytes() == (ROOT / "results/goal2d/report.html").read_bytes()
    assert 'href="repository/results/goal2d/report.html"' in (tmp_path / "findings.html").read_text()
    assert 'id="augury.fleet.Arm.update_ratio"' in (tmp_path / "api" / "fleet.html").read_text()


@pytest.fixture
def copy(tmp_path):
    """A copy of what the site is built from."""
    skipped = shutil.ignore_patterns("__pycache__")
    for name in ("docs", "augury"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skipped)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    return tmp_path


def test_what_is_broken_fails_the_build(copy):
    with (copy / "docs" / "glossary.md").open("a") as page:
        page.write("\n[a](nowhere.md) [b](sb3.md#nowhere) [c](../results/nowhere.png)\n")
    with (copy / "augury" / "show" / "__init__.py").open("a") as module:
        module.write('\n\ndef undocumented(): ...\n\n\n__all__ += ["undocumented"]\n')
    (copy / "docs" / "orphan.md").write_text("# A page that the navigation lacks\n")
    page = copy / "docs" / "api" / "verify.md"
    page.write_text(page.read_text().replace("::: augury.verify", "::: augury.verify.Report"))
    built = build(copy, copy / "site")
    assert built.returncode != 0
    said = built.stderr
    assert "'nowhere.md'" in said
    assert "'#nowhere'" in said
    assert "nowhere.png" in said
    assert "orphan.md" in said
    assert "augury.show.undocumented is public, but it has no docstring" in said
    assert "augury.verify.Audit is public, but the API reference does not list it" in said
