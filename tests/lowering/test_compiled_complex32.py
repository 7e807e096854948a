"""Programs and operations of complex32 are those of complex64 rounded at their end, to the bit."""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.c.lower import lower

RNG = np.random.default_rng(0)
COMPLEX32 = np.dtype(ml_dtypes.complex32)
PARTS = np.array([0.0, -0.0, 1.0, -1.0, 6e-8, -6e-5, 0.3, 700.0, -65504.0, np.inf, -np.inf, np.nan])
SPECIAL = (PARTS[:, None] + 0j).repeat(len(PARTS), 1)
SPECIAL.imag = PARTS
SPECIAL = SPECIAL.ravel().astype(COMPLEX32)

ONE = {
    "neg": jnp.negative, "conj": jnp.conj, "abs": jnp.abs, "real": jnp.real, "imag": jnp.imag,
    "sign": jnp.sign, "square": jnp.square, "reciprocal": lambda x: 1 / x,
    "sqrt": jnp.sqrt, "rsqrt": ft.lax.rsqrt, "exp": jnp.exp, "expm1": jnp.expm1, "log": jnp.log,
    "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan,
    "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan, "sinh": jnp.sinh,
    "cosh": jnp.cosh, "tanh": jnp.tanh, "asinh": jnp.arcsinh, "acosh": jnp.arccosh,
    "atanh": jnp.arctanh, "logistic": ft.lax.logistic, "isfinite": jnp.isfinite,
    "isnan": jnp.isnan, "angle": jnp.angle, "bool": lambda x: x.astype(bool),
}
TWO = {"add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
       "eq": jnp.equal, "max": jnp.maximum,
       "where": lambda x, y: jnp.where(x.real > 0, x, y)}


def chain(x, y):
    return (x * y - y / 3 + 1j) * jnp.conj(x)


def draw(*shape):
    parts = RNG.uniform(-2, 2, (2, *shape))
    return (parts[0] + 1j * parts[1]).astype(COMPLEX32)


def rounded(x):
    """What is to be found of a result for complex64."""
    x = np.asarray(x)
    narrow = {"complex64": COMPLEX32, "float32": np.dtype(np.float16)}.get(x.dtype.name, x.dtype)
    with np.errstate(over="ignore"):
        return x.astype(narrow)


def check(functions, args, exact=True):
    """That results are those of complex64 rounded, of programs and of each operation."""
    def program(*args):
        return {name: f(*args) for name, f in functions.items()}

    narrow = list(map(jnp.asarray, args))
    wide = [jnp.asarray(a.astype(np.complex64)) for a in args]
    same(ft.jit(program)(*narrow), ft.jit(program)(*wide), exact)
    same(program(*narrow), program(*wide), exact)


def same(found, wide, exact):
    for name, value in found.items():
        want = rounded(wide[name])
        assert value.dtype == want.dtype, name
        a, e = (parts(v) for v in (value, want))
        if not exact:
            np.testing.assert_allclose(a.astype("d"), e.astype("d"), rtol=4e-3, atol=4e-3,
                                       err_msg=name)
            continue
        np.testing.assert_array_equal(a, e, err_msg=name)
        if a.dtype == np.float16:
            np.testing.assert_array_equal(np.signbit(a)[a == 0], np.signbit(e)[a == 0], name)


def parts(x):
    x = np.asarray(x, x.dtype, order="C")
    return x.view(np.float16) if x.dtype == COMPLEX32 else x


def test_functions_of_special_values():
    x = np.concatenate([SPECIAL, draw(30)])
    check(ONE, [x])
    check({"cube": lambda x: x**3}, [x])  # by itself: a square with other readers is rounded


def test_operations_on_special_values():
    x, y = (v.ravel() for v in np.meshgrid(SPECIAL[::5], SPECIAL[::7]))
    check(TWO, [x, y])


def test_a_chain_is_rounded_once_and_does_not_overflow():
    x, y = (v.ravel() for v in np.meshgrid(SPECIAL[::5], SPECIAL[::7]))
    wide = ft.jit(chain)(*[jnp.asarray(v.astype(np.complex64)) for v in (x, y)])
    same({"chain": ft.jit(chain)(jnp.asarray(x), jnp.asarray(y))}, {"chain": wide}, True)
    x = np.array([300 + 400j, 60000j], COMPLEX32)
    found = ft.jit(lambda x: (x * x) / 1000)(jnp.asarray(x))
    wide = x.astype(np.complex64)
    assert np.asarray(found).tolist() == rounded(wide * wide / 1000).tolist()
    assert np.isinf(np.asarray(ft.jit(lambda x: x * x)(jnp.asarray(x)))).all()


def test_a_value_with_several_readers_is_rounded_for_all():
    x = jnp.asarray(draw(50))

    def both(x):
        y = jnp.exp(x) * x
        return y, y * 2, y + y

    y, twice, total = ft.jit(both)(x)
    assert (twice == y * 2).all() and (total == y * 2).all()


