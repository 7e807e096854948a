"""The C compiler: found, run on several texts side by side, and its failures explained.

The passes of gcc without its driver, the assembler reading what the compiler writes, and the linker
called directly: a unit with one kernel of 20 operations takes 25 ms of processor time,
`gcc -shared` 36. What the short way cannot do is done by the driver. A unit costs about 20 ms
of processor time before its first kernel and 4 for each further one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import shlex
import signal
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from functrans.core.errors import BackendError
from functrans.core.record import Record
from functrans.lowering.c.isa import AVX2, GENERIC, NEON, Isa, host_isa
from functrans.lowering.store.cache import NOT_MAPPABLE, OUT_OF_ROOM, unique_name

__all__ = ["Children", "CompilerError", "CompilerMissing", "compile_shared", "compiled_isa",
           "compiler", "compiler_identity", "is_clang"]


# --- Child processes of the compiler: started without fork, and gone when the compilation is left
#
# `os.posix_spawn` starts /bin/true in 0.75 ms in a process of 2 GB (fork: 9.9 ms) and needs no
# `subprocess`, whose import takes 3.3 ms of the first result of a fresh process.

class Children:
    """Processes that are killed, with all that they started, at the end of a `with` block.

    Each leads a process group: Ctrl-C in a terminal reaches this process alone, which then kills
    the group of a compiler driver and so the passes that the driver runs.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.running: set[int] = set()
        """Those that nobody has waited for."""

    def __enter__(self) -> Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        for pid in self.running:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        for pid in self.running:
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)
        self.running.clear()

    def start(self, command: Sequence[str], errors: Path, stdin: int | None = None,
              stdout: int | None = None) -> int:
        """Start a command whose first word is a path; its stderr is appended to a file.

        Raises OSError where it cannot be started.
        """
        appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0) if stdin is None
            else (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0) if stdout is None
            else (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_OPEN, 2, str(errors), appended, 0o600),
        ]
        # a Ctrl-C between the start and the note of it would leave a process that nobody ends
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            pid = os.posix_spawn(command[0], list(command), self._environment,
                                 file_actions=actions, setpgroup=0, setsigmask=before,
                                 setsigdef=[signal.SIGINT, signal.SIGPIPE])
            self.running.add(pid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def wait(self, pid: int) -> int:
        """The exit status of a process, negative where a signal ended it."""
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:  # somebody else waits for all children: the files will tell
            status = 0
        self.running.discard(pid)
        return status

    def run(self, command: Sequence[str], errors: Path, stdout: int | None = None) -> int:
        return self.wait(self.start(command, errors, stdout=stdout))


# Programs are position independent, need no unwinding, and nothing of the C library but what the
# process has already.
COMPILE_FLAGS = ("-fPIC", "-g0", "-fno-asynchronous-unwind-tables", "-fno-ident",
                 "-fno-stack-protector", "-w")
LINK_FLAGS = ("-shared", "--hash-style=gnu", "-z", "noexecstack", "--build-id=none")
# Flags that the driver expands, or that add libraries.
DRIVER_FLAGS = ("-march=native", "-mcpu=native", "-mtune=native", "-l", "-L", "-Wl,", "-Wa,",
                "-fopenmp", "-fsanitize", "-flto", "-B", "-specs", "-fuse-ld", "-pthread", "-X")
SHOWN_LINES = 8
# What the tools print (under LC_ALL=C) and the loader says where the folder is to blame.
FOLDER_ERRORS = {os.strerror(code): code for code in
                 (*OUT_OF_ROOM, errno.EROFS, errno.EIO)}
WORK_FILE = re.compile(r"\S*/\.work-[^/\s]*/unit\d+\.c")
ROOM = 8 << 20
"""Bytes that a compilation may need: where a folder has no room for them, that is why it failed."""
OF_THIS_PROCESS = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Why no compiler can be started that is there."""


class CompilerMissing(BackendError):
    """There is no C compiler on this machine."""


class CompilerError(BackendError):
    """The C compiler refused a generated program: a defect of functrans or of the compiler."""


def compiler() -> tuple[str, ...]:
    """The command of the C compiler: the variable CC, else cc, gcc or clang on PATH, else the
    `zig cc` of the wheel ziglang, which the extra functrans[compiler] brings.

    Raises CompilerMissing when there is none, and BackendError where CC names none that is there.
    """
    return _compiler(os.environ.get("CC", ""), os.environ.get("PATH", os.defpath))


@cache
def _compiler(named: str, path: str) -> tuple[str, ...]:
    """The command, by the two variables that decide it; CC may have arguments ("ccache gcc")."""
    words = _words_of(named)
    if words:
        program = _which(words[0], path)
        if program is None:
            raise _no_such(named, words[0], path)
        return (program, *words[1:])
    for name in COMMON:
        program = _which(name, path)
        if program is not None:
            return (program,)
    wheel = _wheel_compiler()
    if wheel is not None:
        return wheel
    raise CompilerMissing(
        "no C compiler was found.", where=None,
        why="compiled functions are C programs, neither CC nor cc, gcc or clang on PATH is a "
            "compiler, and the wheel ziglang is not installed",
        fix="pip install 'functrans[compiler]', which needs no rights, or apt-get install gcc "
            "(Debian, Ubuntu), dnf install gcc (Fedora) or conda install gcc")


def _wheel_compiler() -> tuple[str, ...] | None:
    """The command of the compiler in the wheel ziglang, where it is installed.

    Zig compiles for the processor at hand unless it is told otherwise, and traps on what is
    undefined: instruction sets are ours to choose, and a program wraps where others do.
    """
    found = find_spec(WHEEL)
    for folder in (found and found.submodule_search_locations) or ():
        program = _which(os.path.join(folder, "zig"), "")
        if program is not None:
            return (program, "cc", "-mcpu=baseline", "-fno-sanitize=undefined")
    return None


COMMON = ("cc", "gcc", "clang")
WHEEL = "ziglang"


def _words_of(named: str) -> list[str]:
    """The words of CC, as a shell reads them."""
    try:
        return shlex.split(named)
    except ValueError as error:  # a quotation without an end
        raise BackendError(f"the variable CC is {named!r}, which is no command.", where=None,
                           why=f"{error}", fix=UNSET) from None


UNSET = "CC=gcc (or the path of a compiler, with arguments if need be), or unset CC"


def _no_such(named: str, program: str, path: str) -> BackendError:
    """Another compiler than the one asked for would be a surprise: it is named, not used."""
    found = next(filter(None, (_which(name, path) for name in COMMON)), None)
    there = (f"\nWithout CC functrans would use {found}." if found else
             "\nThere is no cc, gcc or clang on PATH, either.")
    where = "there is no such program" if os.path.dirname(program) else "no such program is on PATH"
    if os.path.dirname(program) and os.path.exists(program):
        where = "that is no program which can be run"
    return BackendError(f"the C compiler {program} does not exist or cannot be run.", where=None,
                        why=f"the variable CC is {named!r}, and {where}.{there}", fix=UNSET)


def compiler_identity() -> str:
    """What tells one compiler from another, without running it; 50 us."""
    parts = []
    for word in compiler():
        # of "ccache gcc" the second is a command, too
        path = os.path.realpath(_which(word, os.environ.get("PATH", os.defpath)) or word)
        try:
            status = os.stat(path)
        except OSError:  # an argument
            parts.append(word)
        else:
            parts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(parts)


def is_clang() -> bool:
    """Whether the compiler is a Clang (`zig cc` is one), told by its name, without running it."""
    identity = compiler_identity().lower()
    return "clang" in identity or "zig" in identity


def compiled_isa() -> Isa:
    """The instruction set that programs are compiled for: the machine's, as far as the compiler's
    builtins reach. Those of Clang for AVX-512 have other names than GCC's, so it gets AVX2; the
    Clang of Zig has none for multiply-adds of vectors either, so it gets vectors of 16 bytes. On
    ARM there are no builtins.

    Without a compiler it is the machine's.
    """
    isa = host_isa()
    if isa == NEON:
        return isa
    try:
        identity = compiler_identity().lower()
    except BackendError:  # who needs the compiler says so
        return isa
    if "zig" in identity:
        return GENERIC
    return AVX2 if isa.masks and "clang" in identity else isa


def compile_shared(sources: Sequence[str], flags: Sequence[str], destination: Path,
                   processes: type[Children] = Children) -> None:
    """Compile C texts, each a unit, side by side on the cores, to one shared object.

    Temporary files lie beside the destination, which appears at once, by renaming. Raises
    CompilerMissing; CompilerError with the compiler's words; OSError where the folder cannot be
    written. When it is interrupted, the compilers are killed and nothing is left.
    """
    command = compiler()
    with _work_folder(destination.parent) as folder:
        for k, source in enumerate(sources):
            (folder / f"unit{k}.c").write_text(source, encoding="utf-8")
        with processes({**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}) as children:
            job = _Job(folder, len(sources), (*flags, *COMPILE_FLAGS), children)
            try:
                _build(job, command, flags)
            except _CommandFailed as failed:
                raise _explained(failed, sources, destination.parent) from None
        os.replace(job.program, destination)


class _Tools(Record, frozen=False, eq=False, repr=False):
    """The passes behind gcc's driver: the words that begin the command of each."""

    compiler: tuple[str, ...]
    assembler: tuple[str, ...]
    linker: tuple[str, ...]


class _Job(Record, frozen=False, eq=False, repr=False):
    """A folder with unit0.c, unit1.c ..., and how to make a program of them."""

    folder: Path
    units: int
    flags: tuple[str, ...]
    children: Children

    @property
    def program(self) -> Path:
        return self.folder / "program.so"

    @property
    def objects(self) -> list[str]:
        return [f"{self.folder}/unit{k}.o" for k in range(self.units)]

    def errors(self, name: str) -> Path:
        return self.folder / f"{name}.err"


class _CommandFailed(Exception):
    """A command failed, with what it wrote; `unit` is the text that it was about."""

    def __init__(self, command: Sequence[str], status: int, words: str,
                 unit: int | None = None) -> None:
        super().__init__(words)
        self.command, self.status, self.words, self.unit = command, status, words, unit


def _build(job: _Job, command: tuple[str, ...], flags: Sequence[str]) -> None:
    """The short way where there is one, and the driver where that failed: its word is final."""
    tools = None
    if not any(flag.startswith(DRIVER_FLAGS) for flag in flags):
        tools = _tools(command, job)
    if tools is not None:
        try:
            _compile(job, [_pass_commands(job, tools, k) for k in range(job.units)])
            _run(job, [*tools.linker, *job.objects, "-o", str(job.program)], "ld")
            return _check_loads(job)
        except (_CommandFailed, OSError) as failed:
            if isinstance(failed, OSError) and (failed.errno in FOLDER_ERRORS.values()
                                                or failed.errno in OF_THIS_PROCESS):
                raise
    _compile(job, [([*command, *job.flags, "-pipe", "-c", f"{job.folder}/unit{k}.c", "-o",
                     job.objects[k]],) for k in range(job.units)])
    _run(job, [*command, "-shared", *job.objects, "-o", str(job.program),
               *(f for f in flags if f.startswith(DRIVER_FLAGS)), "-lm"], "link")
    _check_loads(job)


def _pass_commands(job: _Job, tools: _Tools, k: int) -> tuple[list[str], list[str]]:
    """The compiler, which writes assembly to its output, and the assembler, which reads it."""
    return ([*tools.compiler, *job.flags, f"{job.folder}/unit{k}.c", "-o", "-"],
            [*tools.assembler, "-o", job.objects[k]])


def _compile(job: _Job, units: Sequence[tuple[list[str], ...]]) -> None:
    """Run the commands of all units, each one command or each two joined by a pipe.

    Twice as many at once as there are cores: one that waits for its file, or for the other end of
    its pipe, leaves no core idle, and memory stays bounded (30 MB a compiler). To start a process
    takes 1 ms, so that of those that begin together all compilers are started before assemblers.
    """
    window = 2 * len(os.sched_getaffinity(0))
    for begin in range(0, len(units), window):
        batch = range(begin, min(begin + window, len(units)))
        pipes: list[int] = []
        try:
            pids = [[_start_compiler(job, units[k], job.errors(f"unit{k}"), pipes)] for k in batch]
            for k, of, reading in zip(batch, pids, pipes):
                of.append(_start(job, units[k][1], job.errors(f"unit{k}"), stdin=reading))
        finally:
            for reading in pipes:
                os.close(reading)
        for k, of in zip(batch, pids, strict=True):
            for command, pid in zip(units[k], of, strict=True):
                status = job.children.wait(pid)
                if status != 0:
                    raise _CommandFailed(command, status, _words(job.errors(f"unit{k}")), k)


def _start_compiler(job: _Job, commands: tuple[list[str], ...], errors: Path,
                    pipes: list[int]) -> int:
    """Start the first command of a unit; the other end of its pipe is added to those given."""
    if len(commands) == 1:
        return _start(job, commands[0], errors)
    reading, writing = os.pipe()
    pipes.append(reading)
    try:
        return _start(job, commands[0], errors, stdout=writing)
    finally:
        os.close(writing)


def _start(job: _Job, command: list[str], errors: Path, stdin: int | None = None,
           stdout: int | None = None) -> int:
    try:
        return job.children.start(command, errors, stdin, stdout)
    except OSError as error:
        if error.errno in OF_THIS_PROCESS or error.errno in FOLDER_ERRORS.values():
            raise OSError(error.errno, error.strerror) from error
        raise _CommandFailed(command, 127, f"cannot be run: {error}") from error


def _run(job: _Job, command: list[str], name: str) -> None:
    status = job.children.wait(_start(job, command, job.errors(name)))
    if status != 0:
        raise _CommandFailed(command, status, _words(job.errors(name)))


def _check_loads(job: _Job) -> None:
    """Load the program once, with all symbols, and let it go: 0.1 ms.

    A linker of another machine, or a function of the compiler's own library that only the driver
    links (128-bit division), shows here.
    """
    try:
        library = ctypes.CDLL(str(job.program), os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        if NOT_MAPPABLE in str(error):  # a folder whose programs may not run (noexec)
            raise OSError(errno.EROFS, str(error)) from None
        raise _CommandFailed([str(job.program)], 1, f"the program does not load: {error}") from None
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(library._handle))


def _tools(command: tuple[str, ...], job: _Job) -> _Tools | None:
    """The passes of a gcc; None for other compilers.

    The driver says them in 3 ms, and a file beside the programs remembers what it said.
    """
    known = _known_tools
    identity = compiler_identity()
    if identity not in known:
        memory = job.folder.parent / f"compiler-{zlib.crc32(identity.encode()):08x}"
        said = _remembered(memory, identity)
        if said is None:
            errors = job.errors("driver")
            question = [*command, "-###", "-x", "c", "-c", os.devnull, "-o", os.devnull]
            status = job.children.wait(_start(job, question, errors))
            said = _words(errors) if status == 0 else ""  # a compiler that is no gcc
            with contextlib.suppress(OSError):
                new = job.folder / "memory"
                new.write_text(f"{identity}\n\n{said}", encoding="utf-8")
                os.replace(new, memory)
        known[identity] = _tools_printed(said)
    return known[identity]


_known_tools: dict[str, _Tools | None] = {}


def _remembered(memory: Path, identity: str) -> str | None:
    try:
        asked, _, said = memory.read_text(encoding="utf-8").partition("\n\n")
    except (OSError, UnicodeDecodeError):
        return None
    return said if asked == identity and "-quiet" in said else None


def _tools_printed(said: str) -> _Tools | None:
    """The passes in what `gcc -###` prints: one command a line, after a space."""
    compiler = assembler = None
    for line in said.splitlines():
        words = [w.strip('"') for w in line.split()] if line.startswith(" ") else []
        if not words or "\\" in line:
            continue
        if os.path.basename(words[0]) == "cc1" and os.path.isabs(words[0]):
            machine = [w for w in words[1:] if w.startswith("-m")]
            compiler = (words[0], "-quiet", *machine)
        elif os.path.basename(words[0]).endswith("as") and compiler is not None:
            program = _which(words[0], os.environ.get("PATH", os.defpath))
            machine = [w for w in words[1:] if w.startswith(("--64", "-m", "-E"))]
            assembler = None if program is None else (program, *machine)
    linker = _which("ld", os.environ.get("PATH", os.defpath))
    if compiler is None or assembler is None or linker is None:
        return None
    return _Tools(compiler, assembler, (linker, *LINK_FLAGS))


@contextmanager
def _work_folder(parent: Path) -> Iterator[Path]:
    """A folder of files that are gone afterwards, however it is left."""
    folder = parent / unique_name("work")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder):
                with contextlib.suppress(OSError):
                    os.unlink(folder / entry)
            os.rmdir(folder)


