"""The C compiler as a part that fails: absent, refusing, hanging, interrupted, out of room."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans.core.errors import BackendError
from functrans.lowering.c import toolchain
from functrans.lowering.c.isa import AVX2, AVX512, GENERIC, NEON
from functrans.lowering.c.toolchain import (
    CompilerError,
    CompilerMissing,
    compile_shared,
    compiler,
    compiler_identity,
)

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
ADD = "int add(int a, int b) { return a + b; }\n"
FLAGS = ("-std=gnu11", "-O1")


def fake_compiler(folder, script, monkeypatch):
    path = folder / "fake-cc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    return path


def left_in(folder):
    """What a compilation left, but for what it means to leave."""
    return [p.name for p in folder.iterdir()
            if not p.name.startswith(("refused-", "compiler-", "fake-"))]


def build(folder, *sources, flags=FLAGS):
    compile_shared(sources, flags, folder / "out.so")
    assert left_in(folder) == ["out.so"]
    return ctypes.CDLL(str(folder / "out.so"))


@needs_compiler
def test_one_unit(tmp_path):
    assert build(tmp_path, ADD).add(3, 4) == 7


@needs_compiler
def test_units_call_each_other(tmp_path):
    units = [f"int f{k - 1}(int); int f{k}(int x) {{ return f{k - 1}(x) * 2 + {k}; }}"
             for k in range(1, 4)]
    assert build(tmp_path, "int f0(int x) { return x; }", *units).f3(1) == 8 + 4 + 4 + 3


@needs_compiler
def test_more_units_than_cores(tmp_path):
    sources = [f"int f{k}(void) {{ return {k}; }}" for k in range(12)]
    library = build(tmp_path, *sources)
    assert [getattr(library, f"f{k}")() for k in range(12)] == list(range(12))


@needs_compiler
def test_the_driver_does_what_its_passes_do(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "_tools", lambda *args: None)
    assert build(tmp_path, ADD, "int one(void) { return 1; }").add(3, 4) == 7


@needs_compiler
def test_flags_that_only_the_driver_knows(tmp_path):
    flags = (*FLAGS, "-march=native") if os.uname().machine == "x86_64" else (*FLAGS, "-pthread")
    assert build(tmp_path, ADD, flags=flags).add(3, 4) == 7


@needs_compiler
def test_what_only_the_compilers_library_has(tmp_path):
    """Division of 128 bits is a call of libgcc, which the linker alone does not find."""
    source = ("__int128 half(__int128 x, __int128 y) { return x / y; }\n"
              "long long f(long long x) { return half((__int128)x << 64, (__int128)2 << 64); }")
    library = build(tmp_path, source)
    assert library.f(10) == 5


@needs_compiler
def test_passes_that_vanished(tmp_path, monkeypatch):
    gone = toolchain._Tools(("/nowhere/cc1",), ("/nowhere/as",), ("/nowhere/ld",))
    monkeypatch.setattr(toolchain, "_tools", lambda *args: gone)
    assert build(tmp_path, ADD).add(3, 4) == 7


@needs_compiler
def test_what_the_driver_said_is_remembered_and_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "_known_tools", {})
    build(tmp_path, ADD)
    for memory in tmp_path.glob("compiler-*"):
        memory.write_bytes(memory.read_bytes()[:-200] + b"\xff")
    monkeypatch.setattr(toolchain, "_known_tools", {})
    assert build(tmp_path, ADD).add(3, 4) == 7


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "_wheel_compiler", lambda: None)
    toolchain._compiler.cache_clear()
    with pytest.raises(CompilerMissing, match="apt-get install gcc"):
        compiler()
    with pytest.raises(CompilerMissing, match=r"pip install 'functrans\[compiler\]'"):
        compiler()
    with pytest.raises(CompilerMissing):
        compile_shared([ADD], FLAGS, tmp_path / "out.so")
    assert left_in(tmp_path) == []


def wheel_with_compiler(folder, monkeypatch):
    """A package ziglang whose program is not the real one, the first on the way of imports."""
    package = folder / "site" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "zig").write_text("#!/bin/sh\n")
    (package / "zig").chmod(0o755)
    monkeypatch.syspath_prepend(str(folder / "site"))
    monkeypatch.delitem(sys.modules, "ziglang", raising=False)
    monkeypatch.delenv("CC", raising=False)
    return package / "zig"


def test_the_compiler_of_the_wheel_comes_last(monkeypatch, tmp_path):
    zig = wheel_with_compiler(tmp_path, monkeypatch)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert compiler()[:2] == (str(zig), "cc")
    assert "-mcpu=baseline" in compiler()  # the instruction set is ours to choose
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "clang").write_text("#!/bin/sh\n")
    (tmp_path / "more" / "clang").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "more"))
    assert compiler() == (str(tmp_path / "more" / "clang"),)


@pytest.mark.parametrize(("name", "expected"), [
    ("/usr/bin/gcc 1 2", AVX512), ("/usr/bin/clang-14 1 2", AVX2),
    ("/site/ziglang/zig 1 2", GENERIC)])
def test_instructions_are_those_that_the_compiler_has_builtins_for(monkeypatch, name, expected):
    monkeypatch.setattr(toolchain, "host_isa", lambda: AVX512)
    monkeypatch.setattr(toolchain, "compiler_identity", lambda: name)
    assert toolchain.compiled_isa() == expected
    monkeypatch.setattr(toolchain, "host_isa", lambda: NEON)  # written without builtins
    assert toolchain.compiled_isa() == NEON


@pytest.mark.skipif(shutil.which("clang") is None, reason="no Clang")
def test_clang_compiles_what_jit_generates(monkeypatch):
    monkeypatch.setenv("CC", "clang")
    x = np.linspace(-3, 3, 4001, dtype=np.float32)
    fun = ft.jit(lambda x: ft.numpy.where(x > 0, ft.numpy.tanh(x), x * x).sum())
    expected = np.where(x > 0, np.tanh(x.astype(np.float64)), x.astype(np.float64)**2).sum()
    np.testing.assert_allclose(fun(x), expected, rtol=1e-5)


@needs_compiler
def test_CC_is_respected(monkeypatch, tmp_path):
    first = compiler_identity()
    real = compiler()[0]
    fake = fake_compiler(tmp_path, f'echo called >> {tmp_path}/fake-log; exec {real} "$@"',
                         monkeypatch)
    monkeypatch.setenv("CC", f"{fake} -DANSWER=42")
    assert compiler() == (str(fake), "-DANSWER=42")
    assert compiler_identity() != first
    monkeypatch.setattr(toolchain, "_tools", lambda *args: None)
    assert build(tmp_path, "int answer(void) { return ANSWER; }").answer() == 42
    assert (tmp_path / "fake-log").exists()


def test_a_compiler_that_cannot_be_run(monkeypatch, tmp_path):
    (tmp_path / "fake-cc").write_text("no program at all")
    (tmp_path / "fake-cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "fake-cc"))
    with pytest.raises(CompilerMissing, match="cannot be run"):
        compile_shared([ADD], FLAGS, tmp_path / "out.so")
    assert left_in(tmp_path) == []


@needs_compiler
def test_a_refused_program_is_kept(tmp_path):
    with pytest.raises(CompilerError, match="refused-") as error:
        compile_shared([ADD, "int f(void) { return undeclared; }"], FLAGS, tmp_path / "out.so")
    (kept,) = tmp_path.glob("refused-*.c")
    assert f"{kept.name}:1:" in error.value.why and "undeclared" in error.value.why
    assert kept.read_text() == "int f(void) { return undeclared; }"
    assert left_in(tmp_path) == []


def test_a_compiler_that_always_fails(monkeypatch, tmp_path):
    fake_compiler(tmp_path, "echo internal compiler error: out of ideas >&2; exit 4", monkeypatch)
    with pytest.raises(CompilerError, match="out of ideas") as error:
        compile_shared([ADD], FLAGS, tmp_path / "out.so")
    assert "exit status 4" in error.value.why
    assert left_in(tmp_path) == []


def test_a_compiler_that_crashes(monkeypatch, tmp_path):
    fake_compiler(tmp_path, "kill -SEGV $$", monkeypatch)
    with pytest.raises(CompilerError, match="SIGSEGV"):
        compile_shared([ADD], FLAGS, tmp_path / "out.so")


def test_a_compiler_that_writes_nothing(monkeypatch, tmp_path):
    fake_compiler(tmp_path, "exit 0", monkeypatch)
    with pytest.raises(CompilerError, match="does not load"):
        compile_shared([ADD], FLAGS, tmp_path / "out.so")


def test_a_full_disk_is_no_compiler_error(monkeypatch, tmp_path):
    fake_compiler(tmp_path, "echo 'as: out.o: No space left on device' >&2; exit 1", monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        compile_shared([ADD], FLAGS, tmp_path / "out.so")
    assert left_in(tmp_path) == []


INTERRUPTED = """
import signal
import sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # Python has none where it is ignored
from functrans.lowering.c.toolchain import compile_shared
try:
    compile_shared(["int f;"] * 3, [], Path(sys.argv[1]) / "out.so")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def eventually(condition):
    for _ in range(3000):
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_ctrl_c_kills_a_hanging_compiler_and_what_it_started(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    log = tmp_path / "pids"
    fake_compiler(tmp_path, f'case "$*" in *-###*) exit 1;; esac\n'
                            f"sleep 1000 & echo $$ $! >> {log}; wait", monkeypatch)
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(folder)],
                          stdout=subprocess.PIPE, text=True) as process:
        assert eventually(lambda: log.exists() and log.read_text().endswith("\n"))
        out = ""
        for _ in range(3):  # one that comes just before the wait is seen only after it
            process.send_signal(signal.SIGINT)
            try:
                out, _ = process.communicate(timeout=20)
                break
            except subprocess.TimeoutExpired:
                continue
        process.kill()
    assert out == "interrupted\n"
    for pid in log.read_text().split():
        assert eventually(lambda pid=pid: not is_alive(pid))
    assert left_in(folder) == []


@pytest.mark.parametrize("named", ["/nonexistent", "nonexistent-cc -m64", "/", "gcc '-m64"])
def test_a_cc_that_is_no_compiler_is_an_error(monkeypatch, tmp_path, named):
    monkeypatch.setenv("CC", named)
    with pytest.raises(BackendError, match="CC") as error:
        compile_shared([ADD], FLAGS, tmp_path / "out.so")
    assert not isinstance(error.value, CompilerMissing)  # for which NumPy would evaluate
    assert named.split()[0] in str(error.value) and "unset CC" in error.value.fix
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("arguments", ["-DX=1", "'-DX=\"a b\"'"])
def test_a_cc_with_arguments(monkeypatch, tmp_path, arguments):
    monkeypatch.setenv("CC", f"gcc {arguments}")
    compile_shared([ADD], FLAGS, tmp_path / "out.so")
    assert (tmp_path / "out.so").exists()
