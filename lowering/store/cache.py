"""The disk cache of compiled programs: shared objects by the hash of all that they depend on.

An entry is one file, `<key>.so`: the object and, behind it, the hash of the object, which the
loader does not read. One file cannot disagree with itself however many processes write it. It is
written under another name and renamed; what is truncated, changed or another user's is compiled
again. Where the folder cannot be used the process keeps its programs in a folder of its own; where
one entry cannot, that entry alone.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import errno
import os
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache as memoized
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

from functrans.core.errors import BackendError

__all__ = ["PARSING", "Schema", "find_manifest", "literal", "matches", "store_manifest"]


try:  # as `random` does: hashlib brings OpenSSL, 3 ms of a program's first result
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["FORMAT", "Cache", "digest", "program_cache", "unique_name"]

LIMIT_BYTES: Final = 512 * 2**20
FORMAT: Final = "3"
"""Changes with the format of entries and with the interface between programs and the runtime."""
HASH_BYTES: Final = 32
TEMPORARY: Final = ("/tmp", "/var/tmp", "/dev/shm")
SUFFIXES: Final = (".so", ".manifest", ".kernel", ".tuned")
ONE_ENTRY: Final = frozenset({errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EMFILE,
                              errno.ENFILE, errno.EINTR, errno.EAGAIN, errno.ENOMEM})
"""Errors that say nothing of the folder: another entry may well be kept."""
OUT_OF_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NOT_MAPPABLE: Final = "failed to map segment"
"""What the loader says of a folder whose programs may not run (mounted with `noexec`)."""
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
        self._warned: set[str] = set()
        self._disowned: set[str] = set()
        self._own: list[Path] = []
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
        for folder in self._readable(f"{key}.so"):
            path = folder / f"{key}.so"
            if read_sealed(path) is not None:
                return self._remember(key, path)
        return None

    def add(self, key: str, make: Callable[[Path], None]) -> Path:
        """Let `make` write an object to the path that it is given, and keep it under the key.

        `make` is called again where the folder turns out to be full or not writable, which it says
        by an OSError. Raises BackendError where no folder can be written, with the reasons.
        """
        def made(path: Path) -> None:
            make(path)
            seal(path)

        return self._remember(key, self._placed(f"{key}.so", made))

    def read(self, name: str) -> bytes | None:
        """What `write` kept under a name, if it is there, whole, and ours."""
        for folder in self._readable(name):
            data = read_sealed(folder / name)
            if data is not None:
                _touch(folder / name)
                return data
        return None

    def write(self, name: str, data: bytes) -> Path:
        """Keep bytes under a name, sealed by their hash. Raises as `add`."""
        return self._placed(name, lambda path: _write_private(path, data + _hash_of(data)))

    def keep(self, name: str, data: bytes) -> None:
        """As `write`, for what is only sparing work: where no folder can be written it is not kept,
        which the warning about the folder says."""
        with contextlib.suppress(BackendError):
            self.write(name, data)

    def disown(self, key: str, error: OSError) -> None:
        """Forget an object that is whole but cannot be loaded from the folder where it is (which
        may be mounted without `exec`): it is made again, in a folder of this process."""
        self._known.pop(key, None)
        self._disowned.add(f"{key}.so")
        self._warn(f"load compiled programs from {self.folder}", str(error),
                   "set XDG_CACHE_HOME to a folder from which programs may run"
                   if NOT_MAPPABLE in str(error) else "")

    def _remember(self, key: str, path: Path) -> Path:
        _touch(path)
        with contextlib.suppress(OSError):
            status = os.stat(path)
            self._known[key] = (path, status.st_ino, status.st_size)
        return path

    # --- folders

    def _readable(self, name: str) -> Iterator[Path]:
        if self.folder is not None and name not in self._disowned and _is_private(self.folder):
            yield self.folder
        yield from self._own

    def _placed(self, name: str, make: Callable[[Path], None]) -> Path:
        refused = []
        if self.folder is not None and self._writable and name not in self._disowned:
            try:
                if not _is_owned(_made(self.folder)):
                    raise PermissionError("it is not a folder of yours that others cannot write")
                return self._put(self.folder, name, make)
            except OSError as error:
                self._lost(name, error)
                refused.append((self.folder, error))
        for folder in self._own_folders(refused):
            try:
                return self._put(folder, name, make)
            except OSError as error:
                refused.append((folder, error))
        raise _no_folder(refused)

    def _lost(self, name: str, error: OSError) -> None:
        """Say that the folder does not keep an entry, and whether it is asked for others."""
        reason = error.strerror or str(error)
        if error.errno in ONE_ENTRY:
            in_place = error.errno in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST)
            place = f" as {name}" if in_place else ""
            self._warn(f"keep a compiled program in {self.folder}{place}", reason,
                       "remove what is there" if in_place else "close files, or raise `ulimit -n`"
                       if error.errno in (errno.EMFILE, errno.ENFILE) else "")
            return
        self._writable = False
        self._warn(f"keep compiled programs in {self.folder}", reason,
                   "free room on its disk, or set XDG_CACHE_HOME to a folder on another"
                   if error.errno in OUT_OF_ROOM else
                   "set XDG_CACHE_HOME to a folder that you can write")

    def _warn(self, what: str, reason: str, fix: str) -> None:
        text = (f"functrans cannot {what} ({reason}): every process compiles its own."
                f"{fix and f' Fix: {fix}.'}")
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, RuntimeWarning, stacklevel=4)

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

    def _own_folders(self, refused: list[tuple[Path, OSError]]) -> Iterator[Path]:
        """Folders of this process, the newest first; made where those before cannot be written."""
        yield from self._own[::-1]
        given = os.environ.get("TMPDIR", "")
        for parent in dict.fromkeys(map(Path, filter(None, (given, *TEMPORARY)))):
            if any(folder.parent == parent for folder in self._own):
                continue
            folder = parent / unique_name("functrans").lstrip(".")
            try:
                folder.mkdir(mode=0o700)
            except OSError as error:
                refused.append((parent, error))
                continue
            if not self._own:
                self._own_pid = os.getpid()
                atexit.register(self._remove_own)
            self._own.append(folder)
            yield folder

    def _remove_own(self) -> None:
        if os.getpid() != self._own_pid:  # a forked child may still run
            return
        for folder in self._own:
            with contextlib.suppress(OSError):
                for entry in os.scandir(folder):
                    if not entry.name.startswith("refused-"):  # a message names it
                        os.unlink(entry.path)
                os.rmdir(folder)


def _no_folder(refused: list[tuple[Path, OSError]]) -> BackendError:
    lines = [f"{folder}: {error.strerror or error}" for folder, error in refused]
    return BackendError("there is no folder to keep compiled programs in.", where=None,
                        why="\n".join(["none of these can be written:", *lines]),
                        fix="free room in one of them, or set TMPDIR or XDG_CACHE_HOME to a folder "
                            "with room. Until then ft.config.use_backend('reference') evaluates "
                            "with NumPy")


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
        return _is_owned(os.stat(folder))
    except OSError:
        return False


def _made(folder: Path) -> os.stat_result:
    try:
        return os.stat(folder)
    except FileNotFoundError:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return os.stat(folder)


def _is_owned(status: os.stat_result) -> bool:
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


# --- Descriptions of compiled programs on disk: what spares a known jaxpr its lowering
#
# A manifest is a Python literal beside the shared object that it describes, sealed by its hash like
# the object (their parser is there already; `json` takes 2 ms to import). It is read against a
# schema: whatever is not as expected is a miss, and the program is made anew.

Schema: TypeAlias = Any
"""A type (exactly: a bool is no int); None; [schema] for lists; {name: schema} for objects with
just these names; (schema, schema, ...) for alternatives."""

PARSING: Final = Lock()
"""Held while Python makes a syntax tree of objects: before 3.11.5 threads that do so disturb each
other (SystemError, "recursion depth mismatch": CPython, gh-106905)."""

ENTRY: Final[Schema] = {"format": str, "object": str, "program": dict}


def literal(data: bytes) -> Any:
    """The value of a Python literal. Raises ValueError, TypeError, SyntaxError, MemoryError or
    RecursionError for something else."""
    with PARSING:
        return ast.literal_eval(data.decode())


def store_manifest(cache: Cache, key: str, manifest: dict[str, Any], shared: Path) -> None:
    """Keep the manifest of the program in `shared`, which came from `load_or_compile`.

    `key` is a fingerprint (`cache.digest`) of the jaxpr and of all that its lowering depends on.
    """
    entry = {"format": FORMAT, "object": shared.stem, "program": manifest}
    cache.keep(f"{key}.manifest", repr(entry).encode())


def find_manifest(cache: Cache, key: str, schema: Schema) -> tuple[dict[str, Any], Path] | None:
    """The manifest of a key and its shared object; None unless both are there, whole and ours.

    0.1 ms, without a look at the compiler: a machine without one runs what another run compiled.
    """
    data = cache.read(f"{key}.manifest")
    if data is None:
        return None
    try:
        entry = literal(data)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if not matches(entry, ENTRY) or entry["format"] != FORMAT:
        return None
    program: dict[str, Any] = entry["program"]
    if not matches(program, schema) or not entry["object"].isalnum():
        return None
    shared = cache.find(entry["object"])
    return None if shared is None else (program, shared)


def matches(value: object, schema: Schema) -> bool:
    """Whether a literal is as a schema says.

    >>> matches({"shape": [2, None]}, {"shape": [(int, None)]})
    True
    >>> matches({"shape": [2, True]}, {"shape": [(int, None)]})
    False
    """
    if isinstance(schema, tuple):
        return any(matches(value, s) for s in schema)
    if isinstance(schema, list):
        return type(value) is list and all(matches(v, schema[0]) for v in value)
    if isinstance(schema, dict):
        return (isinstance(value, dict) and value.keys() == schema.keys()
                and all(matches(value[name], s) for name, s in schema.items()))
    return value is None if schema is None else type(value) is schema
