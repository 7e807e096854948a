"""What parameters do that JAX's functions have: in functrans.lax, numpy, linalg and scipy."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError, DTypeError, IndexingError, ShapeError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4)).astype(np.float32)
COLUMN, ROW = X[:, :1].copy(), X[:1].copy()
I = np.arange(12, dtype=np.int32).reshape(3, 4)


def same(f, expected, *args, tol=1e-6):
    """f gives `expected` eagerly, under jit, and under vmap over copies."""
    expected = np.asarray(expected)
    arrays = [jnp.asarray(a) for a in args]
    for run in (f, ft.jit(f)):
        result = run(*arrays)
        assert result.shape == expected.shape and result.dtype.kind == expected.dtype.kind
        np.testing.assert_allclose(result, expected, rtol=tol, atol=tol)
    lanes = ft.vmap(f)(*[jnp.stack([a, a]) for a in arrays])
    np.testing.assert_allclose(lanes[1], expected, rtol=tol, atol=tol)


BINARY = ("add", "sub", "mul", "div", "rem", "max", "min", "pow", "atan2", "nextafter", "complex",
          "eq", "ne", "lt", "le", "gt", "ge", "igamma", "igammac", "zeta")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BINARY)
def test_sizes_of_one_broadcast_in_lax(name):
    f = getattr(lax, name)
    a, b = np.abs(COLUMN) + 1.5, np.abs(ROW) + 0.5
    full = np.broadcast_to(a, X.shape), np.broadcast_to(b, X.shape)
    expected = f(*map(jnp.array, full))
    same(f, expected, a, b)
    same(f, expected, full[0], b)
    same(f, expected, a, full[1])


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left",
                                  "shift_right_logical", "shift_right_arithmetic"])
def test_sizes_of_one_broadcast_for_integers(name):
    f = getattr(lax, name)
    a, b = I[:, :1], I[:1] % 5
    expected = f(*(jnp.array(np.broadcast_to(v, I.shape)) for v in (a, b)))
    same(f, expected, a, b)


def test_ranks_do_not_broadcast_in_lax():
    for run in (lax.add, ft.jit(lax.add)):
        with pytest.raises(ShapeError):
            run(jnp.ones(4), jnp.ones((3, 4)))
        with pytest.raises(ShapeError):
            run(jnp.ones((3, 2)), jnp.ones((3, 4)))


def test_broadcast_operands_have_gradients():
    gradient = ft.jit(ft.grad(lambda c, r: jnp.sum(lax.mul(c, r) ** 2), (0, 1)))(COLUMN, ROW)
    np.testing.assert_allclose(gradient[0], 2 * COLUMN * (ROW**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(gradient[1], 2 * ROW * (COLUMN**2).sum(), rtol=1e-5)


def test_arguments_of_lax_by_name():
    x = jnp.asarray(X)
    named = {
        "reshape": (lax.reshape(operand=x, new_sizes=(4, 3)), X.reshape(4, 3)),
        "dimensions": (lax.reshape(x, (12,), dimensions=(1, 0)), X.T.ravel()),
        "transpose": (lax.transpose(operand=x, permutation=(1, 0)), X.T),
        "expand_dims": (lax.expand_dims(array=x, dimensions=(0,)), X[None]),
        "squeeze": (lax.squeeze(array=x[None], dimensions=(0,)), X),
        "rev": (lax.rev(operand=x, dimensions=(1,)), X[:, ::-1]),
        "reduce_sum": (lax.reduce_sum(operand=x, axes=(0,)), X.sum(0)),
        "reduce_max": (lax.reduce_max(operand=x, axes=(1,)), X.max(1)),
        "argmax": (lax.argmax(operand=x, axis=1, index_dtype=np.int32), X.argmax(1)),
        "pad": (lax.pad(operand=x, padding_value=0.0, padding_config=[(1, 0, 0), (0, 0, 0)]),
                np.pad(X, ((1, 0), (0, 0)))),
        "slice": (lax.slice(operand=x, start_indices=(1, 0), limit_indices=(3, 2)), X[1:3, :2]),
        "slice_in_dim": (lax.slice_in_dim(operand=x, start_index=1, limit_index=3), X[1:3]),
        "convert": (lax.convert_element_type(operand=x, new_dtype=np.int32), X.astype(np.int32)),
        "broadcast_in_dim": (lax.broadcast_in_dim(operand=x, shape=(2, 3, 4),
                                                  broadcast_dimensions=(1, 2)),
                             np.stack([X, X])),
        "broadcast": (lax.broadcast(operand=x, sizes=(2,)), np.stack([X, X])),
        "sin": (lax.sin(x=x), np.sin(X)), "add": (lax.add(x=x, y=1.0), X + 1),
        "dot": (lax.dot(x, x, dimension_numbers=(((1,), (1,)), ((), ()))), X @ X.T),
        "out_dtype": (lax.mul(jnp.int8(100), jnp.int8(100), out_dtype="int32"), 10_000),
    }
    for name, (result, expected) in named.items():
        np.testing.assert_allclose(result, expected, rtol=1e-5, err_msg=name)
    assert lax.broadcast(1.0, (2,)).tolist() == [1.0, 1.0] and lax.broadcast(1, (2,)).weak_type
    assert lax.reshape(1.0, (1,)).weak_type and lax.expand_dims(2, (0,)).tolist() == [2]


def test_polygamma_of_arrays_of_orders():
    m, x = np.array([0, 1, 2, 3], np.float32), np.array([0.7, 1.5, 2.0, 3.25], np.float32)
    same(lax.polygamma, scipy.special.polygamma(m, x).astype(np.float32), m, x, tol=1e-5)
    same(lambda v: lax.polygamma(2.0, v), scipy.special.polygamma(2, x).astype(np.float32), x,
         tol=1e-5)


@pytest.mark.parametrize("slices", [lax.dynamic_slice_in_dim, lax.dynamic_index_in_dim])
def test_negative_starts(slices):
    size = (2,) if slices is lax.dynamic_slice_in_dim else ()
    same(lambda x, i: slices(x, i, *size, allow_negative_indices=False), X[:2] if size else X[:1],
         X, np.int32(-1))
    same(lambda x, i: slices(x, i, *size), X[1:] if size else X[2:], X, np.int32(-1))


def test_negative_starts_by_dimension():
    def f(x, i):
        return lax.dynamic_slice(x, (i, i), (2, 2), allow_negative_indices=(True, False))

    same(f, X[1:3, :2], X, np.int32(-2))
    updated = X.copy()
    updated[0] = 7
    same(lambda x, i: lax.dynamic_update_index_in_dim(x, jnp.full(4, 7.0), i, 0,
                                                      allow_negative_indices=False), updated, X,
         np.int32(-2))
    with pytest.raises(ArgumentError, match="allow_negative_indices"):
        lax.dynamic_slice(jnp.asarray(X), (0, 0), (1, 1), allow_negative_indices=(True,))


def test_loops_with_floating_bounds():
    assert float(lax.fori_loop(0.0, 3.0, lambda i, c: c + i, 0.0)) == 3.0
    assert float(lax.fori_loop(0.5, 3.0, lambda i, c: c + i, 0.0)) == 0.5 + 1.5 + 2.5
    assert int(lax.fori_loop(2.0, 1.0, lambda i, c: c + 1, 0)) == 0
    assert float(ft.jit(lambda n: lax.fori_loop(0.0, n, lambda i, c: c + i, 0.0))(2.5)) == 3.0
    for bounds in ((0, 3.0), (0.0, 3)):
        with pytest.raises(DTypeError, match="one bound"):
            lax.fori_loop(*bounds, lambda i, c: c + i, 0.0)
    with pytest.raises(ArgumentError, match="inf"):
        lax.fori_loop(0.0, float("inf"), lambda i, c: c + i, 0.0)


def test_blocks_of_psum_scatter():
    x = np.arange(12.0).reshape(2, 6).astype(np.float32)
    blocks = ft.vmap(lambda v: lax.psum_scatter(v, "i", tiled=True), axis_name="i")(x)
    np.testing.assert_allclose(blocks, x.sum(0).reshape(2, 3))
    with pytest.raises(ArgumentError, match="divide"):
        ft.vmap(lambda v: lax.psum_scatter(v, "i", tiled=True), axis_name="i")(x[:, :5])


INDICES = [([0, 2], slice(None)), ([[0, 2], [1, 1]], 1), ([0, 2], [1, -1]), ([], slice(None)),
           ([True, False, True], slice(None)), (Ellipsis, [0, 3]), ([2], None), ([0, 2],)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_lists_inside_of_an_index(index):
    same(lambda x: x[index], X[index], X)
    changed = X.copy()
    changed[index] = 9
    same(lambda x: x.at[index].set(9.0), changed, X)
    same(lambda x: x.at[index].apply(lambda v: v * 0 + 9), changed, X)


def test_lists_with_traced_integers_in_an_index():
    same(lambda x, i: x[[i, 2], :], X[[1, 2]], X, np.int8(1))
    same(lambda x, i: x.at[[[i, 0], [2, i]], [0, 1]].get(), X[[[1, 0], [2, 1]], [0, 1]], X,
         np.int64(1))


def test_what_no_index_is():
    x = jnp.asarray(X)
    for index in (([0.5], 0), (["a"], 0), ([[0], [1, 2]], 0), [0, 2], [True, False, True], [None]):
        with pytest.raises(IndexingError):
            x[index]
        with pytest.raises(IndexingError):
            x.at[index].set(0)


def test_narrow_indices():
    x = np.arange(300)
    for dtype, places in (("int8", [-1, 127, 3]), ("uint8", [255, 0, 3]), ("int16", [299, -300])):
        i = np.array(places, dtype)
        same(lambda x, i: jnp.take_along_axis(x, i, 0), x[i.astype(int)].astype(np.int32),
             x.astype(np.int32), i)
        same(lambda x, i: jnp.take(x, i), x[i.astype(int)].astype(np.int32), x.astype(np.int32), i)


def test_indices_that_do_not_count_from_the_end():
    x, i = X[0], np.array([-1, 2])
    outside = [np.nan, x[2]]
    for mode, expected in ((None, outside), ("fill", outside), ("clip", x[[0, 2]])):
        result = ft.jit(lambda x, i, mode=mode: jnp.take_along_axis(
            x, i, 0, mode, wrap_negative_indices=False))(x, i)
        np.testing.assert_array_equal(result, np.asarray(expected, np.float32))


def test_traced_diagonals_and_places():
    for k in (-1, 0, 2):
        same(lambda k: jnp.eye(3, 4, k=k), np.eye(3, 4, k), np.int32(k))
        same(lambda k: jnp.tri(3, k=k), np.tri(3, k=k), np.int32(k))
    with pytest.raises(ArgumentError, match="k must be an integer"):
        jnp.eye(3, k=1.0)
    for places in (1, -1, 3, [1, 0], [2, 2], [-1, 3, 0]):
        values = np.arange(7, 7 + np.size(places))
        for value in (9, values) if np.ndim(places) else (9, values[:1], np.array([7, 8])):
            same(lambda i, v=value: jnp.insert(jnp.arange(3), i, v),
                 np.insert(np.arange(3, dtype=np.int32), places, value), np.asarray(places))
    same(lambda x, i: jnp.insert(x, i, jnp.arange(3.0), axis=1),
         np.insert(X, 2, np.arange(3.0), axis=1), X, np.int32(2))


METHODS = {
    "searchsorted": (("scan", "scan_unrolled", "sort", "compare_all"),
                     lambda x, v, m, side: jnp.searchsorted(x, v, side, method=m),
                     lambda x, v, side: np.searchsorted(x, v, side)),
    "digitize": (("scan", "sort", "compare_all", None),
                 lambda x, v, m, side: jnp.digitize(v, x, side == "left", method=m),
                 lambda x, v, side: np.digitize(v, x, side == "left")),
    "isin": (("auto", "compare_all", "binary_search", "sort"),
             lambda x, v, m, side: jnp.isin(v, x, method=m, invert=side == "left"),
             lambda x, v, side: np.isin(v, x, invert=side == "left")),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_agree(name):
    methods, ours, theirs = METHODS[name]
    row = np.sort(np.concatenate([RNG.normal(size=6), [0.5, 0.5, 1.0]])).astype(np.float32)
    values = np.concatenate([row[::2], [0.5, -9.0, 9.0, 0.0], RNG.normal(size=4)])
    values = values.astype(np.float32).reshape(-1, 1)
    for size in (1, 2, 9):
        for side in ("left", "right"):
            expected = theirs(row[:size], values, side)
            for method in methods:
                result = ft.jit(lambda x, v, m=method, s=side: ours(x, v, m, s))(row[:size], values)
                np.testing.assert_array_equal(result, expected, err_msg=f"{method} {size} {side}")
    with pytest.raises(ArgumentError, match="method"):
        ours(jnp.asarray(row), jnp.asarray(values), "guess", "left")


def test_weighted_quantiles():
    w = np.abs(X) + 0.1
    for q in (0.0, 0.3, np.array([0.25, 0.5, 1.0])):
        for axis, weights in ((None, w), (1, w), (1, w[0]), (0, w[:, 0])):
            expected = np.quantile(X, q, axis, method="inverted_cdf", weights=weights)
            same(lambda x, w, q=q, a=axis: jnp.quantile(x, q, a, method="inverted_cdf", weights=w),
                 expected, X, weights)
            same(lambda x, w, q=q, a=axis: jnp.percentile(x, 100 * q, a, method="inverted_cdf",
                                                          weights=w), expected, X, weights)
        same(lambda x, q=q: jnp.quantile(x, q, 0, method="inverted_cdf"),
             np.quantile(X, q, 0, method="inverted_cdf"), X)
    holes = X.copy()
    holes[0, :2] = np.nan
    same(lambda x, w: jnp.nanquantile(x, 0.4, 1, method="inverted_cdf", weights=w),
         np.nanquantile(holes, 0.4, 1, method="inverted_cdf", weights=w), holes, w)
    with pytest.raises(ArgumentError, match="no weights"):
        jnp.quantile(X, 0.5, weights=w)
    with pytest.raises(ShapeError, match="weights of shape"):
        jnp.quantile(X, 0.5, 1, method="inverted_cdf", weights=w[:2])


def test_orders_and_dtypes_of_sorts():
    assert jnp.argsort(X, dtype="int8").dtype == np.int8
    same(lambda x: jnp.argsort(x, 0, dtype="uint16"), np.argsort(X, 0).astype(np.uint16), X)
    with pytest.raises(ArgumentError, match="integer dtype"):
        jnp.argsort(X, dtype="float32")
    index = jnp.ravel_multi_index((jnp.arange(2), jnp.arange(2)), (3, 4), dtype="int64")
    assert index.dtype == np.int64 and index.tolist() == [0, 5]
    rows, columns = ft.jit(lambda: jnp.mask_indices(3, jnp.triu, size=6))()
    np.testing.assert_array_equal((rows, columns), np.triu_indices(3))
    block = np.pad(np.ones((2, 3)), ((1, 2), (0, 1)))
    for axis in (None, 0, (1,)):
        same_shape = np.trim_zeros(block, axis=axis)
        np.testing.assert_array_equal(jnp.trim_zeros(block, axis=axis), same_shape)
    assert jnp.trim_zeros(np.zeros(3)).shape == (0,)


def test_arrays_on_a_device():
    cpu = ft.devices("cpu")[0]
    for x in (jnp.zeros(2, device=cpu), jnp.ones(2, device="cpu"), jnp.full(2, 1.0, device=cpu),
              jnp.empty(2, device=cpu), jnp.arange(2, device=cpu), jnp.eye(2, device=cpu),
              jnp.linspace(0, 1, 2, device=cpu), jnp.array([1.0], device=cpu),
              jnp.asarray([1.0], device=cpu), jnp.zeros_like(X, device=cpu),
              jnp.full_like(X, 2, device=cpu), jnp.fft.fftfreq(4, device=cpu),
              jnp.astype(jnp.ones(2), "int8", device=cpu)):
        assert x.device == cpu
    assert ft.jit(lambda: jnp.zeros(2, device=cpu))().tolist() == [0.0, 0.0]
    with pytest.raises(ft.core.errors.BackendError):
        jnp.zeros(2, device="tpu")
    own = ft.device_put(x, may_alias=False)
    assert own is not x and not np.shares_memory(own, x)
    assert ft.device_put(x, donate=True, src=cpu).tolist() == x.tolist()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_qr_with_pivots(shape, dtype):
    a = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if dtype == "complex64" else 0)
    a = a.astype(dtype)
    _, wanted, order = scipy.linalg.qr(a, pivoting=True)
    for full in (True, False):
        q, r, p = ft.jit(lambda x, full=full: lax.linalg.qr(
            x, pivoting=True, full_matrices=full))(a)
        assert p.tolist() == order.tolist()
        np.testing.assert_allclose(q @ r, a[:, order], atol=1e-5)
        np.testing.assert_allclose(np.abs(r), np.abs(wanted[:r.shape[0]]), atol=1e-5)
    lanes = ft.vmap(lambda x: lax.linalg.qr(x, pivoting=True)[2])(jnp.stack([a, a]))
    assert lanes[1].tolist() == order.tolist()
    r, p = ft.scipy.linalg.qr(a, mode="r", pivoting=True)
    assert r.shape == shape and p.tolist() == order.tolist()


def test_parts_of_decompositions():
    s = (X @ X.T + np.eye(3)).astype(np.float32)
    b = (X[:, :3] @ X[:, :3].T + np.eye(3)).astype(np.float32)
    w = np.linalg.eigvalsh(s)
    v, part = lax.linalg.eigh(jnp.asarray(s), subset_by_index=(1, 3))
    np.testing.assert_allclose(part, w[1:], rtol=1e-4)
    np.testing.assert_allclose(s @ v, v * part, atol=1e-4)
    u, values, vh = jnp.linalg.svd(X, subset_by_index=(0, 1))
    assert u.shape == (3, 1) and values.shape == (1,) and vh.shape == (1, 4)
    assert jnp.linalg.svd(X, compute_uv=False, subset_by_index=(1, 3)).shape == (2,)
    assert jnp.linalg.svd(s, hermitian=True, subset_by_index=(0, 2)).U.shape == (3, 2)
    with pytest.raises(ArgumentError, match="no range"):
        lax.linalg.svd(jnp.asarray(X), subset_by_index=(2, 9))
    for kind in (1, 2, 3):
        expected = scipy.linalg.eigh(s, b, type=kind, eigvals_only=True)
        found, vectors = ft.scipy.linalg.eigh(s, b, type=kind)
        np.testing.assert_allclose(found, expected, rtol=1e-3)
        left, right = {1: (s, b), 2: (s @ b, np.eye(3)), 3: (b @ s, np.eye(3))}[kind]
        np.testing.assert_allclose(left @ vectors, right @ vectors * found, atol=1e-2)
    np.testing.assert_allclose(ft.scipy.linalg.eigh(s, eigvals=(1, 2), eigvals_only=True), w[1:],
                               rtol=1e-4)
    square = X[:, :3]
    for matrix in (square, -square, square * (1 + 0.5j)):
        np.testing.assert_allclose(jnp.linalg.slogdet(matrix, method="qr"),
                                   np.linalg.slogdet(matrix), rtol=1e-3)
    assert jnp.linalg.slogdet(np.zeros((2, 2)), method="qr").logabsdet == -np.inf


def test_special_functions_as_in_scipy():
    same(ft.scipy.special.softmax, scipy.special.softmax(X), X)
    same(ft.scipy.special.log_softmax, scipy.special.log_softmax(X), X, tol=1e-5)
    same(lambda x: ft.scipy.special.softmax(x, axis=0), scipy.special.softmax(X, axis=0), X)
    n, k = np.array([3.0, 5.0, 0.0, 4.0]), np.array([2.0, 0.0, 0.0, 6.0])
    with ft.default_dtypes("float64", "int64"):
        same(lambda n, k: ft.scipy.special.comb(n, k, repetition=True),
             scipy.special.comb(n, k, repetition=True), n, k, tol=1e-9)


def test_names_of_arguments_of_ufuncs():
    assert jnp.fmax(x1=jnp.ones(2), x2=jnp.asarray([np.nan, 3.0])).tolist() == [1.0, 3.0]
    assert jnp.fmin(x1=jnp.ones(2), x2=2.0).tolist() == [1.0, 1.0]
    assert jnp.trunc(x=jnp.asarray([-1.5])).tolist() == [-1.0]
    assert jnp.isposinf(jnp.asarray([np.inf, 1.0]), None).tolist() == [True, False]
    assert jnp.add(jnp.ones(1), 1, out=None, where=None).tolist() == [2.0]
    assert jnp.issubdtype(arg1="bfloat16", arg2=np.floating)
    with pytest.raises(ArgumentError, match="out"):
        jnp.add(jnp.ones(1), 1, out=np.ones(1))
