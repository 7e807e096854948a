"""Whatever operation of the cache on a file fails, the result is right, and the reason is named."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from itertools import cycle

import numpy as np
import pytest
from faults import Faults

import functrans as ft
from functrans.core.errors import BackendError
from functrans.lowering.c.toolchain import compile_shared
from functrans.lowering.store import cache as module
from functrans.lowering.store.cache import Cache
from functrans.lowering.triton.machine import kernel_cache
from functrans.lowering.triton.machine.unit import Binary, Unit

CODES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE)
KEY, OTHER = "a" * 64, "b" * 64
X = np.arange(6, dtype=np.float32)


def write(path):
    path.write_bytes(b"program")


def use(cache):
    """All that programs ask of a cache."""
    cache.keep(f"{KEY}.manifest", b"text")
    found = cache.find(KEY) or cache.add(KEY, write)
    return found.read_bytes()[:7], cache.find(KEY) is not None


def operations(run):
    with Faults() as faults:
        run()
    return len(faults.done)


def said(caught):
    return [str(w.message) for w in caught]


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
@pytest.mark.parametrize("there", [False, True], ids=["first use", "later use"])
def test_one_operation_fails(tmp_path, code, there):
    def fresh(name):
        cache = Cache(tmp_path / name, limit_bytes=1)  # which looks for old entries each time
        if there:
            use(cache)
        return Cache(cache.folder, limit_bytes=1)
    count = operations(lambda: use(fresh("counted")))
    assert count > 5
    for k in range(count):
        cache = fresh(str(k))
        with warnings.catch_warnings(record=True) as caught, Faults(code, k):
            warnings.simplefilter("always")
            assert use(cache) == (b"program", True)
        assert all(os.strerror(code) in text for text in said(caught)), said(caught)
        assert len(caught) <= 1, said(caught)


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_the_whole_folder_fails(tmp_path, code):
    cache = Cache(tmp_path / "cache")
    with pytest.warns(RuntimeWarning, match=os.strerror(code)) as caught, \
            Faults(code, 0, forever=True, below=cache.folder):
        assert use(cache) == (b"program", True)
        assert cache.add(OTHER, write).exists()
    assert len(caught) == 1
    assert str(cache.folder) in said(caught)[0] and "every process compiles its own" in \
        said(caught)[0]
    if code in (errno.ENOSPC, errno.EDQUOT):
        assert "Fix: free room on its disk, or set XDG_CACHE_HOME" in said(caught)[0]
    cache._remove_own()


def test_the_next_temporary_folder_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "full"))
    monkeypatch.setattr(module, "TEMPORARY", (str(tmp_path / "absent"), str(tmp_path / "roomy")))
    (tmp_path / "full").mkdir()
    (tmp_path / "roomy").mkdir()
    cache = Cache(None)
    with Faults(errno.ENOSPC, 1, forever=True, below=tmp_path / "full"):  # it makes the folder
        assert use(cache) == (b"program", True)
    assert cache.find(KEY).parent.parent == tmp_path / "roomy"
    cache._remove_own()


def test_no_folder_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TEMPORARY", (str(tmp_path),))
    monkeypatch.delenv("TMPDIR", raising=False)
    cache = Cache(tmp_path / "cache")
    with pytest.warns(RuntimeWarning, match="No space left"), \
            Faults(errno.ENOSPC, 0, forever=True, below=tmp_path):
        cache.keep("a.manifest", b"text")  # is only sparing work
        with pytest.raises(BackendError, match="no folder to keep compiled programs") as error:
            cache.add(KEY, write)
    text = str(error.value)
    assert f"{tmp_path}: No space left on device" in text
    assert "XDG_CACHE_HOME" in text and "defect" not in text


def test_a_folder_in_place_of_an_entry_loses_that_entry_alone(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.add(OTHER, write)
    (cache.folder / f"{KEY}.so").mkdir()
    assert cache.find(KEY) is None
    with pytest.warns(RuntimeWarning, match=f"as {KEY}.so .*directory.*remove what is there"):
        path = cache.add(KEY, write)
    assert path.parent != cache.folder and cache.find(KEY) == path
    assert cache.add("c" * 64, write).parent == cache.folder
    cache._remove_own()


# --- programs

def compiled_again(k):
    """A program that no cache knows, and whether its result is right."""
    result = ft.jit(lambda x: x * np.float32(k + 0.5) + 1)(X)
    assert np.array_equal(result, X * np.float32(k + 0.5) + 1)


@pytest.fixture
def home(tmp_path, monkeypatch):
    def choose(name):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        return tmp_path / name
    return choose


def test_one_operation_of_a_compilation_fails(home):
    home("counted")
    count = operations(lambda: compiled_again(1000))
    for k, code in zip(range(count), cycle(CODES)):
        home(str(k))
        with warnings.catch_warnings(record=True) as caught, Faults(code, k):
            warnings.simplefilter("always")
            compiled_again(k)
        assert all(os.strerror(code) in text for text in said(caught)), said(caught)


def test_an_object_that_cannot_be_loaded_is_made_again(home):
    folder = home("noexec") / "functrans"
    compiled_again(0)
    cut = next(folder.glob("*.so"))
    data = b"\x7fELF" + cut.read_bytes()[4:-32][:600]
    cut.write_bytes(data + module._hash_of(data))  # whole for the cache, and not for the loader
    cut.chmod(0o600)
    ft.clear_caches()
    with pytest.warns(RuntimeWarning, match="cannot load compiled programs"):
        compiled_again(0)


def test_kernels_that_cannot_be_kept(tmp_path, monkeypatch):
    cache = Cache(tmp_path / "cache")
    binary = Binary("k", "pp", 4, 2, 0, 0, 1, 8, 0, "ptx", b"cubin")
    unit = Unit("source", "k", ("*fp32",), (True,), 4, 2, False, 90, 1 << 16)
    monkeypatch.setattr("functrans.lowering.triton.machine.pool.compile_all",
                        lambda units, done: [done(k, binary) for k in range(len(units))])
    with pytest.warns(RuntimeWarning, match="No space left"), \
            Faults(errno.ENOSPC, 0, forever=True, below=cache.folder):
        assert kernel_cache.compiled_units([unit], cache) == [binary]


def test_a_compiler_whose_disk_is_full_has_no_words(tmp_path, monkeypatch):
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        compile_shared(["int f;"], ["-O1"], tmp_path / "out.so")


FULL = textwrap.dedent("""
    import sys, warnings
    import numpy as np
    import functrans as ft
    x = np.arange(6., dtype="f")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(3):
            assert np.array_equal(ft.jit(lambda x: x * k + 1)(x), x * k + 1)
    (told,) = caught
    print(told.message)
""")


def mount(folder, size):
    """A small disk, seen by the processes of a namespace of our own; None where there are none."""
    return ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size={size} none {folder} && '
            'exec "$@"', "sh"]


@pytest.mark.parametrize("size", ["4k", "64k"])
def test_a_disk_that_is_full(tmp_path, size):
    folder = tmp_path / "home"
    (folder / "functrans").mkdir(parents=True, mode=0o700)
    inside = mount(folder, size)
    command = [sys.executable, "-c", FULL]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"]).returncode != 0:
        # no namespaces here: no file of the process may be longer
        command = ["sh", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "sh", *command]
        inside = []
    done = subprocess.run([*inside, *command], capture_output=True, text=True,
                          env={**os.environ, "XDG_CACHE_HOME": str(folder)})
    assert done.returncode == 0, done.stderr
    assert "Fix: free room on its disk" in done.stdout and str(folder) in done.stdout
