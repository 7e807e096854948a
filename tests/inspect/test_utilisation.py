"""Steps that leave a GPU idle are told, with why; others are not."""

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans.inspect.machine import Machine
from functrans.inspect.profile import Profile, Timed
from functrans.inspect.utilisation import idle_by_estimate

TITLE = "Where the GPU is idle"
LARGE = ft.ShapeDtypeStruct((4096, 4096), np.float32)


def recurrence(c):
    return ft.lax.fori_loop(0, 1000, lambda _, c: jnp.sin(c) + 1, c)


def explained(f, *args):
    return ft.explain(f, *args, target="cuda:90")


def test_a_loop_of_few_programs_is_told_by_estimate():
    text = str(explained(recurrence, ft.ShapeDtypeStruct((8,), np.float32)))
    section = text[text.index(TITLE):].split("\n\n")[0]
    assert "holds 1 program on 132 multiprocessors, for 100% of the run" in section
    assert "whose iterations wait for each other; vmap" in section and "test_utilisation" in section


def test_what_fills_the_gpu_is_not_told():
    assert TITLE not in str(explained(lambda x: jnp.sin(x) * 2, LARGE))
    assert TITLE not in explained(lambda x: jnp.sin(x) * 2, LARGE)._repr_html_()
    assert TITLE not in str(ft.explain(recurrence, np.ones(8, "f"), target="cpu"))


def test_short_launches_are_told_together():
    def chain(x):
        for k in range(10):
            x = jnp.flip(jnp.cumsum(x, axis=k % 2), 0)
        return x

    (line,) = idle_by_estimate(explained(chain, ft.ShapeDtypeStruct((64, 64), np.float32)).report)
    count = int(line.split()[0])
    assert count >= 10 and f"{count} launches of at most 5 us each: 100% of the run" in line


def test_a_profile_tells_what_was_measured():
    report = explained(lambda x: jnp.sin(x) * 2, LARGE).report
    (kernel,) = report.kernels
    limits = Machine(bandwidth=3e12, flops=6e13)

    def lines(seconds, whole):
        profiled = Profile(report, [Timed(kernel, seconds)], whole, limits)
        assert all(line in str(profiled) for line in profiled.idle)
        return profiled.idle

    fast = kernel.moved / limits.bandwidth
    assert lines(fast, fast) == ()
    assert lines(10 * fast, 200 * fast) == ()
    (line,) = lines(10 * fast, 20 * fast)
    assert "reaches 10% of bandwidth, for 50% of the run" in line
