"""The collector of garbage runs again after programs are lowered, if it ran before."""

from __future__ import annotations

import gc
from threading import Thread

import pytest

from functrans.lowering.garbage import collector_paused


def test_pauses_may_overlap():
    assert gc.isenabled()
    with collector_paused():
        thread = Thread(target=_pause)
        thread.start()
        thread.join()
        assert not gc.isenabled()
    assert gc.isenabled()


def _pause() -> None:
    with collector_paused():
        pass


def test_errors_end_a_pause():
    with pytest.raises(ZeroDivisionError), collector_paused():
        _ = 1 / 0
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
