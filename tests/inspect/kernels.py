"""The kernels of small programs for a CPU and for a GPU, as reports have them, uncompiled."""

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.report_parts import computes_nothing
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.lower import lower
from functrans.lowering.triton.machine.unit import Binary
from functrans.lowering.triton.records import records
from functrans.lowering.triton.report import kernels_of, schedule_runs


class _Uncompiled(dict):
    """Machine code of no kernel: a report of it tells all but registers."""

    def __missing__(self, key):
        return Binary(key[1], "", key[4], key[5], 0, 0, 1, 0, 0, "", b"")


def gpu_program(f, *args):
    """The simplified program of a function, and its program for a GPU."""
    known = lower(ft.lower(f, *args, target="cuda:90").jaxpr, frozenset(), False, False, HOPPER,
                  None)
    return known.simplified, known.program


def gpu_kernels(f, *args):
    """The simplified program of a function, and its kernels for a GPU."""
    simplified, program = gpu_program(f, *args)
    return simplified, kernels_of(simplified, program, records(program, _Uncompiled()), HOPPER)


def cpu_kernels(f, *args):
    """The simplified program of a function, and its kernels for a CPU."""
    report = ft.explain(f, *args, target="cpu").report
    return report.simplified, report.kernels


KERNELS = {"cpu": cpu_kernels, "gpu": gpu_kernels}


def shape(*sizes, dtype="float32"):
    return ft.ShapeDtypeStruct(sizes, dtype)


def network(w, x):
    hidden = jnp.tanh(x @ w + 1)
    return (hidden * hidden).sum(0), hidden


def normalised(x, g):
    x = x - x.mean(-1, keepdims=True)
    return x * ft.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8.0
    return jnp.einsum("bhqk,bhkd->bhqd", ft.nn.softmax(scores), v)


def walk(x, steps):
    def body(c, s):
        x, v = c
        v = v + 0.01 * (s - jnp.sin(x))
        return (x + 0.01 * v, v), x

    return ft.lax.scan(body, (x, jnp.zeros_like(x)), steps)


def newton(x):
    return ft.lax.while_loop(lambda s: (jnp.abs(s[0]) > 1e-3) & (s[1] < 9),
                             lambda s: (s[0] - jnp.cos(s[0]) * 0.5, s[1] + 1), (x, 0))


def recurrent(w, x):
    def body(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h.sum()

    return ft.lax.scan(body, jnp.zeros(x.shape[1:]), x)


PROGRAMS = {
    "elements": (lambda x, y: jnp.sin(x) * jnp.exp(y.T) + 2.0, (shape(96, 64), shape(64, 96))),
    "long_rows": (lambda x: ft.nn.softmax(x), (shape(8, 40_000),)),
    "rows": (normalised, (shape(256, 64), shape(64))),
    "columns": (lambda x: (x.sum(0), (x * x).sum()), (shape(300, 40),)),
    "places": (lambda x: (jnp.argmax(x, 1), jnp.sort(x, 1), jnp.cumsum(x, 0)), (shape(16, 64),)),
    "scatter": (lambda x, i, y: x.at[i].add(y * 2), (shape(64, 8), shape(20, dtype="int32"),
                                                     shape(20, 8))),
    "network": (network, (shape(64, 32), shape(128, 64))),
    "network_gradient": (ft.grad(lambda w, x: network(w, x)[0].sum()), (shape(64, 32),
                                                                        shape(128, 64))),
    "attention": (attention, (shape(2, 4, 64, 64),) * 3),
    "convolution": (lambda x, w: jnp.tanh(ft.lax.conv(x, w, (1, 1), "SAME")),
                    (shape(4, 8, 16, 16), shape(8, 8, 3, 3))),
    "lanes": (ft.vmap(walk, (0, None)), (shape(2048), shape(50))),
    "lanes_while": (ft.vmap(newton), (shape(2048),)),
    "loop_in_a_kernel": (recurrent, (shape(32, 32), shape(64, 16, 32))),
    "small_ones": (lambda xs: [jnp.sin(x) + k for k, x in enumerate(xs)],
                   ([shape(8), shape(9, 3), shape(5)],)),
}


def has_steps(f, *args):
    """Whether a function has something to compute."""
    return not computes_nothing(ft.lower(f, *args, target="cpu").jaxpr)


__all__ = ["KERNELS", "PROGRAMS", "cpu_kernels", "gpu_kernels", "gpu_program", "has_steps",
           "schedule_runs", "shape"]
