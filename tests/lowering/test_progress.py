"""What takes long is reported on stderr: in place on a terminal, else once, never if it is fast."""

import io
import shutil
import sys
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

import functrans as ft
from functrans import config
from functrans.lowering import progress
from functrans.lowering.c import backend
from functrans.lowering.progress import CLEAR, Progress, watched
from functrans.lowering.store.cache import Cache


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(stream, seconds, after=2.0):
    """What is written when 40 kernels are shown at these times."""
    times = iter([0.0, *seconds])
    with Progress(after, stream, lambda: next(times)) as told:
        for k, _ in enumerate(seconds):
            told.show(f"compiling {k + 1} of 40 kernels")
    return stream.getvalue()


def on_screen(text):
    """What a terminal shows of a line in the end."""
    return text.rpartition(CLEAR)[2]


def test_a_terminal_shows_one_line_and_clears_it():
    assert shown(Terminal(), [0.5, 1.9]) == ""
    text = shown(Terminal(), [1.0, 2.1, 3.2])
    assert text == (f"{CLEAR}functrans: compiling 2 of 40 kernels, 2 s"
                    f"{CLEAR}functrans: compiling 3 of 40 kernels, 3 s{CLEAR}")
    assert on_screen(text) == ""
    assert shown(Terminal(), [0.9, 1.0], after=1.0).count("functrans") == 1


@pytest.mark.parametrize("columns", [12, 40, 60, 200])
def test_a_line_does_not_wrap(monkeypatch, columns):
    """A terminal takes back one row: what had wrapped stayed."""
    monkeypatch.setattr(progress, "columns_of", lambda stream: columns)
    line = shown(Terminal(), [2.5]).split(CLEAR)[1]
    assert len(line) < columns
    if columns >= 40:
        assert line.startswith("functrans: compiling 1 of") and line.endswith(", 2 s")


def test_a_stream_that_is_no_device_has_80_columns():
    assert progress.columns_of(io.StringIO()) == 80


def test_a_file_gets_a_plain_line_for_what_takes_very_long(monkeypatch):
    monkeypatch.delattr(sys, "ps1", raising=False)
    assert shown(io.StringIO(), [1.0, 9.0]) == ""
    assert shown(io.StringIO(), [1.0, 10.5, 20.0]) == "functrans: compiling 2 of 40 kernels, 10 s\n"


def test_a_notebook_gets_a_line_that_is_taken_back(monkeypatch):
    outputs = []

    class Handle:
        def update(self, line):
            outputs.append(line)

    def display(line, display_id):
        outputs.append(line)
        return Handle()

    monkeypatch.setattr(progress, "notebook_display", lambda: SimpleNamespace(display=display))
    times = iter([0.0, 1.0, 2.5, 3.5])
    with Progress(2.0, clock=lambda: next(times)) as told:
        for k in range(3):
            told.show(f"compiling kernel {k + 1} of 3")
    assert list(map(repr, outputs)) == ["functrans: compiling kernel 2 of 3, 2 s",
                                        "functrans: compiling kernel 3 of 3, 4 s", ""]
    assert outputs[-1]._repr_html_() == "" and "<span" in outputs[0]._repr_html_()


def test_a_prompt_gets_a_plain_line_as_early_as_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    assert shown(io.StringIO(), [1.0, 2.0, 4.0]) == "functrans: compiling 2 of 40 kernels, 2 s\n"


def test_it_can_be_silent():
    with config.progress(False):
        assert shown(Terminal(), [5.0]) == shown(io.StringIO(), [50.0]) == ""


def test_streams_that_are_closed_or_missing(monkeypatch):
    closed = io.TextIOWrapper(io.BytesIO())
    with Progress(0.0, closed) as told:
        closed.close()
        told.show("compiling")
    with Progress(0.0, closed) as told:
        told.show("compiling")
    monkeypatch.setattr(sys, "stderr", None)
    with Progress(0.0) as told:
        told.show("compiling")


class Screen(Terminal):
    """A terminal that says when something was written."""

    def __init__(self):
        super().__init__()
        self.changed = Event()

    def write(self, text):
        super().write(text)
        self.changed.set()


@pytest.fixture
def screen(monkeypatch):
    stream = Screen()
    # sys.stderr itself is set by pytest after all fixtures
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    return stream


def test_a_block_is_told_of_while_it_runs(screen):
    with watched("first") as under_way:
        assert screen.changed.wait(20)
        under_way.doing = "second"
        while "second" not in screen.getvalue():
            screen.changed.clear()
            assert screen.changed.wait(20)
    assert screen.getvalue().startswith(f"{CLEAR}functrans: first, 0 s")
    assert on_screen(screen.getvalue()) == ""
    with pytest.raises(ZeroDivisionError), watched("third"):
        screen.truncate(0)
        screen.changed.clear()
        assert screen.changed.wait(20)
        raise ZeroDivisionError
    assert on_screen(screen.getvalue()) == ""


@pytest.fixture
def slow_compiler(screen, tmp_path, monkeypatch):
    """A C compiler that does not begin before the screen tells of it."""
    go = tmp_path / "go"
    script = tmp_path / "slow-cc"
    script.write_text(f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.01; done\n"
                      f"exec {shutil.which('gcc')} \"$@\"\n")
    script.chmod(0o700)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setattr(backend, "program_cache", lambda: Cache(tmp_path / "cache"))
    write = screen.write

    def noticed(text):
        write(text)
        if "the C compiler has" in text:
            go.touch()

    monkeypatch.setattr(screen, "write", noticed)


@pytest.mark.usefixtures("slow_compiler")
def test_a_slow_compiler_is_told_of(screen):
    def three_products(x):
        return x @ x @ x @ x

    with config.use_backend("c"):
        assert (ft.jit(three_products)(np.eye(3, dtype=np.float32)) == np.eye(3)).all()
    text = screen.getvalue()
    assert "functrans: compiling three_products (3 equations): " in text
    assert on_screen(text) == ""


def test_a_fast_compilation_is_silent(screen, monkeypatch):
    monkeypatch.setattr(progress, "AFTER", 1000.0)
    with watched("first"):
        pass
    assert screen.getvalue() == ""