MOVES = {
    "reshape": lambda x, y: x.reshape(3, 8).T, "slice": lambda x, y: x[1:3, ::-2],
    "gather": lambda x, y: x[jnp.array([2, 0, 3])],
    "fill": lambda x, y: x.at[jnp.array([1, 9])].get(mode="fill"),
    "set": lambda x, y: x.at[1:3].set(y[:2]), "join": lambda x, y: jnp.concatenate([x, y], 1),
    "stack": lambda x, y: jnp.stack([x, y], 1), "pad": lambda x, y: jnp.pad(x, 1),
    "update": lambda x, y: ft.lax.dynamic_update_slice(x, y[:2, :2], (1, 1)),
    "bits": lambda x, y: x.real.astype("float16"), "sort": lambda x, y: jnp.sort(x)}
SUMS = {
    "sum": lambda x, y: x.sum(1), "products": lambda x, y: (x * y).sum(0),
    "mean": lambda x, y: x.mean(0), "matmul": lambda x, y: x @ y.T, "var": lambda x, y: x.var(),
    "cumsum": lambda x, y: jnp.cumsum(x, 1), "prod": lambda x, y: jnp.prod(x, 1),
    "add_at": lambda x, y: x.at[jnp.array([1, 1, 3])].add(y[:3]),
    "convolve": lambda x, y: jnp.convolve(x[0], y[0]),
    "scan": lambda x, y: ft.lax.scan(lambda c, r: (c * 0.5 + r, c * r), x[0], y),
    "cond": lambda x, y: ft.lax.cond(x[0, 0].real > 0, lambda a: a * y, lambda a: a - 1, x),
    "loop": lambda x, y: ft.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + y, x),
    "vmap": lambda x, y: ft.vmap(lambda a, b: (a * b).sum())(x, y)}
FFTS = {
    "fft": lambda x, y: jnp.fft.fft(x), "ifft": lambda x, y: jnp.fft.ifft(x, norm="forward"),
    "fft2": lambda x, y: jnp.fft.fft2(x, norm="ortho"), "irfft": lambda x, y: jnp.fft.irfft(x)}


def total(f):
    """The gradient of a sum, in a wide dtype."""
    return lambda x, y: ft.grad(lambda x: f(x, y).sum().astype("float32"))(x)


DERIVATIVES = {
    "abs": total(lambda x, y: abs(x * y)), "parts": total(lambda x, y: x.real * x.imag),
    "exp": total(lambda x, y: jnp.real(jnp.exp(x) * jnp.sin(x) * y)),
    "gather": total(lambda x, y: abs(x[jnp.array([2, 0, 2])])),
    "fft": total(lambda x, y: abs(jnp.fft.fft(x * 0.1)) ** 2),
    "jvp": lambda x, y: ft.jvp(lambda x: jnp.tanh(x) * x, (x,), (y,))[1]}


def test_order_of_special_values():
    check({"sort": jnp.sort, "argsort": jnp.argsort, "max": lambda x: jnp.maximum(x, x[::-1])},
          [SPECIAL])


def test_movement():
    check(MOVES, [draw(4, 6), draw(4, 6)])


@pytest.mark.parametrize("functions", (SUMS, FFTS, DERIVATIVES), ids=("sums", "fft", "grad"))
def test_programs(functions):
    x, y = draw(4, 6), draw(4, 6)
    flat = {n: (lambda x, y, f=f: ft.tree.leaves(f(x, y))[-1]) for n, f in functions.items()}
    check(flat, [x, y], exact=False)


def test_products_do_not_overflow_in_parts():
    x = jnp.full((2, 2), 200 + 200j, "complex32")
    for run in (ft.jit, lambda f: f):
        found = run(lambda x: jnp.matmul(x, x, preferred_element_type=x.dtype))(x)
        assert found.dtype == COMPLEX32
        assert (found.real == 0).all() and (found.imag == np.inf).all()


def test_nothing_is_left_to_python():
    def program(x, y):
        two = [chain, TWO["where"], *[MOVES[n] for n in ("reshape", "join", "gather")],
               *[SUMS[n] for n in ("sum", "products", "matmul", "loop")]]
        return [ONE[n](x) for n in ("exp", "abs", "sqrt", "bool")], [f(x, y) for f in two]

    x = jnp.asarray(draw(4, 6))
    text = lower(ft.lower(program, x, x).jaxpr, frozenset()).text
    assert not text.hosts


def test_kernels_of_gpus():
    x, y = jnp.asarray(draw(4, 6)), jnp.asarray(draw(4, 6))
    functions = [chain, ONE["exp"], MOVES["join"], MOVES["gather"], SUMS["products"],
                 SUMS["loop"], DERIVATIVES["parts"]]

    def program(x, y):
        return [f(x) if f in ONE.values() else f(x, y) for f in functions]

    with ft.config.use_backend("triton"):
        found = ft.jit(program)(x, y)
    for a, e in zip(found, ft.jit(program)(x, y), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=2e-3, atol=2e-3)
