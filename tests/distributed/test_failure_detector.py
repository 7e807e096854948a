"""What the coordinator concludes from what processes say of themselves."""

import pytest

from functrans.distributed.failure_detector import FailureDetector, Peer


def peers(count=3):
    found = [Peer(k, "host", 100 + k) for k in range(count)]
    for p in found:
        say(p, 0.1)
    return found


def say(peer, now, waited=0.0, program="f(f32[4])", place="at train.py:3 in step", **more):
    """A message of a process."""
    peer.heard = now
    peer.learn({"program": program, "run": 1, "calls": 1, "waited": waited, "waits_in": "psum",
                "place": place, "compiling": False, "leaving": False, **more}, now)


def test_all_is_well():
    ps = peers()
    detector = FailureDetector(ps, 10, 10, 5)
    assert detector.failure(1.0) is None
    say(ps[0], 8.0, waited=7.0)
    say(ps[1], 8.0)
    say(ps[2], 8.0)
    assert detector.failure(8.0) is None


def test_who_did_not_come_is_named_with_its_place():
    ps = peers()
    detector = FailureDetector(ps, 10, 10, 5)
    say(ps[0], 12.0, waited=11.0)
    say(ps[1], 12.0, place="at data.py:7 in load")
    say(ps[2], 12.0, waited=10.5)
    rank, text = detector.failure(12.0)
    assert rank == 1
    assert "process 0 (pid 100 on host) has waited for 11 s in psum of f(f32[4])" in text
    assert "at data.py:7 in load" in text


def test_who_compiles_has_longer():
    ps = peers(2)
    detector = FailureDetector(ps, 10, 10, 5)
    say(ps[0], 20.0, waited=19.0)
    say(ps[1], 20.0, compiling=True)
    assert detector.failure(20.0) is None
    say(ps[0], 120.0, waited=119.0)
    say(ps[1], 120.0, compiling=True)
    assert detector.failure(120.0)[0] == 1


def test_different_programs():
    ps = peers(2)
    detector = FailureDetector(ps, 100, 100, 5)
    for now in (4.0, 5.0, 6.5):
        say(ps[0], now, waited=now)
        say(ps[1], now, waited=now - 1, program="g(f32[5])")
        failure = detector.failure(now)
    assert failure[0] == 1
    assert failure[1].startswith("processes run different programs: process 0")
    assert "f(f32[4])" in failure[1]
    assert "g(f32[5])" in failure[1]


@pytest.mark.parametrize(("change", "words"), [
    ({"lost": True}, "died: its connection was closed"),
    ({"heard": -20.0}, "was not heard of for 22 s"),
    ({"ended": True, "failed_at": 1.0}, "is at its end, and process 0 waits for it in psum of f"),
    ({"leaving": True, "failed_at": 1.0}, "is at its end"),
    ({"raised": "ValueError: x", "raised_in": 1, "failed_at": 1.0}, "raised: ValueError: x"),
])
def test_what_happened_to_a_process(change, words):
    ps = peers(2)
    detector = FailureDetector(ps, 10, 10, 5)
    say(ps[0], 2.0, waited=1.0)
    say(ps[1], 2.0)
    for name, value in change.items():
        setattr(ps[1], name, value)
    rank, text = detector.failure(2.0)
    assert rank == 1
    assert words in text


def test_what_raised_in_an_earlier_run_is_forgotten():
    ps = peers(2)
    say(ps[0], 2.0, waited=1.0, run=2)
    say(ps[1], 2.0)
    ps[1].raised, ps[1].raised_in, ps[1].failed_at = "ValueError: x", 1, 1.0
    assert FailureDetector(ps, 10, 10, 5).failure(2.0) is None


def test_a_process_that_never_comes():
    ps = [*peers(2), Peer(2)]
    detector = FailureDetector(ps, 10, 100, 5)
    assert detector.failure(4.0) is None
    assert detector.failure(6.0) == (2, "process 2 of 3 did not come within the "
                                     "initialization_timeout.")
