"""Traces of calls, and the memory in use."""

import gzip
import json
import threading

import numpy as np
import pytest

import functrans as ft
from functrans import profiler
from functrans.errors import ArgumentError, BackendError


def events_in(folder, name="*.trace.json.gz"):
    path, = folder.glob(f"plugins/profile/*/{name}")
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def spans(events, kind):
    return [e for e in events if e.get("cat") == kind]


@ft.jit
def doubled(x):
    return 2 * x


def test_every_call_is_seen_by_its_name_and_types(tmp_path):
    doubled(np.ones(3, np.float32))  # the runtime knows this one
    with profiler.trace(tmp_path, create_perfetto_trace=True):
        for _ in range(3):
            doubled(np.ones(3, np.float32))
        doubled(np.ones((2, 2)))
    doubled(np.ones(3, np.float32))
    events = events_in(tmp_path)
    calls = spans(events, "call")
    assert [c["name"] for c in calls] == ["doubled"] * 4
    assert [c["args"]["arguments"] for c in calls] == ["f32[3]"] * 3 + ["f64[2,2]"]
    assert events == events_in(tmp_path, "perfetto_trace.json.gz")
    # what was traced and compiled for the last call is there, and before it
    traced, = spans(events, "trace")
    compiled, = spans(events, "compile")
    assert traced["name"] == compiled["name"] == "doubled"
    assert traced["ts"] + traced["dur"] <= calls[3]["ts"] <= compiled["ts"]
    assert compiled["ts"] + compiled["dur"] <= calls[3]["ts"] + calls[3]["dur"]


def test_annotations_are_around_what_they_call(tmp_path):
    @profiler.annotate_function
    def work(x):
        with profiler.TraceAnnotation("inside", size=3):
            return doubled(x)

    @profiler.TraceAnnotation("decorated")
    def decorated(x):
        return work(x)

    assert work(1.0).item() == 2.0  # nobody asks
    with profiler.trace(tmp_path):
        with profiler.StepTraceAnnotation("train", step_num=7):
            decorated(1.0)
        thread = threading.Thread(target=work, args=(1.0,))
        thread.start()
        thread.join()
        with pytest.raises(ZeroDivisionError), profiler.TraceAnnotation("fails"):
            1 / 0  # noqa: B018
    notes = spans(events_in(tmp_path), "annotation")
    assert [n["name"] for n in notes] == ["train", "decorated", "work", "inside", "work",
                                          "inside", "fails"]
    assert notes[0]["args"]["step_num"] == "7" and notes[3]["args"]["size"] == "3"
    starts, ends = [n["ts"] for n in notes[:4]], [n["ts"] + n["dur"] for n in notes[:4]]
    assert starts == sorted(starts) and ends == sorted(ends, reverse=True)
    assert len({n["tid"] for n in notes}) == 2


def test_one_trace_at_a_time(tmp_path):
    with pytest.raises(BackendError, match="no trace"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    with pytest.raises(BackendError, match="is being recorded"):
        profiler.start_trace(tmp_path)
    doubled(1.0)
    profiler.stop_trace()
    assert spans(events_in(tmp_path), "call")


def test_what_is_not_there_is_refused(tmp_path):
    for refused in (lambda: profiler.start_trace(tmp_path, create_perfetto_link=True),
                    lambda: profiler.start_trace(tmp_path, profiler_options=object()),
                    lambda: profiler.save_device_memory_profile(tmp_path / "memory.prof")):
        with pytest.raises(ArgumentError):
            refused()
    for refused in (lambda: profiler.start_server(9999), profiler.stop_server):
        with pytest.raises(BackendError, match="no profiling server"):
            refused()
    assert not [*tmp_path.iterdir()]


def test_memory_by_device(tmp_path):
    held = doubled(np.ones(1 << 20, np.float32))
    profiler.save_device_memory_profile(tmp_path / "memory.json", backend="cpu")
    cpu, = json.loads((tmp_path / "memory.json").read_text())
    assert cpu["device"] == "cpu:0" and cpu["bytes_in_use"] >= held.nbytes
