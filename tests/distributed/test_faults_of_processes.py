"""A process that fails is named by an error in the others, in little time; none of them hangs."""

import re

import pytest

from tests.distributed.faulty import SECONDS
from tests.distributed.launch import run_by_environment

# what the others are told, and within how many seconds
FAULTS = {
    "die": (r"process 1 \(pid \d+ on \S+\) died", 3),
    "hang": (r"process 1 did not come: process 1 .* is at faulty.py:\d+ in hang", SECONDS + 3),
    "shape": (r"processes run different programs: .*f32\[2,4\].*f32\[2,5\]", 9),
    "fail": (r"process 1 .* It raised: ValueError: a bad batch", 5),
    "inside": (r"process 1 .* raised: .*(OverflowError|too much)", 5),
    "leave": (r"process 1 .* is at its end, and process 0 waits for it in psum", 5),
    "stop": (r"process 1 .* was not heard of for \d s: it was stopped", SECONDS + 3),
}
FIRST = ("die", "hang")


@pytest.mark.parametrize("how", [f if f in FIRST else pytest.param(f, marks=pytest.mark.thorough)
                                 for f in FAULTS])
def test_a_process_that_fails_is_named(how):
    words, seconds = FAULTS[how]
    ended = run_by_environment(2, "-m", "tests.distributed.faulty", how, give_up=100,
                               stopped=(1,) if how == "stop" else ())
    first = ended[0]
    assert first.code in (1, 3), first.output
    told = re.search(r"told after ([\d.]+) s: ", first.output)
    assert told, first.output
    assert re.search(words, first.output), first.output
    # a busy machine has other clocks: it was no 30 s that it took
    assert float(told[1]) < max(seconds, 30)
    assert ended[1].code != 0
