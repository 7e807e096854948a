"""The functions inside jit, vmap and grad: as outside, as in a loop, as finite differences."""

import numpy as np
import pytest
from reference import check, normal

import functrans as ft
import functrans.numpy as fnp

X = np.linspace(0.3, 2.1, 12).reshape(3, 4)
V = np.linspace(-1, 2, 4)

SMOOTH = {
    "sinc": fnp.sinc, "i0": fnp.i0, "logaddexp": lambda x: fnp.logaddexp(x, 1.0),
    "logaddexp2": lambda x: fnp.logaddexp2(x, 1.0), "hypot": lambda x: fnp.hypot(x, 2.0),
    "power": lambda x: fnp.power(x, 3), "float_power": lambda x: fnp.power(x, 2.5),
    "exponent": lambda x: fnp.power(2.0, x), "log2": fnp.log2, "log10": fnp.log10,
    "floor_mod": lambda x: fnp.remainder(x, 0.67), "clip": lambda x: fnp.clip(x, 0.5, 1.5),
    "where": lambda x: fnp.where(x > 1, x**2, 0.5 * x), "max": lambda x: fnp.max(x, axis=1),
    "prod": lambda x: fnp.prod(x, axis=0), "var": lambda x: fnp.var(x, axis=0, ddof=1),
    "std": fnp.std, "mean_where": lambda x: fnp.mean(x, where=fnp.asarray(X > 1)),
    "nanmean": fnp.nanmean, "median": lambda x: fnp.median(x, axis=1),
    "quantile": lambda x: fnp.quantile(x, 0.3, axis=1), "cumprod": lambda x: fnp.cumprod(x, 1),
    "diff": lambda x: fnp.diff(x, 2), "gradient": lambda x: fnp.gradient(x, axis=1),
    "trapezoid": fnp.trapezoid, "sort": lambda x: fnp.sort(x * fnp.cos(5 * x), axis=0),
    "matmul": lambda x: fnp.matmul(x.T, x), "kron": lambda x: fnp.kron(x, x[:1]),
    "cross": lambda x: fnp.cross(x[:, :3], x[:, 1:]), "inner": lambda x: fnp.inner(x, x),
    "tensordot": lambda x: fnp.tensordot(x, x, ((0,), (0,))),
    "einsum": lambda x: fnp.einsum("ij,kj,kl->il", x, x, x),
    "einsum_diagonal": lambda x: fnp.einsum("ii->i", x[:, :3]),
    "diag": lambda x: fnp.diag(x[0], 1), "diagonal": lambda x: fnp.diagonal(x, 1),
    "triu": fnp.triu, "roll": lambda x: fnp.roll(x, 1, 1), "rot90": fnp.rot90,
    "pad_reflect": lambda x: fnp.pad(x, 2, "reflect"), "pad_wrap": lambda x: fnp.pad(x, 1, "wrap"),
    "pad_ramp": lambda x: fnp.pad(x, 2, "linear_ramp"), "tile": lambda x: fnp.tile(x, (2, 1)),
    "repeat": lambda x: fnp.repeat(x, np.array([1, 0, 2]), 0),
    "take": lambda x: fnp.take(x, np.array([2, 0, 0]), 1),
    "take_along_axis": lambda x: fnp.take_along_axis(x, np.array([[1], [3], [0]]), 1),
    "put_along_axis": lambda x: fnp.put_along_axis(x, np.array([[1]]), 0.0, 1, inplace=False),
    "insert": lambda x: fnp.insert(x, 1, 0.0, 1), "delete": lambda x: fnp.delete(x, 1, 1),
    "convolve": lambda x: fnp.convolve(x[0], x[1]), "polyval": lambda x: fnp.polyval(x[0], x),
    "interp": lambda x: fnp.interp(x, fnp.arange(4.0), V), "cov": fnp.cov, "corrcoef": fnp.corrcoef,
    "linspace": lambda x: fnp.linspace(x[0], x[1], 5), "average": lambda x: fnp.average(
        x, 1, weights=fnp.asarray(V + 2)), "block": lambda x: fnp.block([[x, x], [x, x]]),
    "unwrap": lambda x: fnp.unwrap(x * 3), "nan_to_num": fnp.nan_to_num,
    "vander": lambda x: fnp.vander(x[0]), "round_trip": lambda x: fnp.modf(x)[0],
    "ldexp": lambda x: fnp.ldexp(x, np.int32(2)), "angle": lambda x: fnp.real(fnp.angle(x + 1j)),
    "select": lambda x: fnp.select([x > 1.5, x > 1], [x, x**2], 0.0), "deg2rad": fnp.deg2rad,
    "apply_along_axis": lambda x: fnp.apply_along_axis(lambda v: v * fnp.sum(v), 1, x),
    "geomspace": lambda x: fnp.geomspace(x[0], x[2], 4), "vdot": lambda x: fnp.vdot(x, x),
    "piecewise": lambda x: fnp.piecewise(x, [x < 1], [lambda v: v**2, lambda v: 3 * v]),
    "nanmax": fnp.nanmax, "ptp": lambda x: fnp.ptp(x, 0),
    "copysign": lambda x: fnp.copysign(x, -1.0),
}
WHOLE = {
    "argsort": lambda x: fnp.argsort(x, axis=0), "searchsorted": lambda x: fnp.searchsorted(
        fnp.sort(x[0]), x), "histogram": lambda x: fnp.histogram(x, 4)[0],
    "unique": lambda x: fnp.unique(x, size=5), "nonzero": lambda x: fnp.nonzero(x > 1, size=3),
    "isin": lambda x: fnp.isin(x, V), "digitize": lambda x: fnp.digitize(x, V),
    "bincount": lambda x: fnp.bincount(fnp.astype(x[0], int), length=4),
    "floor_divide": lambda x: fnp.floor_divide(x, 0.7), "frexp": fnp.frexp,
    "lexsort": lambda x: fnp.lexsort((x[0], x[1])), "packbits": lambda x: fnp.packbits(x > 1),
    "gcd": lambda x: fnp.gcd(fnp.astype(x * 10, int), 6), "argmax": lambda x: fnp.argmax(x, 1),
    "isclose": lambda x: fnp.isclose(x, 1.0), "count_nonzero": lambda x: fnp.count_nonzero(x > 1),
    "integer_power": lambda x: fnp.power(fnp.astype(x * 3, int), fnp.arange(4)),
    "setdiff1d": lambda x: fnp.setdiff1d(x[0], x[1], size=4),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*SMOOTH, *WHOLE])
