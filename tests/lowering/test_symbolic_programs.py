"""One shared object for all sizes: programs of symbolic sizes run at several of them."""

import subprocess
import sys

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.avals import ShapedArray
from functrans.core.dims import Dim, substitute_shape
from functrans.core.staging import stage
from functrans.lowering.c.backend import CBackend, CExecutable

B, N = Dim("B"), Dim("N")
SIZES = (0, 1, 7, 1000)
F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
ROWS, TABLE, SQUARE = ((B, 5), F32), ((B, N), F32), ((5, 5), F32)


def layer_norm(x):
    centred = x - jnp.mean(x, 1, keepdims=True)
    return centred * lax.rsqrt(jnp.mean(centred * centred, 1, keepdims=True) + 1e-5)


def network(x, w):
    """A loop over a length that is not known."""
    return lax.scan(lambda c, e: (jnp.tanh(c @ w * 0.3 + e), c.sum()), jnp.ones(5, F32), x)


PROGRAMS = {
    "elementwise": (lambda x: jnp.where(x > 0, jnp.exp(-x) + 1, x * 2), [ROWS]),
    "two_outputs": (lambda x: (x + 1, jnp.sin(x) * 2), [TABLE]),
    "vector": (lambda x: jnp.tanh(x) * x, [((B,), F32)]),
    "softmax": (lambda x: ft.nn.softmax(x, axis=1), [ROWS]),
    "softmax_of_symbolic_rows": (lambda x: ft.nn.softmax(x, axis=1), [((5, B), F32)]),
    "layer_norm": (layer_norm, [ROWS]),
    "sums": (lambda x: (x.sum(0), x.sum(1), x.sum()), [ROWS]),
    "sums_of_a_table": (lambda x: (x.sum(0), x.sum(1), x.sum(), (x * x).sum(0)), [TABLE]),
    "extrema": (lambda x: (jnp.max(x, 1), jnp.argmax(x, 1), jnp.argmin(x * 2, 1)), [ROWS]),
    "transpose": (lambda x: (x.T, x.T + 1), [TABLE]),
    "transpose_and_add": (lambda x, y: x.T + y, [ROWS, ((5, B), F32)]),
    "concatenate": (lambda x: jnp.concatenate([x, x * 2, jnp.ones((2, 5), F32)]), [ROWS]),
    "concatenate_columns": (lambda x: jnp.concatenate([x, x * 2], axis=1), [TABLE]),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 1))), [ROWS]),
    "reverse": (lambda x: x[::-1] + x, [ROWS]),
    "reshape": (lambda x: (x.reshape(-1) * 2, x.reshape(x.shape[0], 5, 1)), [ROWS]),
    "flat_sum": (lambda x: x.reshape(-1).sum(), [TABLE]),
    "broadcast": (lambda x, y: x[:, None] * y[None, :], [((B,), F32), ((N,), F32)]),
    "iota": (lambda x: x + jnp.arange(x.shape[0])[:, None], [ROWS]),
    "gather": (lambda x, i: lax.gather(jnp.sin(x), i[:, None], lax.GatherDimensionNumbers(
        (1,), (0,), (0,)), (1, 3)), [((9, 3), F32), ((B,), I32)]),
    "scatter": (lambda x, i: lax.scatter_add(jnp.zeros((9, 5), F32), i[:, None], x,
        lax.ScatterDimensionNumbers((1,), (0,), (0,))), [ROWS, ((B,), I32)]),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, np.int32(1)), (x.shape[0], 2)),
                      [ROWS, ((), I32)]),
    "cumsum": (lambda x: (jnp.cumsum(x, 0), jnp.cumsum(x, 1)), [ROWS]),
    "sort": (lambda x: jnp.sort(x, axis=0), [ROWS]),
    "dot": (lambda x, y: x @ y, [((B,), F32), ((B,), F32)]),
    "batched_matmul": (lambda x, y: x @ y, [((B, 3, 4), F32), ((B, 4, 2), F32)]),
    "twice_as_long": (lambda x: jnp.concatenate([x, x]).reshape(2, -1).sum(0), [((B,), F32)]),
    "attention": (lambda q, k: ft.nn.softmax(q @ k.T, axis=-1) @ k, [ROWS, ((N, 5), F32)]),
    "matmul": (lambda x, w: jnp.tanh(x @ w), [ROWS, SQUARE]),
    "matmul_over_symbolic": (lambda x, y: x.T @ y, [ROWS, ROWS]),
    "gradient": (ft.grad(lambda w, x: (jnp.tanh(x @ w) ** 2).sum()), [SQUARE, ROWS]),
    "gradient_by_sample": (ft.vmap(ft.grad(lambda w, x: (jnp.tanh(x @ w) ** 2).sum()), (None, 0)),
                           [SQUARE, ROWS]),
    "scan": (network, [ROWS, SQUARE]),
    "scan_gradient": (ft.grad(lambda x, w: network(x, w)[1].sum(), (0, 1)), [ROWS, SQUARE]),
    "mapped_scan": (ft.vmap(lambda x: lax.scan(lambda c, e: (c + e, c * e), e0(x), x)), [TABLE]),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2),
                                       (0, x))[1], [ROWS]),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, x), [ROWS]),
}


def e0(x):
    return x.dtype.type(0)


def values(shape, dtype, rng):
    if dtype == I32:
        return rng.integers(0, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def compiled(fun, avals):
    closed = stage(lambda *xs: ft.tree.leaves(fun(*xs)), [ShapedArray(*a) for a in avals])
    assert not closed.consts
    executable = CBackend().compile(closed.jaxpr)
    assert isinstance(executable, CExecutable)  # not the reference
    return executable


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_for_all_sizes(name):
    fun, avals = PROGRAMS[name]
    executable = compiled(fun, avals)
    rng = np.random.default_rng(0)
    for size in SIZES:
        known = {"B": size, "N": 137 if size == 7 else 6}  # whole vectors and a part, or less
        arrays = [values(substitute_shape(s, known), d, rng) for s, d in avals]
        actual = executable.run(arrays)
        expected = ft.tree.leaves(fun(*map(jnp.asarray, arrays)))
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            e = np.asarray(e)
            assert (a.dtype, a.shape) == (e.dtype, e.shape)
            np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-4)


def kernels(fun, *avals):
    text = compiled(fun, avals).as_text()
    return text[text.index("static void k0("):text.index("static int ft_main(")]


def test_rows_of_a_symbolic_length_stay_in_one_kernel():
    assert kernels(lambda x: ft.nn.softmax(x, axis=1), TABLE).count("static void k") == 1


def test_symbolic_rows_are_cut_where_other_operands_begin():
    text = kernels(lambda x: jnp.concatenate([x, x * 2, x + 1], axis=1), TABLE)
    assert text.count("for (i64 i = ") == 6  # three pieces: whole vectors, and what is left
    assert "gather" not in text


def test_a_size_is_no_loop():
    text = kernels(lambda x: x / x.shape[0] + x.shape[0] * x.shape[1], TABLE)
    assert text.count("for (i64 i = ") == 2


def test_programs_of_known_sizes_do_not_import_sympy():
    script = """\
import sys
import numpy as np
import functrans as ft
import functrans.numpy as jnp
def loss(w, x):
    h = jnp.tanh(x @ w)
    return (ft.nn.softmax(jnp.concatenate([h, h[::-1]]).T) ** 2).sum()
print(ft.jit(ft.grad(loss))(np.ones((4, 4), "f"), np.ones((3, 4), "f")).shape)
assert "sympy" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
