"""The functions inside jit, vmap and grad: as outside, as in a loop, as finite differences."""

import numpy as np
import pytest
from reference import check, normal

import functrans as ft
import functrans.numpy as jnp

X = np.linspace(0.3, 2.1, 12).reshape(3, 4)
V = np.linspace(-1, 2, 4)

SMOOTH = {
    "sinc": jnp.sinc, "i0": jnp.i0, "logaddexp": lambda x: jnp.logaddexp(x, 1.0),
    "logaddexp2": lambda x: jnp.logaddexp2(x, 1.0), "hypot": lambda x: jnp.hypot(x, 2.0),
    "power": lambda x: jnp.power(x, 3), "float_power": lambda x: jnp.power(x, 2.5),
    "exponent": lambda x: jnp.power(2.0, x), "log2": jnp.log2, "log10": jnp.log10,
    "floor_mod": lambda x: jnp.remainder(x, 0.67), "clip": lambda x: jnp.clip(x, 0.5, 1.5),
    "where": lambda x: jnp.where(x > 1, x**2, 0.5 * x), "max": lambda x: jnp.max(x, axis=1),
    "prod": lambda x: jnp.prod(x, axis=0), "var": lambda x: jnp.var(x, axis=0, ddof=1),
    "std": jnp.std, "mean_where": lambda x: jnp.mean(x, where=jnp.asarray(X > 1)),
    "nanmean": jnp.nanmean, "median": lambda x: jnp.median(x, axis=1),
    "quantile": lambda x: jnp.quantile(x, 0.3, axis=1), "cumprod": lambda x: jnp.cumprod(x, 1),
    "diff": lambda x: jnp.diff(x, 2), "gradient": lambda x: jnp.gradient(x, axis=1),
    "trapezoid": jnp.trapezoid, "sort": lambda x: jnp.sort(x * jnp.cos(5 * x), axis=0),
    "matmul": lambda x: jnp.matmul(x.T, x), "kron": lambda x: jnp.kron(x, x[:1]),
    "cross": lambda x: jnp.cross(x[:, :3], x[:, 1:]), "inner": lambda x: jnp.inner(x, x),
    "tensordot": lambda x: jnp.tensordot(x, x, ((0,), (0,))),
    "einsum": lambda x: jnp.einsum("ij,kj,kl->il", x, x, x),
    "einsum_diagonal": lambda x: jnp.einsum("ii->i", x[:, :3]),
    "diag": lambda x: jnp.diag(x[0], 1), "diagonal": lambda x: jnp.diagonal(x, 1),
    "triu": jnp.triu, "roll": lambda x: jnp.roll(x, 1, 1), "rot90": jnp.rot90,
    "pad_reflect": lambda x: jnp.pad(x, 2, "reflect"), "pad_wrap": lambda x: jnp.pad(x, 1, "wrap"),
    "pad_ramp": lambda x: jnp.pad(x, 2, "linear_ramp"), "tile": lambda x: jnp.tile(x, (2, 1)),
    "repeat": lambda x: jnp.repeat(x, np.array([1, 0, 2]), 0),
    "take": lambda x: jnp.take(x, np.array([2, 0, 0]), 1),
    "take_along_axis": lambda x: jnp.take_along_axis(x, np.array([[1], [3], [0]]), 1),
    "put_along_axis": lambda x: jnp.put_along_axis(x, np.array([[1]]), 0.0, 1, inplace=False),
    "insert": lambda x: jnp.insert(x, 1, 0.0, 1), "delete": lambda x: jnp.delete(x, 1, 1),
    "convolve": lambda x: jnp.convolve(x[0], x[1]), "polyval": lambda x: jnp.polyval(x[0], x),
    "interp": lambda x: jnp.interp(x, jnp.arange(4.0), V), "cov": jnp.cov, "corrcoef": jnp.corrcoef,
    "linspace": lambda x: jnp.linspace(x[0], x[1], 5), "average": lambda x: jnp.average(
        x, 1, weights=jnp.asarray(V + 2)), "block": lambda x: jnp.block([[x, x], [x, x]]),
    "unwrap": lambda x: jnp.unwrap(x * 3), "nan_to_num": jnp.nan_to_num,
    "vander": lambda x: jnp.vander(x[0]), "round_trip": lambda x: jnp.modf(x)[0],
    "ldexp": lambda x: jnp.ldexp(x, np.int32(2)), "angle": lambda x: jnp.real(jnp.angle(x + 1j)),
    "select": lambda x: jnp.select([x > 1.5, x > 1], [x, x**2], 0.0), "deg2rad": jnp.deg2rad,
    "apply_along_axis": lambda x: jnp.apply_along_axis(lambda v: v * jnp.sum(v), 1, x),
    "geomspace": lambda x: jnp.geomspace(x[0], x[2], 4), "vdot": lambda x: jnp.vdot(x, x),
    "piecewise": lambda x: jnp.piecewise(x, [x < 1], [lambda v: v**2, lambda v: 3 * v]),
    "nanmax": jnp.nanmax, "ptp": lambda x: jnp.ptp(x, 0),
    "copysign": lambda x: jnp.copysign(x, -1.0),
}
WHOLE = {
    "argsort": lambda x: jnp.argsort(x, axis=0), "searchsorted": lambda x: jnp.searchsorted(
        jnp.sort(x[0]), x), "histogram": lambda x: jnp.histogram(x, 4)[0],
    "unique": lambda x: jnp.unique(x, size=5), "nonzero": lambda x: jnp.nonzero(x > 1, size=3),
    "isin": lambda x: jnp.isin(x, V), "digitize": lambda x: jnp.digitize(x, V),
    "bincount": lambda x: jnp.bincount(jnp.astype(x[0], int), length=4),
    "floor_divide": lambda x: jnp.floor_divide(x, 0.7), "frexp": jnp.frexp,
    "lexsort": lambda x: jnp.lexsort((x[0], x[1])), "packbits": lambda x: jnp.packbits(x > 1),
    "gcd": lambda x: jnp.gcd(jnp.astype(x * 10, int), 6), "argmax": lambda x: jnp.argmax(x, 1),
    "isclose": lambda x: jnp.isclose(x, 1.0), "count_nonzero": lambda x: jnp.count_nonzero(x > 1),
    "integer_power": lambda x: jnp.power(jnp.astype(x * 3, int), jnp.arange(4)),
    "setdiff1d": lambda x: jnp.setdiff1d(x[0], x[1], size=4),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*SMOOTH, *WHOLE])