def _which(name: str, path: str) -> str | None:
    """The file that a command name means (shutil.which, whose import takes 2 ms)."""
    folders = [""] if os.path.dirname(name) else path.split(os.pathsep)
    for folder in folders:
        file = os.path.join(folder, name)
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return os.path.abspath(file)
    return None


def _words(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return ""


def _no_space_reason(folder: Path) -> OSError | None:
    """Why a folder does not take the files of a compilation, where it does not."""
    file = folder / unique_name("new")
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, ROOM)
        finally:
            os.close(descriptor)
            os.unlink(file)
    except OSError as error:
        return error if error.errno in FOLDER_ERRORS.values() else None
    return None


def _explained(failed: _CommandFailed, sources: Sequence[str], folder: Path) -> Exception:
    """What a failure means: the folder's, the compiler's absence, or a refused program."""
    for text, code in FOLDER_ERRORS.items():
        if text in failed.words:
            return OSError(code, text)
    lack = _no_space_reason(folder)
    if lack is not None:  # a full disk has no room for the compiler's words, either
        return lack
    program = os.path.basename(failed.command[0])
    if failed.status == 127:
        return CompilerMissing(f"the C compiler {failed.command[0]} {failed.words}.", where=None,
                               fix="set CC to a compiler that runs, or apt-get install gcc")
    kept, name = "", "program.c"
    text = "\n".join(sources) if failed.unit is None else sources[failed.unit]
    with contextlib.suppress(OSError):
        file = folder / f"refused-{zlib.crc32(text.encode()):08x}.c"
        file.write_text(text, encoding="utf-8")
        kept, name = f" The program is kept in {file}.", file.name
    lines = WORK_FILE.sub(name, failed.words).splitlines()[:SHOWN_LINES]
    if failed.status < 0:
        lines.append(f"ended by signal {signal.Signals(-failed.status).name}")
    return CompilerError(
        f"the C compiler failed on a generated program.{kept}", where=None,
        why="\n".join([f"`{' '.join(failed.command)}`: exit status {failed.status}", *lines]),
        fix=f"report the program: it is a defect of functrans or of {program}. Until then "
            "ft.config.use_backend('reference') evaluates with NumPy")
