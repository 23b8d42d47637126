"""Compiled programs are kept between runs, in JAX's persistent cache: compiling takes ten seconds and more.

They are in `augury/xla` below the user's cache folder (`XDG_CACHE_HOME`, or `~/.cache`). The environment
variable `AUGURY_CACHE` names another folder, or says `off`. A folder that was set
for JAX itself (`JAX_COMPILATION_CACHE_DIR`) takes precedence.

JAX writes an entry in place and never replaces one, so a process that is killed while it writes would leave
half an entry for ever: `tidy` removes such halves, and the entries unused for longest.
"""

from __future__ import annotations

import hashlib
import os
import platform
import warnings
import zlib
from contextlib import suppress
from pathlib import Path

import jax

VARIABLE, OFF = "AUGURY_CACHE", "off"
MOST_BYTES = 500_000_000
"""Kept by `tidy`; a program of a Goal2D fleet takes less than one."""
_CHECKED = "checked"
"""A file whose time is that of the last `tidy`: older entries need no check."""


def keep_compiled() -> None:
    """Keep compiled programs for later runs, unless the user has chosen otherwise.

    The command line and the workers of studies call it. It affects every program of the process, so a script
    must call it itself. If the folder cannot be written, programs are compiled as without it.
    """
    if jax.config.jax_compilation_cache_dir is not None:  # type: ignore[attr-defined]
        return
    if (folder := _folder()) is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # private: what is read from it is executed
        tidy(folder)
    except OSError:
        return
    if not os.access(folder, os.W_OK):
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # Even small ones: a fleet begins with a dozen, and each takes longer to compile than to read.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # A full disk, say: the program that could not be kept or read is compiled.
    warnings.filterwarnings("ignore", r"Error (reading|writing) persistent compilation cache", UserWarning)


def tidy(folder: Path, most_bytes: int = MOST_BYTES) -> None:
    """Remove entries that are not whole, and those unused for longest until the others fit."""
    marker = folder / _CHECKED
    since = marker.stat().st_mtime_ns if marker.exists() else 0
    marker.touch()
    kept = []
    for path in folder.glob("*-cache"):
        with suppress(FileNotFoundError):  # another process tidies too
            about = path.stat()
            if about.st_mtime_ns >= since and not _is_whole(path):
                path.unlink()
            else:
                kept.append((max(about.st_mtime_ns, about.st_atime_ns), about.st_size, path))
    size = sum(bytes_ for _, bytes_, _ in kept)
    for _, bytes_, path in sorted(kept):
        if size <= most_bytes:
            break
        path.unlink(missing_ok=True)
        size -= bytes_


def _folder() -> Path | None:
    """Where to keep programs. Processors that differ have a folder each: one may lack what another has."""
    said = os.environ.get(VARIABLE, "")
    if said.lower() == OFF:
        return None
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "augury" / "xla"
    except RuntimeError:  # the user has no home folder
        return None
    return (Path(said).expanduser() if said else base) / _processor()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not on Linux: one machine then, and one kind of processor
        return platform.machine()
    told = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return f"{platform.machine()}-{hashlib.sha256(''.join(told).encode()).hexdigest()[:8]}"


def _is_whole(path: Path) -> bool:
    """Whether an entry can be decompressed; other kinds of compression are not checked."""
    content = path.read_bytes()
    if content[:1] != b"\x78":  # zlib's first byte; Zstandard, if installed, has another
        return bool(content)
    with suppress(zlib.error):
        stream = zlib.decompressobj()
        stream.decompress(content)
        return stream.eof
    return False
