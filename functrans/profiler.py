"""Traces of what programs do, and the memory in use, under the names of `jax.profiler`.

A trace has a span for each call of a jitted function, for each function that is traced or compiled
meanwhile, and for each annotation. The kernels of one program are what `functrans.profile` times.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from functrans.core.errors import ArgumentError, BackendError, publish, shown
from functrans.core.recording import Recorder, recorder, set_recorder
from functrans.core.source import user_source
from functrans.device import devices
from functrans.transforms.flat import check_callable, name_of
from functrans.transforms.jit.api import forget_calls

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["ProfileOptions", "StepTraceAnnotation", "TraceAnnotation", "annotate_function",
           "device_memory_profile", "save_device_memory_profile", "start_server", "start_trace",
           "stop_server", "stop_trace", "trace"]

PPROF = (".prof", ".pprof", ".pb", ".pb.gz")


class _Session:
    """Where the trace that runs is to be written."""

    folder: Path | None = None
    also_perfetto = False


_session = _Session()


@dataclass
class ProfileOptions:
    """What JAX's profiler may be told, by its names; a trace here has every call whatever it says.

    >>> options = ProfileOptions()
    >>> options.python_tracer_level = 0
    """

    advanced_configuration: dict[str, Any] = field(default_factory=dict)
    duration_ms: int = 0
    enable_hlo_proto: bool = True
    host_tracer_level: int = 2
    include_dataset_ops: bool = True
    python_tracer_level: int = 1
    raise_error_on_start_failure: bool = False
    repository_path: str = ""
    session_id: str = ""
    start_timestamp_ns: int = 0


def start_trace(log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False,
                profiler_options: ProfileOptions | None = None) -> None:
    """Record calls from now on, of all threads, for `stop_trace` to write.

    Raises BackendError where a trace is being recorded, and ArgumentError for a link to Perfetto's
    page, which would have to be served.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> ft.profiler.start_trace(folder)
    >>> _ = ft.jit(jnp.sin)(1.0)
    >>> ft.profiler.stop_trace()
    >>> len(list(folder.rglob("*.trace.json.gz")))
    1
    """
    if profiler_options is not None and not isinstance(profiler_options, ProfileOptions):
        raise ArgumentError(f"start_trace: profiler_options is {shown(profiler_options)}.",
                            where=user_source(), fix="functrans.profiler.ProfileOptions()")
    if create_perfetto_link:
        raise ArgumentError(
            "start_trace: there is no server behind a link to Perfetto.",
            where=user_source(), fix="create_perfetto_trace=True, and open perfetto_trace.json.gz "
                                     "in ui.perfetto.dev")
    if recorder() is not None:
        raise BackendError("start_trace: a trace is being recorded.", where=user_source(),
                           why="there is one at a time.", fix="functrans.profiler.stop_trace()")
    _session.folder = Path(log_dir)
    _session.also_perfetto = create_perfetto_trace
    set_recorder(Recorder())
    forget_calls()  # those that the runtime knows it makes without Python


def stop_trace() -> None:
    """Write what was recorded: `plugins/profile/<time>/<host>.trace.json.gz` in the log's folder.

    TensorBoard looks for traces there; ui.perfetto.dev and chrome://tracing open the file. Raises
    BackendError where no trace is being recorded.

    >>> import tempfile
    >>> ft.profiler.start_trace(tempfile.mkdtemp())
    >>> ft.profiler.stop_trace()
    """
    found = recorder()
    if found is None or _session.folder is None:
        raise BackendError("stop_trace: no trace is being recorded.", where=user_source(),
                           fix="functrans.profiler.start_trace(log_dir)")
    set_recorder(None)
    folder = _session.folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
    folder.mkdir(parents=True, exist_ok=True)
    data = gzip.compress(json.dumps(_chrome_trace(found)).encode())
    (folder / f"{socket.gethostname()}.trace.json.gz").write_bytes(data)
    if _session.also_perfetto:
        (folder / "perfetto_trace.json.gz").write_bytes(data)


@contextmanager
def trace(log_dir: os.PathLike[str] | str, create_perfetto_link: bool = False,
          create_perfetto_trace: bool = False,
          profiler_options: ProfileOptions | None = None) -> Iterator[None]:
    """Context manager: record the calls inside, and write a trace to the folder `log_dir`.

    >>> import functrans as ft, tempfile, pathlib
    >>> folder = tempfile.mkdtemp()
    >>> with ft.profiler.trace(folder):
    ...     y = ft.jit(lambda x: x + 1)(1.0)
    >>> len(list(pathlib.Path(folder).glob("plugins/profile/*/*.trace.json.gz")))
    1
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def _chrome_trace(found: Recorder) -> dict[str, Any]:
    """Spans in the form of Chrome's traces: microseconds since the start, by thread."""
    pid = os.getpid()
    threads = {t: k for k, t in enumerate(sorted({s.thread for s in found.spans}))}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": "functrans"}},
        *[{"ph": "M", "pid": pid, "tid": k, "name": "thread_name", "args": {"name": f"thread {k}"}}
          for k in threads.values()]]
    for s in sorted(found.spans, key=lambda s: (s.start, -s.end)):
        events.append({"ph": "X", "pid": pid, "tid": threads[s.thread], "name": s.name,
                       "cat": s.kind, "ts": (s.start - found.started) / 1e3,
                       "dur": (s.end - s.start) / 1e3,
                       "args": {k: str(v) for k, v in s.details.items()}})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