def test_inside_jit_and_vmap(name):
    f = {**SMOOTH, **WHOLE}[name]
    x = fnp.asarray(X)
    expected = f(x)
    check(ft.jit(f)(x), expected, "fic")
    batch = fnp.asarray(np.stack([X, X[::-1] + 0.1]))
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
        values = f(fnp.asarray(X) + t * direction)
        weights = np.cos(np.arange(values.size)).reshape(values.shape)
        return fnp.sum(values * weights)

    step = 1e-6
    numeric = (float(along(step)) - float(along(-step))) / (2 * step)
    exact = float(ft.grad(along)(np.float64(0)))
    assert abs(exact - numeric) < 1e-5 * max(1, abs(numeric)), (exact, numeric)


def test_derivatives_at_special_points():
    assert float(ft.grad(fnp.sinc)(0.0)) == 0.0
    second = float(ft.grad(ft.grad(fnp.sinc))(np.float64(0)))
    assert abs(second + np.pi**2 / 3) < 1e-9
    assert float(ft.grad(lambda x: fnp.logaddexp(x, x))(np.float32(-np.inf))) >= 0
    assert float(ft.grad(lambda x: fnp.hypot(x, 0.0))(0.0)) == 0.0
    assert float(ft.grad(lambda x: fnp.power(x, 2))(0.0)) == 0.0


def test_reductions_where_of_an_empty_selection_have_finite_gradients():
    mask = np.array([False, True, False])
    gradient = ft.grad(lambda x: fnp.sum(fnp.log(x), where=mask))(fnp.asarray([1.0, 2.0, 3.0]))
    assert np.asarray(gradient).tolist() == [0.0, 0.5, 0.0]


def test_python_numbers_stay_literals_in_a_trace():
    text = str(ft.make_jaxpr(lambda x: fnp.maximum(2 * x + 1, 0.0) / 3)(fnp.ones(3)))
    assert "2.0" in text and "0.0" in text and "3.0" in text
    assert "convert_element_type" not in text and "broadcast_in_dim" not in text


SYMBOLIC = {
    "mean": (lambda x: fnp.mean(x, 0), "f32[4]"), "var": (fnp.var, "f32[]"),
    "reshape": (lambda x: fnp.reshape(x, (-1, 2)), "f32[2*B,2]"),
    "matmul": (lambda x: fnp.matmul(x, fnp.ones((4, 3))), "f32[B,3]"),
    "einsum": (lambda x: fnp.einsum("bi,bj->ij", x, x), "f32[4,4]"),
    "concatenate": (lambda x: fnp.concatenate([x, x]), "f32[2*B,4]"),
    "broadcast": (lambda x: x + fnp.arange(4), "f32[B,4]"),
    "arange": (lambda x: fnp.arange(x.shape[0]), "i32[B]"),
    "median": (lambda x: fnp.median(x, 1), "f32[B]"), "ravel": (fnp.ravel, "f32[4*B]"),
    "asarray": (lambda x: fnp.asarray(x.shape[0]) * 2, "i32[]"),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name):
    f, expected = SYMBOLIC[name]
    x = ft.ShapeDtypeStruct((ft.Dim("B"), 4), np.float32)
    (out,) = ft.make_jaxpr(f)(x).jaxpr.outvars
    assert str(out.aval) == expected
