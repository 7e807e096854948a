"""What `initialize` says to arguments that do not go together."""

from types import SimpleNamespace

import numpy as np
import pytest

import functrans as ft
from functrans.distributed import mpi
from functrans.distributed.start import _divided, _place
from functrans.errors import ArgumentError, BackendError, CollectiveError
from functrans.sharding import Mesh


@pytest.mark.parametrize(("arguments", "environment", "words"), [
    (("h:1", 2, None), {}, r"process_id \(FUNCTRANS_PROCESS_ID\) is missing"),
    ((None, None, None), {"FUNCTRANS_PROCESS_ID": "0"},
     r"coordinator_address .* and num_processes .* is missing"),
    (("h", 2, 0), {}, "the coordinator_address is 'h'"),
    (("h:x", 2, 0), {}, "the coordinator_address is 'h:x'"),
    (("h:1", 2, 2), {}, "process_id is 2 and num_processes 2"),
    (("h:1", 0, 0), {}, "num_processes 0"),
    (("h:1", None, 0), {"FUNCTRANS_NUM_PROCESSES": "two"}, "FUNCTRANS_NUM_PROCESSES is 'two'"),
])
def test_errors_say_what_is_missing(arguments, environment, words):
    with pytest.raises(ArgumentError, match=words):
        _place(*arguments, environment)


def test_arguments_come_before_the_environment():
    given = {"FUNCTRANS_COORDINATOR_ADDRESS": "a:1", "FUNCTRANS_NUM_PROCESSES": "4",
             "FUNCTRANS_PROCESS_ID": "3"}
    place = _place(None, None, 2, given)
    assert (place.address, place.count, place.rank) == ("a:1", 4, 2)
    assert _place(None, None, None, {}) is None


def test_nobody_listens():
    with pytest.raises(CollectiveError, match="process 1 does not reach process 0"):
        ft.distributed.initialize("127.0.0.1:9", 2, 1, initialization_timeout=0.2)
    with pytest.raises(ArgumentError, match="a timeout of -1 seconds"):
        ft.distributed.initialize("127.0.0.1:9", 2, 1, collective_timeout_seconds=-1)
    assert not ft.distributed.is_initialized()


def test_gpus_of_a_host_are_divided_over_its_processes():
    def one(host, gpus, ids=None):
        return {"host": host, "gpus": gpus, "ids": ids, "cpus": 1}

    found = _divided([one("a", 8), one("a", 8), one("b", 1), one("b", 1), one("c", 4, [3])])
    assert [d.gpus for d in found] == [(0, 1, 2, 3), (4, 5, 6, 7), (0,), (0,), (3,)]
    with pytest.raises(ArgumentError, match="process 0 has no GPU 2"):
        _divided([one("a", 2, 2)])


def test_several_cpus_of_a_process_are_refused(monkeypatch):
    monkeypatch.setattr(mpi, "current", lambda: SimpleNamespace(mpi=mpi, index=0))
    devices = [ft.Device("cpu", id, process) for process in (0, 1) for id in (0, 1)]
    with pytest.raises(BackendError, match="has 2 CPU devices of process 0"):
        mpi.MpiEngine().connect(Mesh(np.array(devices), ("i",)))
