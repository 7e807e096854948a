"""The disk cache of compiled programs: shared objects by the hash of all that they depend on.

An entry is one file, `<key>.so`: the object and, behind it, the hash of the object, which the
loader does not read. One file cannot disagree with itself however many processes write it. It is
written under another name and renamed; what is truncated, changed or another user's is compiled
again. Where the folder cannot be used the process keeps its programs in a folder of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache as memoized
from pathlib import Path
from typing import Final

from functrans.core.errors import BackendError

try:  # as `random` does: hashlib brings OpenSSL, 3 ms of a program's first result
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["FORMAT", "Cache", "digest", "program_cache", "unique_name"]

LIMIT_BYTES: Final = 512 * 2**20
FORMAT: Final = "2"
"""Changes with the format of entries and with the interface between programs and the runtime."""
HASH_BYTES: Final = 32
SUFFIXES: Final = (".so", ".manifest", ".kernel", ".tuned")
STALE_SECONDS: Final = 3600.0
"""Temporary files older than this were left by a process that was killed."""


def digest(*parts: str | bytes) -> str:
    """A key for texts, of which none can be mistaken for another: 64 hexadecimal digits."""
    h = blake2b(digest_size=HASH_BYTES)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(b"%d:" % len(data))
        h.update(data)
    return str(h.hexdigest())


def unique_name(kind: str) -> str:
    """A name for a temporary file or folder that no other process or thread uses."""
    return f".{kind}-{os.getpid()}-{os.urandom(6).hex()}"


class Cache:
    """A folder of compiled programs, bounded by `limit_bytes`: the least recently used go first.

    `folder` is made when first written, for its owner alone. None, or a folder that cannot be
    used, is replaced by one of the process, with one warning.
    """

    def __init__(self, folder: Path | None, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._writable = folder is not None
        self._own: Path | None = None
        self._own_pid = 0
        self._known: dict[str, tuple[Path, int, int]] = {}
        self._unseen = limit_bytes
        """Bytes added since the folder was last looked at."""

    def find(self, key: str) -> Path | None:
        """The object of this key, if it is there, whole, and ours; its hash is checked once."""
        known = self._known.get(key)
        if known is not None:
            path, inode, size = known
            with contextlib.suppress(OSError):
                status = os.stat(path)
                if (status.st_ino, status.st_size) == (inode, size):
                    return path
            del self._known[key]
        for folder in self._readable():
            path = folder / f"{key}.so"
            if read_sealed(path) is not None:
                return self._remember(key, path)
        return None

    def add(self, key: str, make: Callable[[Path], None]) -> Path:
        """Let `make` write an object to the path that it is given, and keep it under the key.

        `make` is called again where the folder turns out to be full or not writable, which it says
        by an OSError. Raises BackendError where no folder can be written.
        """
        def made(path: Path) -> None:
            make(path)
            seal(path)

        return self._remember(key, self._placed(f"{key}.so", made))

    def read(self, name: str) -> bytes | None:
        """What `write` kept under a name, if it is there, whole, and ours."""
        for folder in self._readable():
            data = read_sealed(folder / name)
            if data is not None:
                _touch(folder / name)
                return data
        return None

    def write(self, name: str, data: bytes) -> Path:
        """Keep bytes under a name, sealed by their hash."""
        return self._placed(name, lambda path: _write_private(path, data + _hash_of(data)))

    def _remember(self, key: str, path: Path) -> Path:
        _touch(path)
        with contextlib.suppress(OSError):
            status = os.stat(path)
            self._known[key] = (path, status.st_ino, status.st_size)
        return path

    # --- folders

    def _readable(self) -> Iterator[Path]:
        if self.folder is not None and _is_private(self.folder):
            yield self.folder
        if self._own is not None:
            yield self._own

    def _placed(self, name: str, make: Callable[[Path], None]) -> Path:
        if self.folder is not None and self._writable:
            try:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                if not _is_private(self.folder):
                    raise PermissionError("it is not a folder of yours that others cannot write")
                return self._put(self.folder, name, make)
            except OSError as error:
                self._writable = False
                reason = error.strerror or str(error)
                warnings.warn(f"functrans cannot keep compiled programs in {self.folder} "
                              f"({reason}): every process compiles its own.", RuntimeWarning,
                              stacklevel=3)
        return self._put(self._own_folder(), name, make)

    def _put(self, folder: Path, name: str, make: Callable[[Path], None]) -> Path:
        new = folder / unique_name("new")
        try:
            make(new)
            size = os.stat(new).st_size
            os.replace(new, folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
        self._unseen += size
        if self._unseen > self.limit_bytes // 16:  # reading 1000 entries takes 3 ms
            self._unseen = 0
            evict(folder, self.limit_bytes, keep=name)
        return folder / name

    def _own_folder(self) -> Path:
        if self._own is None:
            for parent in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp", "/dev/shm"):
                folder = Path(parent or "/tmp") / unique_name("functrans").lstrip(".")
                with contextlib.suppress(OSError):
                    folder.mkdir(mode=0o700)
                    self._own, self._own_pid = folder, os.getpid()
                    atexit.register(self._remove_own)
                    break
            else:
                raise BackendError("there is no folder to keep compiled programs in.", where=None,
                                   why="neither the cache folder nor TMPDIR, /tmp, /var/tmp or "
                                       "/dev/shm can be written",
                                   fix="set TMPDIR or XDG_CACHE_HOME to a folder with room")
        return self._own

    def _remove_own(self) -> None:
        if self._own is None or os.getpid() != self._own_pid:  # a forked child may still run
            return
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._own):
                if not entry.name.startswith("refused-"):  # a message names it
                    os.unlink(entry.path)
            os.rmdir(self._own)


def seal(path: Path) -> None:
    """Append the hash of a file to it, and let its owner alone write it, whatever the umask."""
    with open(path, "r+b") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(_hash_of(file.read()))


def read_sealed(path: Path) -> bytes | None:
    """The content of a file that `seal` closed; None where it is not whole or not ours."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode) \
                    or status.st_mode & 0o022:
                return None
            data = file.read()
    except OSError:
        return None
    content = data[:-HASH_BYTES]
    return content if content and _hash_of(content) == data[-HASH_BYTES:] else None


