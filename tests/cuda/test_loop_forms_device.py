"""On a GPU: the form that a loop takes is near the fastest of all its forms."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as xp
from functrans.core.compiling import for_compiler
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.forms import preferring
from functrans.lowering.schedule.target import device_target
from functrans.lowering.triton.lower import lower
from functrans.lowering.triton.machine.device import binaries, device_program
from functrans.lowering.triton.machine.measure import ROUNDS, Timer

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(0)
MOST, SLACK = 1.5, 5e-6
FORMS = ("a lane a thread", "a tile of lanes a program", "a program an iteration", "one kernel",
         "launched step by step", "in turns")
ITERATIONS = 40


def normal(*shape):
    return (RNG.normal(size=shape) / max(shape[-1], 1) ** 0.5).astype("f4")


def scalar(x):
    return 0.5 * x + 0.1 * xp.sin(x)


def vector(x):
    return x + 0.01 * xp.stack([10.0 * (x[1] - x[0]), x[0] * (2.0 - x[2]) - x[1],
                                x[0] * x[1] - 3.0 * x[2]])


def layer(w):
    return lambda x: xp.tanh(x @ w)


BODIES = {"scalar": (scalar, ()), "vector of 3": (vector, (3,)),
          "layer of 16": (layer(normal(16, 16)), (16,)),
          "layer of 128": (layer(normal(128, 128)), (128,))}


def fixed(body, x):
    return lax.fori_loop(0, ITERATIONS, lambda i, x: body(x), x)


def recorded(body, x):
    return lax.scan(lambda x, _: (body(x), x), x, None, ITERATIONS)[1]


def until(body, x):
    def going(state):
        x, n = state
        return (n < ITERATIONS) & (xp.sum(x * x) > 1e-3)
    return lax.while_loop(going, lambda s: (body(s[0]), s[1] + 1), (x, 0))


def either(body, x):
    return lax.cond(xp.sum(x) > 0, lambda x: fixed(body, x), lambda x: x, x)


def gradient(body, x):
    return ft.grad(lambda x: xp.sum(fixed(body, x) ** 2))(x)


LOOPS = {"fixed": fixed, "recorded": recorded, "until": until, "either": either,
         "gradient": gradient}
CASES = [(loop, body, lanes) for loop in LOOPS for body in BODIES for lanes in (1, 96, 4096, 65536)
         if body != "layer of 128" or lanes < 65536]


def seconds_of_forms(fun, x):
    """Seconds of a program as it is chosen, and by the form that its loops prefer."""
    target = device_target(0)
    with for_compiler(True):
        closed = ft.make_jaxpr(fun)(x)
    jaxpr = closed.jaxpr.hoist_consts()
    arrays = [ft.device_put(np.asarray(a), "gpu") for a in (*closed.consts, x)]
    timers = {}
    for wanted in (None, *FORMS):
        with preferring(*[wanted] * (wanted is not None)):
            program = lower(jaxpr, frozenset(), False, False, target, None, binaries).program
        if wanted is None or any(f" is {wanted}" in note or f", {wanted}" in note
                                 for note in program.notes):
            run = device_program(program, 0, target, name=str(wanted))
            timers[wanted] = Timer(run, arrays, 0)
    rounds = [[timer() for timer in timers.values()] for _ in range(ROUNDS)]
    return dict(zip(timers, map(min, zip(*rounds, strict=True)), strict=True))


@pytest.mark.parametrize("loop, body, lanes", CASES)
def test_no_form_is_much_faster_than_the_one_that_is_taken(loop, body, lanes):
    step, shape = BODIES[body]
    fun = ft.vmap(lambda x: LOOPS[loop](step, x))
    seconds = seconds_of_forms(fun, normal(lanes, *shape))
    taken = seconds.pop(None)
    told = {name: f"{1e6 * s:.1f} us" for name, s in seconds.items()}
    assert taken <= MOST * min(seconds.values(), default=taken) + SLACK, (f"{1e6 * taken:.1f} us",
                                                                          told)


def test_every_form_is_timed():
    """The law says nothing where there is one form: the cases have two or more."""
    fun = ft.vmap(lambda x: fixed(layer(normal(16, 16)), x))
    assert len(seconds_of_forms(fun, normal(4096, 16))) > 2
    assert simplify(ft.make_jaxpr(fun)(normal(4096, 16)).jaxpr.hoist_consts()).eqns
