"""The studies that come with Augury, found by name wherever it is installed."""

from __future__ import annotations

from pathlib import Path

from augury.errors import unknown_name

_FOLDER = Path(__file__).parent / "files"
"""In the repository a link to `studies/`, where readers look; in a wheel the files themselves."""


def shipped() -> dict[str, Path]:
    """The files of the studies that come with Augury, by name."""
    return {path.stem: path for path in _FOLDER.rglob("*.toml")}


def found(study: Path) -> Path:
    """The file of a study: the one at this path, or the one that comes with Augury under this name.

    Paths below `studies/` are found in an installed package too, so that commands of the docs work there.
    """
    if study.exists():
        return study
    if study.parts[:1] == ("studies",) and (ours := _FOLDER.joinpath(*study.parts[1:])).is_file():
        return ours
    if len(study.parts) > 1 or study.suffix:
        return study  # reading it tells what is wrong
    names = shipped()
    if str(study) not in names:
        raise unknown_name("study", str(study), names)
    return names[str(study)]


def named(file: Path) -> str:
    """What a command calls a study: by its name if it comes with Augury, else by its path."""
    return file.stem if file.is_relative_to(_FOLDER) else str(file)
