"""The disk cache: hits, and everything that must not be trusted, or cannot be written."""

import ctypes
import errno
import os
import shutil
import stat
import subprocess
import sys
import threading

import pytest

from functrans.lowering.c import lower
from functrans.lowering.c.lower import load_or_compile
from functrans.lowering.store.cache import Cache, digest, program_cache

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
KEY = "a" * 64
SOURCE = "int f(void) { return 7; }"


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


class Maker:
    """Writes an object, and counts how often it was asked; fails first with the errors given."""

    def __init__(self, content=b"program", *errors):
        self.content, self.errors, self.calls = content, list(errors), 0

    def __call__(self, path):
        self.calls += 1
        path.write_bytes(self.content)
        if self.errors:
            raise self.errors.pop(0)


def entries(folder):
    return sorted(p.name for p in folder.iterdir())


def reopened(cache):
    """The same folder as another process sees it."""
    return Cache(cache.folder, cache.limit_bytes)


def test_what_was_added_is_found(cache):
    assert cache.find(KEY) is None
    path = cache.add(KEY, Maker())
    assert cache.find(KEY) == path == reopened(cache).find(KEY)
    assert entries(cache.folder) == [f"{KEY}.so"]
    assert cache.find("b" * 64) is None


def test_only_the_owner_sees_the_cache(cache):
    umask = os.umask(0)
    try:
        path = cache.add(KEY, Maker())
    finally:
        os.umask(umask)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1],
    lambda data: data[: len(data) // 2],
    lambda data: b"",
    lambda data: b"x",
    lambda data: bytes([data[0] ^ 1]) + data[1:],
    lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    lambda data: data + b"more",
    lambda data: b"\x7fELF somebody else's program, unsealed and long enough to have a hash",
])
def test_damaged_entries_are_replaced(cache, damage):
    path = cache.add(KEY, Maker())
    path.write_bytes(damage(path.read_bytes()))
    other = reopened(cache)
    assert other.find(KEY) is None
    other.add(KEY, Maker())
    assert reopened(cache).find(KEY) == path


def test_an_entry_that_vanishes_is_a_miss(cache):
    cache.add(KEY, Maker()).unlink()
    assert cache.find(KEY) is None


def test_entries_that_others_could_write_are_ignored(cache):
    path = cache.add(KEY, Maker())
    path.chmod(0o622)
    assert reopened(cache).find(KEY) is None


def test_entries_of_others_are_ignored(cache, monkeypatch):
    cache.add(KEY, Maker())
    monkeypatch.setattr(os, "geteuid", lambda: 12345678)
    assert reopened(cache).find(KEY) is None


def test_a_folder_that_others_can_write_is_not_used(cache):
    cache.folder.mkdir(mode=0o700)
    cache.folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others cannot write"):
        path = cache.add(KEY, Maker())
    assert path.parent != cache.folder
    assert cache.find(KEY) == path
    assert entries(cache.folder) == []


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        cache = Cache(folder)
        assert cache.find(KEY) is None
        with pytest.warns(RuntimeWarning, match="every process compiles its own"):
            path = cache.add(KEY, Maker())
        assert cache.find(KEY) == path


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_made(cache, monkeypatch, code):
    def refuse(*args, **kwargs):
        raise OSError(code, os.strerror(code))
    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.warns(RuntimeWarning, match=os.strerror(code)):
        path = cache.add(KEY, Maker())
    assert cache.find(KEY) == path


def test_a_full_disk(cache):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    make = Maker(b"program", full)
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        path = cache.add(KEY, make)
        cache.add("b" * 64, make)  # the second time it does not try, and says nothing
    assert len(caught) == 1
    assert make.calls == 3
    assert cache.find(KEY) == path
    assert entries(cache.folder) == []


def test_full_at_the_last_step(cache, monkeypatch):
    replace = os.replace

    def full(source, target):
        if cache.folder in target.parents:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        replace(source, target)
    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning):
        path = cache.add(KEY, Maker())
    assert cache.find(KEY) == path
    assert entries(cache.folder) == []


def test_without_a_folder_nothing_is_said(monkeypatch):
    cache = Cache(None)
    assert cache.find(KEY) is None
    path = cache.add(KEY, Maker())
    assert cache.find(KEY) == path
    cache._remove_own()
    assert not path.parent.exists()