def test_inside_jit_and_vmap(name):
    f = {**SMOOTH, **WHOLE}[name]
    x = jnp.asarray(X)
    expected = f(x)
    check(ft.jit(f)(x), expected, "fic")
    batch = jnp.asarray(np.stack([X, X[::-1] + 0.1]))
    each = [f(batch[0]), f(batch[1])]
    mapped = ft.vmap(f)(batch)
    for i in range(2):
        part = [m[i] for m in mapped] if isinstance(mapped, (list, tuple)) else mapped[i]
        whole = list(each[i]) if isinstance(each[i], (list, tuple)) else each[i]
        check(part, whole, "fic")


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_against_finite_differences(name):
    f = SMOOTH[name]
    direction = normal(*X.shape, dtype=np.float64)

    def along(t):
        values = f(jnp.asarray(X) + t * direction)
        weights = np.cos(np.arange(values.size)).reshape(values.shape)
        return jnp.sum(values * weights)

    step = 1e-6
    numeric = (float(along(step)) - float(along(-step))) / (2 * step)
    exact = float(ft.grad(along)(np.float64(0)))
    assert abs(exact - numeric) < 1e-5 * max(1, abs(numeric)), (exact, numeric)


def test_derivatives_at_special_points():
    assert float(ft.grad(jnp.sinc)(0.0)) == 0.0
    second = float(ft.grad(ft.grad(jnp.sinc))(np.float64(0)))
    assert abs(second + np.pi**2 / 3) < 1e-9
    assert float(ft.grad(lambda x: jnp.logaddexp(x, x))(np.float32(-np.inf))) >= 0
    assert float(ft.grad(lambda x: jnp.hypot(x, 0.0))(0.0)) == 0.0
    assert float(ft.grad(lambda x: jnp.power(x, 2))(0.0)) == 0.0


def test_reductions_where_of_an_empty_selection_have_finite_gradients():
    mask = np.array([False, True, False])
    gradient = ft.grad(lambda x: jnp.sum(jnp.log(x), where=mask))(jnp.asarray([1.0, 2.0, 3.0]))
    assert np.asarray(gradient).tolist() == [0.0, 0.5, 0.0]


def test_python_numbers_stay_literals_in_a_trace():
    text = str(ft.make_jaxpr(lambda x: jnp.maximum(2 * x + 1, 0.0) / 3)(jnp.ones(3)))
    assert "2.0" in text and "0.0" in text and "3.0" in text
    assert "convert_element_type" not in text and "broadcast_in_dim" not in text


SYMBOLIC = {
    "mean": (lambda x: jnp.mean(x, 0), "f32[4]"), "var": (jnp.var, "f32[]"),
    "reshape": (lambda x: jnp.reshape(x, (-1, 2)), "f32[2*B,2]"),
    "matmul": (lambda x: jnp.matmul(x, jnp.ones((4, 3))), "f32[B,3]"),
    "einsum": (lambda x: jnp.einsum("bi,bj->ij", x, x), "f32[4,4]"),
    "concatenate": (lambda x: jnp.concatenate([x, x]), "f32[2*B,4]"),
    "broadcast": (lambda x: x + jnp.arange(4), "f32[B,4]"),
    "arange": (lambda x: jnp.arange(x.shape[0]), "i32[B]"),
    "median": (lambda x: jnp.median(x, 1), "f32[B]"), "ravel": (jnp.ravel, "f32[4*B]"),
    "asarray": (lambda x: jnp.asarray(x.shape[0]) * 2, "i32[]"),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name):
    f, expected = SYMBOLIC[name]
    x = ft.ShapeDtypeStruct((ft.Dim("B"), 4), np.float32)
    (out,) = ft.make_jaxpr(f)(x).jaxpr.outvars
    assert str(out.aval) == expected