class TraceAnnotation(ContextDecorator):
    """Context manager and decorator: a span of a name in the trace that is recorded, if any.

    >>> with ft.profiler.TraceAnnotation("load data"):
    ...     data = jnp.ones(3)
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name = name
        self.details = kwargs
        self._open: list[Any] = []

    def __enter__(self) -> TraceAnnotation:
        now = recorder()
        span = None if now is None else now.span(self.name, "annotation", **self.details)
        if span is not None:
            span.__enter__()
        self._open.append(span)
        return self

    def __exit__(self, *error: Any) -> None:
        span = self._open.pop()
        if span is not None:
            span.__exit__(*error)


class StepTraceAnnotation(TraceAnnotation):
    """A span that is a step of a training, by its number `step_num`.

    >>> for step in range(2):
    ...     with ft.profiler.StepTraceAnnotation("train", step_num=step):
    ...         _ = ft.jit(jnp.cos)(1.0)
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[P, R], name: str | None = None,
                      **decorator_kwargs: Any) -> Callable[P, R]:
    """`func`, whose calls are spans of its name in the trace that is recorded, if any.

    >>> annotate_function(lambda x: x + 1, name="increment")(1)
    2
    """
    check_callable(func, "annotate_function")

    @functools.wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(name or name_of(func), **decorator_kwargs):
            return func(*args, **kwargs)

    return call


def device_memory_profile(backend: str | None = None) -> bytes:
    """The bytes in use on each device, as JSON: JAX's profile by allocation is in pprof's format.

    >>> json.loads(device_memory_profile("cpu"))[0]["device"]
    'cpu:0'
    """
    found = [{"device": str(device), **device.memory_stats()} for device in devices(backend)]
    return json.dumps(found, indent=1).encode()


def save_device_memory_profile(filename: str | os.PathLike[str],
                               backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file; raises ArgumentError for one of pprof's names.

    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "memory.json")
    >>> ft.profiler.save_device_memory_profile(path)
    >>> type(json.loads(path.read_text()))
    <class 'list'>
    """
    path = Path(filename)
    if path.name.endswith(PPROF):
        raise ArgumentError(f"save_device_memory_profile: {shown(path.name)} is a name of pprof's.",
                            where=user_source(),
                            why="allocations are counted, and not known by where they were made.",
                            fix='"memory.json"; ft.lower(f, x).compile().memory_analysis() for '
                                "the memory of a program")
    path.write_bytes(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> NoReturn:
    """Raises BackendError: nothing listens for a profiler of another process.

    >>> ft.profiler.start_server(9999)
    Traceback (most recent call last):
    ...
    functrans.core.errors.BackendError: start_server: there is no profiling server...
    """
    raise _no_server("start_server")


def stop_server() -> NoReturn:
    """Raises BackendError: nothing listens for a profiler of another process.

    >>> ft.profiler.stop_server()
    Traceback (most recent call last):
    ...
    functrans.core.errors.BackendError: stop_server: there is no profiling server...
    """
    raise _no_server("stop_server")


def _no_server(what: str) -> BackendError:
    return BackendError(f"{what}: there is no profiling server.", where=user_source(),
                        why="traces are recorded and written by the process itself.",
                        fix="with functrans.profiler.trace(log_dir): ...")


publish(globals(), __all__)
