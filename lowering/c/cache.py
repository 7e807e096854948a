"""The disk cache of compiled programs: shared objects by the hash of all that they depend on.

An entry is `<key>.so` beside `<key>.sum`, the hash of the object. Both are written under another
name and renamed, so that readers see whole files; an object that does not match its hash, or that
belongs to another user, is compiled again. Without a place to write, the process keeps its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from functrans.lowering.c.toolchain import compile_shared, compiler_identity

__all__ = ["Cache", "load_or_compile", "program_cache"]

LIMIT_BYTES = 512 * 2**20
FORMAT = "1"


class Cache:
    """A folder of compiled programs, bounded by `limit_bytes`: the least recently used go first."""

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._private: tempfile.TemporaryDirectory[str] | None = None

    def find(self, key: str) -> Path | None:
        """The object of this key, if it is there, whole, and ours."""
        path = self.folder / f"{key}.so"
        try:
            status = path.stat()
            if status.st_uid != os.getuid():
                return None
            expected = (self.folder / f"{key}.sum").read_text()
            if hashlib.sha256(path.read_bytes()).hexdigest() != expected:
                return None
        except (OSError, UnicodeDecodeError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return path

    def add(self, key: str, compiled: Path) -> Path:
        """Move a compiled object into the cache, or into the process's own folder."""
        try:
            return self._add(self.folder, key, compiled)
        except OSError:
            if self._private is None:
                self._private = tempfile.TemporaryDirectory(prefix="functrans-")
            return self._add(Path(self._private.name), key, compiled)

    def _add(self, folder: Path, key: str, compiled: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = compiled.read_bytes()
        for name, content in ((f"{key}.so", data),
                              (f"{key}.sum", hashlib.sha256(data).hexdigest().encode())):
            descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                os.replace(temporary, folder / name)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        self._evict(folder)
        return folder / f"{key}.so"

    def _evict(self, folder: Path) -> None:
        entries = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                if entry.name.endswith(".so"):
                    status = entry.stat()
                    entries.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit_bytes:
                return
            for victim in (path, f"{path[:-3]}.sum"):
                with contextlib.suppress(OSError):
                    os.unlink(victim)
            total -= size


@cache
def program_cache() -> Cache:
    """The cache of this user: `functrans` in XDG_CACHE_HOME, or in ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Cache(Path(base) / "functrans")


def load_or_compile(sources: Sequence[str], flags: Sequence[str], cache: Cache) -> Path:
    """The shared object of some C texts, from the cache or compiled now.

    Raises CompilerMissing and CompilerError.
    """
    digest = hashlib.sha256("\0".join([FORMAT, compiler_identity(), *flags, *sources]).encode())
    key = digest.hexdigest()
    found = cache.find(key)
    if found is not None:
        return found
    with tempfile.TemporaryDirectory(prefix="functrans-") as folder:
        compiled = Path(folder) / "program.so"
        compile_shared(sources, flags, compiled)
        return cache.add(key, compiled)
