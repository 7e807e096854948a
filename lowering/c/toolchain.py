"""The C compiler: found, run on several texts side by side, and its failures explained.

A small unit takes gcc 22-30 ms, its assembler 4, and the linker 12 through the driver or 5 by
itself: the linker is called directly where that works.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from functrans.core.errors import BackendError

__all__ = ["CompilerError", "CompilerMissing", "compile_shared", "compiler", "compiler_identity"]

# Programs are position independent, need no unwinding, and nothing of the C library but what the
# process has already.
COMPILE_FLAGS = ("-fPIC", "-g0", "-fno-asynchronous-unwind-tables", "-fno-ident",
                 "-fno-stack-protector", "-w", "-pipe")
LINK_FLAGS = ("-shared", "--hash-style=gnu", "-z", "noexecstack", "--build-id=none")


class CompilerMissing(BackendError):
    """There is no C compiler on this machine."""


class CompilerError(BackendError):
    """The C compiler refused a generated program: a defect of functrans or of the compiler."""


@cache
def compiler() -> str:
    """The path of the C compiler: the variable CC, else cc, gcc or clang.

    Raises CompilerMissing when there is none.
    """
    for name in (os.environ.get("CC", "").split(" ")[0], "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path is not None:
            return path
    raise CompilerMissing("no C compiler was found.", where=None,
                          why="compiled functions are C programs, and neither CC nor cc, gcc or "
                              "clang on PATH is one.",
                          fix="apt-get install gcc (Debian, Ubuntu), or conda install gcc")


@cache
def compiler_identity() -> str:
    """What tells one compiler from another, without running it."""
    path = os.path.realpath(compiler())
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


@cache
def _linker() -> str | None:
    return shutil.which("ld")


def compile_shared(sources: Sequence[str], flags: Sequence[str], destination: Path) -> None:
    """Compile C texts, each a unit, side by side on the cores, to one shared object.

    Raises CompilerMissing, and CompilerError with the compiler's words. When it is interrupted, the
    compilers are stopped and nothing is left.
    """
    with tempfile.TemporaryDirectory(prefix="functrans-") as folder:
        objects = [Path(folder) / f"unit{k}.o" for k in range(len(sources))]
        commands = [[compiler(), *flags, *COMPILE_FLAGS, "-x", "c", "-c", "-", "-o", str(o)]
                    for o in objects]
        _compile_units(commands, sources, os.cpu_count() or 1)
        _link(objects, Path(folder) / "program.so")
        shutil.move(Path(folder) / "program.so", destination)


def _compile_units(commands: Sequence[list[str]], sources: Sequence[str], at_once: int) -> None:
    running: list[tuple[subprocess.Popen[bytes], list[str], str]] = []
    waiting = list(zip(commands, sources, strict=True))[::-1]
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                command, source = waiting.pop()
                running.append((_started(command, source), command, source))
            process, command, source = running[0]
            _, errors = process.communicate()
            running.pop(0)
            if process.returncode != 0:
                raise _refused(command, source, errors)
    finally:
        for process, _, _ in running:
            with contextlib.suppress(OSError):
                process.kill()
            process.communicate()


def _started(command: list[str], source: str) -> subprocess.Popen[bytes]:
    # the text goes through a file that is already unlinked: a pipe would need a writer
    with tempfile.TemporaryFile() as text:
        text.write(source.encode())
        text.seek(0)
        try:
            return subprocess.Popen(command, stdin=text, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, close_fds=False)
        except OSError as error:
            raise CompilerMissing(f"the C compiler {command[0]} cannot be run: {error}.",
                                  where=None, fix="apt-get install gcc") from error


def _link(objects: Sequence[Path], destination: Path) -> None:
    files = [str(o) for o in objects]
    linker = _linker()
    if linker is not None:
        done = subprocess.run([linker, *LINK_FLAGS, *files, "-o", str(destination)],
                              capture_output=True, close_fds=False, check=False)
        if done.returncode == 0:
            return
    command = [compiler(), "-shared", *files, "-o", str(destination), "-lm"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise _refused(command, "", done.stderr)


def _refused(command: Sequence[str], source: str, errors: bytes) -> CompilerError:
    lines = errors.decode(errors="replace").splitlines()
    kept = ""
    if source:
        with tempfile.NamedTemporaryFile("w", suffix=".c", prefix="functrans-refused-",
                                         delete=False) as file:
            file.write(source)
            kept = f" The program is kept in {file.name}."
    first = "\n".join(lines[:8])
    return CompilerError(f"the C compiler failed on a generated program.{kept}",
                         why=f"{' '.join(command[:1])}: {first}",
                         fix="jit under ft.config.use_backend('reference') evaluates with NumPy; "
                             "please report the program")
