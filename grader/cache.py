"""A content-addressed store of built files in the user's cache folder; safe between processes.

An entry is written beside its place and moved there in one step, so a reader sees all of it or nothing, and
two builders of the same content cannot disturb each other. Old entries are removed when there are many.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

MAX_ENTRIES = 400


def root() -> Path:
    """Return the cache folder: `FLASHGRADE_CACHE` if that is set, else the platform's usual place."""
    if chosen := os.environ.get("FLASHGRADE_CACHE"):
        return Path(chosen)
    import platformdirs

    return platformdirs.user_cache_path("flashgrade")


def key(*parts: str | bytes) -> str:
    """Return the address of a content: a hash in which the borders between `parts` count."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:32]


def get(kind: str, address: str) -> Path | None:
    """Return the stored file, marked as just used, or None."""
    path = root() / kind / address
    try:
        os.utime(path)
    except OSError:
        return None
    return path


def seen_before(address: str) -> bool:
    """Whether this was asked before; the first time it is noted."""
    note = root() / "seen" / address
    if note.exists():
        return True
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
        _prune(note.parent, MAX_ENTRIES)
    return False


def put(kind: str, address: str, built: Path, *, keep: int = MAX_ENTRIES) -> Path:
    """Store a copy of `built` and return its place; without room or permission, `built` itself.

    The longest unused entries of that kind beyond `keep` are removed.
    """
    folder = root() / kind
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
        os.close(handle)
        try:
            shutil.copy(built, name)
            Path(name).replace(folder / address)
        except OSError:
            with suppress(OSError):
                Path(name).unlink()
            return built
    except OSError:
        return built
    _prune(folder, keep)
    return folder / address


def _prune(folder: Path, keep: int) -> None:
    entries = []
    for path in folder.iterdir():
        with suppress(OSError):
            entries.append((path.stat().st_mtime, path))
    for _, path in sorted(entries)[:-keep]:
        with suppress(OSError):
            path.unlink()