def test_an_interrupt_leaves_nothing(cache):
    with pytest.raises(KeyboardInterrupt):
        cache.add(KEY, Maker(b"half", KeyboardInterrupt()))
    assert entries(cache.folder) == []
    assert cache.find(KEY) is None


def keys(n):
    return [f"{k:064x}" for k in range(n)]


def test_the_least_recently_used_go_first(tmp_path):
    cache = Cache(tmp_path / "cache", limit_bytes=10 * 1024)
    for age, key in enumerate(keys(9)):
        path = cache.add(key, Maker(bytes(1000)))
        os.utime(path, (1000 + age, 1000 + age))
    assert reopened(cache).find(keys(9)[0]) is not None  # is now the youngest
    cache.add(KEY, Maker(bytes(2000)))
    left = entries(cache.folder)
    assert f"{keys(9)[0]}.so" in left
    assert f"{keys(9)[1]}.so" not in left
    assert f"{KEY}.so" in left
    assert sum(p.stat().st_size for p in cache.folder.iterdir()) <= cache.limit_bytes


def test_one_entry_above_the_limit_is_kept(tmp_path):
    cache = Cache(tmp_path / "cache", limit_bytes=100)
    path = cache.add(KEY, Maker(bytes(1000)))
    assert cache.find(KEY) == path


def test_old_temporaries_go_and_other_files_stay(cache):
    cache.add(KEY, Maker())
    (cache.folder / ".work-1-ab").mkdir()
    (cache.folder / ".work-1-ab" / "unit0.c").write_text("")
    for name in (".new-1-cd", ".new-2-young", "notes.txt"):
        (cache.folder / name).write_text("")
    for name in (".work-1-ab", ".new-1-cd", "notes.txt"):
        os.utime(cache.folder / name, (1000, 1000))
    reopened(cache).add("b" * 64, Maker())
    assert entries(cache.folder) == [".new-2-young", f"{KEY}.so", f"{'b' * 64}.so", "notes.txt"]


def test_keys_tell_all_parts_apart():
    same = [digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("ab", "c", ""), digest()]
    assert len(set(same)) == len(same)
    assert digest("ab", "c") == digest("ab", "c")


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert program_cache().folder == tmp_path / "functrans"
    assert program_cache() is program_cache()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert program_cache().folder == tmp_path / "home" / ".cache" / "functrans"


@needs_compiler
def test_compiled_once(cache, monkeypatch):
    path = load_or_compile([SOURCE], ["-O1"], cache)
    assert ctypes.CDLL(str(path)).f() == 7  # the hash behind it does not matter
    assert load_or_compile([SOURCE], ["-O2"], cache) != path
    monkeypatch.setattr(lower, "compile_shared", None)
    assert load_or_compile([SOURCE], ["-O1"], cache) == path
    assert load_or_compile([SOURCE], ["-O1"], reopened(cache)) == path


@needs_compiler
def test_corrupt_programs_are_compiled_again(cache):
    path = load_or_compile([SOURCE], ["-O1"], cache)
    path.write_bytes(path.read_bytes()[:1000])
    path = load_or_compile([SOURCE], ["-O1"], reopened(cache))
    assert ctypes.CDLL(str(path)).f() == 7


TWO = """
import ctypes, sys
from pathlib import Path
from functrans.lowering.store.cache import Cache
from functrans.lowering.c.lower import load_or_compile
print("ready", flush=True)
sys.stdin.readline()
cache = Cache(Path(sys.argv[1]))
for k in range(5):
    path = load_or_compile([f"int f(void) {{ return {k}; }}"], ["-O1"], cache)
    assert ctypes.CDLL(str(path)).f() == k
"""


@needs_compiler
def test_two_processes_compile_the_same_programs(cache):
    both = [subprocess.Popen([sys.executable, "-c", TWO, str(cache.folder)], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate(timeout=120)
        assert process.returncode == 0
    left = [name for name in entries(cache.folder) if not name.startswith("compiler-")]
    assert len(left) == 5 and all(name.endswith(".so") for name in left)


@needs_compiler
def test_threads_compile_the_same_program(cache):
    found = []

    def compile_it():
        found.append(load_or_compile([SOURCE], ["-O1"], cache))
    threads = [threading.Thread(target=compile_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