def _hash_of(data: bytes) -> bytes:
    return blake2b(data, digest_size=HASH_BYTES).digest()


def evict(folder: Path, limit_bytes: int, keep: str = "") -> None:
    """Remove the least recently used entries down to 3/4 of the limit, and old temporaries.

    The entry named `keep` stays, however large it is.
    """
    entries: list[tuple[float, int, str]] = []
    stale = time.time() - STALE_SECONDS
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(SUFFIXES):
                    age = float("inf") if entry.name == keep else status.st_mtime
                    entries.append((age, status.st_size, entry.path))
                elif entry.name.startswith((".new-", ".work-")) and status.st_mtime < stale:
                    _remove(entry.path)
    total = sum(size for _, size, _ in entries)
    if total <= limit_bytes:
        return
    for age, size, path in sorted(entries):
        if total <= limit_bytes * 3 // 4 or age == float("inf"):
            return
        _remove(path)
        total -= size


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            for name in os.listdir(path):
                os.unlink(os.path.join(path, name))
            os.rmdir(path)
        else:
            os.unlink(path)


def _touch(path: Path) -> None:
    """Mark an entry as used now."""
    with contextlib.suppress(OSError):
        os.utime(path)


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(data)


def _is_private(folder: Path) -> bool:
    """Whether a folder is ours, and nobody else can put programs there."""
    try:
        status = os.stat(folder)
    except OSError:
        return False
    return (stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            and not status.st_mode & 0o022)


def program_cache() -> Cache:
    """The cache of this user: `functrans` in XDG_CACHE_HOME, or in ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # relative ones are to be ignored, says the convention
        base = os.path.expanduser("~/.cache")
    return _cache_in(base)


@memoized
def _cache_in(base: str) -> Cache:
    return Cache(Path(base) / "functrans" if os.path.isabs(base) else None)
