"""How to draw arguments for every public function of functrans.numpy and functrans.lax.

A case is a string of slots, or (slots, keywords), or (slots, call of the function and the slots).
Slots: x any number or array (those of one case broadcast), s an array or number of a shape shared
by all, v one dimension, m a square matrix, t (n, 2, 2), i a small integer index, p a boolean of a
shape shared by all, u a uint8 array, g a floating or complex square matrix, f floating numbers.
"""

from typing import Any

import functrans.numpy as jnp
from functrans import lax

Cases = dict[str, list[Any]]


def alike(names: str, *cases: Any) -> Cases:
    return {name: list(cases) for name in names.split()}


UNARY = alike(
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan "
    "atanh bitwise_count bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad "
    "degrees exp exp2 expm1 fabs fix floor frexp i0 imag invert iscomplex isfinite isinf isnan "
    "isneginf isposinf isreal log log10 log1p log2 logical_not modf nan_to_num negative positive "
    "rad2deg radians real reciprocal rint sign signbit sin sinc sinh spacing sqrt square tan tanh "
    "trunc",
    "x")
BINARY = alike(
    "add arctan2 array_equal array_equiv atan2 bitwise_and bitwise_left_shift bitwise_or "
    "bitwise_right_shift bitwise_xor copysign divide divmod equal float_power floor_divide fmax "
    "fmin fmod gcd greater greater_equal heaviside hypot inner kron lcm left_shift less less_equal "
    "logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply "
    "nextafter not_equal outer pow power remainder right_shift subtract true_divide vdot", "xx")
CONVERSIONS = alike(
    "array asarray ascontiguousarray copy atleast_1d atleast_2d atleast_3d bool bool_ complex128 "
    "complex32 complex64 cdouble csingle complex_ double float16 float32 float64 float_ bfloat16 "
    "single int8 int16 int32 int64 int_ uint uint8 uint16 uint32 uint64 empty_like ones_like "
    "zeros_like diagflat ravel squeeze transpose permute_dims", "x")
REDUCTIONS = alike(
    "all any amax amin max mean min prod std sum var nanmax nanmean nanmin nanprod nanstd nansum "
    "nanvar count_nonzero ptp median nanmedian", "x", ("m", {"axis": 0}),
    ("m", {"axis": -1, "keepdims": True}))
LAST_AXIS = alike("argmax argmin nanargmax nanargmin cumprod cumsum nancumprod nancumsum sort "
                  "argsort", "x", ("m", {"axis": 0}))
STACKS = alike(
    "column_stack concat concatenate dstack hstack stack vstack", ("vv", lambda f, *x: f(x)),
    ("mm", lambda f, x, y: f([x, y])), ("v", lambda f, x: f([x])))

NUMPY: Cases = {
    **UNARY, **BINARY, **CONVERSIONS, **REDUCTIONS, **LAST_AXIS, **STACKS,
    **alike("tril triu fliplr flipud rot90 diag diagonal trace matrix_transpose", "m"),
    **alike("cov corrcoef sort_complex unwrap diff ediff1d gradient poly polyder polyint trapezoid "
            "vander flip", "v", "m"),
    **alike("append convolve correlate cross polyadd polymul polysub dot matmul", "vv"),
    **alike("hsplit vsplit split array_split", ("m", lambda f, x: f(x, 1))),
    **alike("percentile nanpercentile quantile nanquantile", ("xf", lambda f, x, q: f(x, q)),
            ("m", lambda f, x: f(x, 0.5, axis=1))),
    **alike("bartlett blackman hamming hanning", *[("", lambda f, n=n: f(n)) for n in (0, 1, 4)]),
    **alike("tril_indices_from triu_indices_from diag_indices_from", "m"),
    **alike("moveaxis swapaxes", ("m", lambda f, x: f(x, 0, 1))),
    **alike("partition argpartition", ("v", lambda f, x: f(x, 0))),
    "allclose": ["xx"], "isclose": ["xx"],
    "apply_along_axis": [("m", lambda f, x: f(lambda r: r.sum(), 1, x))],
    "apply_over_axes": [("m", lambda f, x: f(jnp.sum, x, [0, 1]))],
    "arange": [("", lambda f: f(3)), ("", lambda f: f(0.0, 1.0, 0.5)),
               ("", lambda f: f(3, dtype="i1"))],
    "around": ["x", ("x", {"decimals": 1})], "round": ["x", ("x", {"decimals": 2})],
    "astype": [("x", lambda f, x, d=d: f(x, d))
               for d in ("f4", "i1", "?", "c8", "bfloat16", None)],
    "average": ["x", ("ss", lambda f, x, w: f(x, weights=w)), ("mm", lambda f, x, w: f(x, 0, w))],
    "block": [("xx", lambda f, x, y: f([[x, x], [x, x]]))],
    "broadcast_arrays": ["xx"], "broadcast_to": [("x", lambda f, x: f(x, (4, *jnp.shape(x))))],
    "choose": [("ixx", lambda f, i, x, y: f(i, [x, y], mode="clip"))],
    "clip": ["xxx", ("x", lambda f, x: f(x, -0.5, 0.7)), ("x", lambda f, x: f(x, 0, 2)),
             ("x", lambda f, x: f(x, None, 1))],
    "compress": [("v", lambda f, x: f([True], x, size=1))],
    "cumulative_sum": [("v", {"axis": 0}), ("m", {"axis": 1, "include_initial": True})],
    "cumulative_prod": [("v", {"axis": 0}), ("m", {"axis": 1, "include_initial": True})],
    "delete": [("v", lambda f, x: f(x, slice(0, 1)))],
    "diag_indices": [("", lambda f: f(2))],
    "digitize": [("xf", lambda f, x, b: f(x, jnp.asarray([0.0, 1.0])))],
    "dsplit": [("t", lambda f, x: f(x, 2))],
    "einsum": [("vv", lambda f, x, y: f("i,i->", x, y)),
               ("mm", lambda f, x, y: f("ij,jk->ik", x, y)), ("m", lambda f, x: f("ii->i", x))],
    "empty": [("", lambda f: f((2, 0)))],
    "expand_dims": [("x", lambda f, x: f(x, 0))],
    "extract": [("pv", lambda f, p, x: f(p, x, size=2))],
    "eye": [("", lambda f: f(2)), ("", lambda f: f(0, dtype="i1"))],
    "fill_diagonal": [("mx", lambda f, x, y: f(x, 1, inplace=False))],
    "flatnonzero": [("x", {"size": 2})],
    "fromfunction": [("", lambda f: f(lambda i, j: i + j, (2, 2)))],
    "full": [("x", lambda f, x: f((2, *jnp.shape(x)), x)), ("", lambda f: f((2,), 1.0)),
             ("", lambda f: f((), True))],
    "full_like": [("x", lambda f, x: f(x, 2)), ("xx", lambda f, x, y: f(x, 1.5))],
    "geomspace": [("", lambda f: f(1.0, 2.0, 3)), ("ff", lambda f, x, y: f(x, y, 3))],
    "histogram": ["v", ("vv", lambda f, x, w: f(x, 4, weights=w))],
    "histogram_bin_edges": ["v"], "histogram2d": [("v", lambda f, x: f(x, x))],
    "histogramdd": [("m", lambda f, x: f(x, 3))],
    "identity": [("", lambda f: f(3))], "indices": [("", lambda f: f((2, 0)))],
    "insert": [("vx", lambda f, x, y: f(x, 0, 1))],
    "interp": [("xvv", lambda f, x, p, q: f(x, p, q))],
    "intersect1d": [("vv", {"size": 2})], "setdiff1d": [("vv", {"size": 2})],
    "setxor1d": [("vv", {"size": 2})], "union1d": [("vv", {"size": 2})],
    "isin": ["xx"], "ix_": ["v"], "kaiser": [("", lambda f: f(4, 2.0))],
    "ldexp": [("xi", lambda f, x, i: f(x, i))], "lexsort": [("vv", lambda f, x, y: f((x, y)))],
    "linspace": [("xx", lambda f, x, y: f(x, y, 3)), ("", lambda f: f(0, 1, 0)),
                 ("xx", lambda f, x, y: f(x, y, 3, retstep=True))],
    "logspace": [("xx", lambda f, x, y: f(x, y, 3))],
    "matvec": ["mv2"], "vecmat": ["v2m"], "vecdot": ["vv"],
    "meshgrid": ["vv", ("vv", {"sparse": True})],
    "nonzero": [("x", {"size": 2})], "argwhere": [("x", {"size": 2})],
    "ones": [("", lambda f: f((0, 2)))], "zeros": [("", lambda f: f((), "i4"))],
    "packbits": ["u"], "unpackbits": ["u"],
    "pad": [("v", lambda f, x: f(x, 1)), ("m", lambda f, x: f(x, ((1, 0), (0, 2)), "edge")),
            ("v", lambda f, x: f(x, 1, constant_values=2))],
    "piecewise": [("px", lambda f, p, x: f(x, [jnp.asarray(x) > 0], [1, lambda v: v + 1]))],
    "place": [("mx", lambda f, x, y: f(x, jnp.asarray(x) > 0, [1, 2], inplace=False))],
    "polydiv": [("vv", lambda f, x, y: f(x, y))], "polyval": [("vx", lambda f, p, x: f(p, x))],
    "put": [("vi", lambda f, x, i: f(x, i, 1, mode="clip", inplace=False))],
    "put_along_axis": [("mI", lambda f, x, i: f(x, i, 1, 1, inplace=False))],
    "ravel_multi_index": [("ii", lambda f, i, j: f((i, j), (2, 3), mode="clip"))],
    "repeat": [("x", lambda f, x: f(x, 2)), ("m", lambda f, x: f(x, 0, axis=1))],
    "reshape": [("x", lambda f, x: f(x, (-1, 1))), ("v", lambda f, x: f(x, jnp.shape(x)))],
    "resize": [("x", lambda f, x: f(x, (2, 2)))],
    "roll": [("x", lambda f, x: f(x, 1)), ("mi", lambda f, x, i: f(x, i, 0)),
             ("mi0", lambda f, x, i: f(x, i, 1))],
    "rollaxis": [("m", lambda f, x: f(x, 1))],
    "searchsorted": [("vx", lambda f, a, x: f(a, x))],
    "select": [("pxx", lambda f, p, x, y: f([p], [x], 1)),
               ("pxx", lambda f, p, x, y: f([p, p], [x, y]))],
    "take": [("xi", lambda f, x, i: f(x, i)), ("mi", lambda f, x, i: f(x, i, axis=0)),
             ("mi", lambda f, x, i: f(x, i, axis=1, mode="clip")),
             ("mi", lambda f, x, i: f(x, i, axis=1, mode="fill", fill_value=-1))],
    "take_along_axis": [("mI", lambda f, x, i: f(x, i, 1)), ("mI", lambda f, x, i: f(x, i, 0))],
    "tensordot": [("mm", lambda f, x, y: f(x, y)), ("mm", lambda f, x, y: f(x, y, 1))],
    "tile": [("x", lambda f, x: f(x, 2)), ("x", lambda f, x: f(x, (2, 0)))],
    "tri": [("", lambda f: f(2))],
    "tril_indices": [("", lambda f: f(2))], "triu_indices": [("", lambda f: f(2))],
    "unique": [("v", {"size": 2}), ("v", {"size": 2, "return_counts": True})],
    "unique_all": [("v", {"size": 2})], "unique_counts": [("v", {"size": 2})],
    "unique_inverse": [("v", {"size": 2})], "unique_values": [("v", {"size": 2})],
    "unravel_index": [("i", lambda f, i: f(i, (2, 3)))], "unstack": ["m"],
    "vectorize": [("xx", lambda f, x, y: f(lambda a, b: a + b)(x, y))],
    "frompyfunc": [("xx", lambda f, x, y: f(lambda a, b: a * b, 2, 1)(x, y)),
                   ("m", lambda f, x: f(lambda a, b: a + b, 2, 1, identity=0).reduce(x))],
    "polyfit": [("v", lambda f, y: f(jnp.arange(float(len(y))), y, 0))],
    "roots": [("v", {"strip_zeros": False})],
    "where": [("pxx", lambda f, p, x, y: f(p, x, y)), ("p", {"size": 2})],
    "bincount": [("i", lambda f, i: f(jnp.ravel(i), length=4)),
                 ("iv", lambda f, i, w: f(jnp.zeros(jnp.shape(w), "i4"), w, length=4))],
}

LINALG: Cases = {
    **alike("cholesky cond det eig eigh eigvals eigvalsh inv matrix_norm pinv qr slogdet svd "
            "svdvals matrix_rank", "g"),
    **alike("norm vector_norm", "x", "m"),
    **alike("cross outer vecdot", "vv"), **alike("matmul tensordot", "mm"),
    **alike("diagonal trace matrix_transpose", "m"),
    "norm ": [], "lstsq": ["gg"], "solve": ["gg"],
    "matrix_power": [("m", lambda f, x, n=n: f(x, n)) for n in (0, 1, 3)],
    "multi_dot": [("mmm", lambda f, *x: f(x))],
    "tensorinv": [("g", lambda f, x: f(x, 1))], "tensorsolve": [("gv2", lambda f, a, b: f(a, b))],
}
del LINALG["norm "]

FFT: Cases = {
    **alike("fft ifft rfft irfft hfft ihfft fftshift ifftshift", "v", "m"),
    **alike("fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn", "m"),
    "fftfreq": [("", lambda f: f(4))], "rfftfreq": [("", lambda f: f(4))],
}

LAX_UNARY = alike(
    "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj "
    "copy cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p "
    "logistic neg population_count real reciprocal round rsqrt sign sin sinh sqrt square "
    "stop_gradient tan tanh trunc zeros_like_array", "x")
LAX_BINARY = alike(
    "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igammac le lt max "
    "min mul ne nextafter pow random_gamma_grad rem shift_left shift_right_arithmetic "
    "shift_right_logical sub zeta", "xx", "ss")
NONE_TO_ONE = (((), (0,)), ((), ()))

LAX: Cases = {
    **LAX_UNARY, **LAX_BINARY,
    **alike("argmax argmin", ("m", lambda f, x: f(x, 0))),
    **alike("reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor",
            ("m", lambda f, x: f(x, (0,))), ("m", lambda f, x: f(x, (0, 1)))),
    **alike("cumlogsumexp cummax cummin cumprod cumsum", "m", ("m", {"axis": 1, "reverse": True})),
    **alike("reduce_window_max reduce_window_min reduce_window_sum",
            ("m", lambda f, x: f(x, (1, 2)))),
    **alike("scatter scatter_add scatter_mul scatter_max scatter_min scatter_sub",
            ("vix", lambda f, x, i, y: f(x, jnp.asarray([[0]]), jnp.ones(1, x.dtype),
                                         lax.ScatterDimensionNumbers((), (0,), (0,))))),
    "argsort": ["m"], "sort": ["m", ("vv", lambda f, x, y: f((x, y)))],
    "associative_scan": [("v", lambda f, x: f(jnp.add, x))],
    "batch_matmul": ["tt"], "dot": ["vv", "mm"],
    "dot_general": [("mm", lambda f, x, y: f(x, y, (((1,), (0,)), ((), ()))))],
    "bitcast_convert_type": [("x", lambda f, x: f(x, "i4"))],
    "broadcast": [("s", lambda f, x: f(x, (2,)))],
    "broadcast_in_dim": [("v", lambda f, x: f(x, (2, *jnp.shape(x)), (1,)))],
    "broadcasted_iota": [("", lambda f: f("i4", (2, 3), 1))], "iota": [("", lambda f: f("f4", 3))],
    "clamp": ["xxx", "sss"], "select": ["pss"], "select_n": ["pss", "isss"],
    "collapse": [("m", lambda f, x: f(x, 0, 2))], "sort_key_val": ["ss", "vv"],
    "split": [("m", lambda f, x: f(x, (1, x.shape[0] - 1)))],
    "custom_linear_solve": [("v", lambda f, b: f(lambda x: 2 * x, b, lambda _, b: b / 2,
                                                 symmetric=True))],
    "custom_root": [("f", lambda f, x: f(lambda y: y - 1, x, lambda g, y: y - g(y),
                                         lambda g, y: y / g(jnp.ones_like(y))))],
    "concatenate": [("vv", lambda f, x, y: f([x, y], 0))],
    "cond": [("xx", lambda f, x, y: f(True, lambda a: a, lambda a: a, x)),
             ("px", lambda f, p, x: f(jnp.any(p), lambda a: a, lambda a: a, x))],
    "switch": [("xx", lambda f, x, y: f(1, [lambda a: a, lambda a: a], x))],
    "fori_loop": [("x", lambda f, x: f(0, 2, lambda i, c: c, x))],
    "while_loop": [("x", lambda f, x: f(lambda c: False, lambda c: c, x))],
    "scan": [("xv", lambda f, x, v: f(lambda c, a: (c, a), x, v))],
    "map": [("v", lambda f, v: f(lambda a: a * 2, v)),
            ("v", lambda f, v: f(jnp.sin, v, batch_size=2))],
    "conv": [("tt", lambda f, x, y: f(x, y, (1,), "SAME"))],
    "conv_general_dilated": [("tt", lambda f, x, y: f(x, y, (1,), "SAME"))],
    "conv_general_dilated_patches": [("t", lambda f, x: f(x, (1,), (1,), "SAME"))],
    "conv_transpose": [("tt", lambda f, x, y: f(x, y, (1,), "SAME"))],
    "conv_with_general_padding": [("tt", lambda f, x, y: f(x, y, (1,), [(1, 1)], None, None))],
    "convert_element_type": [("x", lambda f, x, d=d: f(x, d))
                             for d in ("f2", "i1", "?", "c8", "u8")],
    "dynamic_index_in_dim": [("mi0", lambda f, x, i: f(x, i))],
    "dynamic_slice": [("mi0", lambda f, x, i: f(x, (i, 0), (1, 1)))],
    "dynamic_slice_in_dim": [("mi0", lambda f, x, i: f(x, i, 1))],
    "dynamic_update_index_in_dim": [("mi0", lambda f, x, i: f(x, x[0], i, 0))],
    "dynamic_update_slice": [("mi0", lambda f, x, i: f(x, x[:1], (i, 0)))],
    "dynamic_update_slice_in_dim": [("mi0", lambda f, x, i: f(x, x[:1], i, 0))],
    "expand_dims": [("s", lambda f, x: f(x, (0,)))],
    "fft": [("v", lambda f, x: f(x, "FFT", jnp.shape(x)))],
    "full": [("x", lambda f, x: f((2,), x)), ("", lambda f: f((), 1.0))],
    "full_like": [("x", lambda f, x: f(x, 1)), ("xx", lambda f, x, y: f(x, 0.5))],
    "gather": [("v", lambda f, x: f(x, jnp.asarray([[0]]),
                                    lax.GatherDimensionNumbers((), (0,), (0,)), (1,)))],
    "index_in_dim": [("m", lambda f, x: f(x, 0))],
    "index_take": [("mi0", lambda f, x, i: f(x, (jnp.asarray([i]),), (0,)))],
    "integer_pow": [("x", lambda f, x, n=n: f(x, n)) for n in (0, 2, 3)],
    "optimization_barrier": ["x", ("xx", lambda f, x, y: f({"a": x, "b": (y, None)}))],
    "pad": [("v", lambda f, x: f(x, jnp.zeros((), x.dtype), [(1, 2, 1)])),
            ("v", lambda f, x: f(x, jnp.zeros((), x.dtype), [(-1, -1, 0)])),
            ("vx", lambda f, x, y: f(x, 0, [(1, 0, 0)]))],
    "polygamma": [("x", lambda f, x: f(x, 1))],
    "reduce_window": [("m", lambda f, x: f(x, jnp.zeros((), x.dtype), lax.add, (1, 2)))],
    "reshape": [("s", lambda f, x: f(x, (1, *jnp.shape(x))))],
    "rev": [("m", lambda f, x: f(x, (0,)))],
    "slice": [("m", lambda f, x: f(x, (0, 0), (1, 1)))],
    "slice_in_dim": [("m", lambda f, x: f(x, 0, 1))],
    "squeeze": [("m", lambda f, x: f(x, (0,)))], "top_k": [("m", lambda f, x: f(x, 1))],
    "transpose": [("m", lambda f, x: f(x, (1, 0)))],
    **alike("approx_max_k approx_min_k", ("m", lambda f, x: f(x, 1)),
            ("m", lambda f, x: f(x, 1, 0))),
    **alike("mulhi igamma_grad_a", "xx", "ss"), "broadcast_like": ["xx"], "stage": ["x"],
    "betainc": ["xxx", "sss"],
    "broadcast_to_rank": [("s", lambda f, x: f(x, 3))],
    "reduce": [("m", lambda f, x: f(x, jnp.zeros((), x.dtype), lax.add, (0,))),
               ("m", lambda f, x: f(x, jnp.zeros((), x.dtype), lambda a, b: a * b, (1,)))],
    "reduce_precision": [("x", lambda f, x: f(x, 5, 3))],
    "tile": [("m", lambda f, x: f(x, (2, 1)))], "unstack": ["m", ("m", {"axis": 1})],
    "stack": [("ss", lambda f, x, y: f([x, y])), ("s", lambda f, x: f([x], -1))],
    "empty": [("", lambda f: f((2, 3), "f4"))],
    "shape_as_value": [("m", lambda f, x: f(x.shape))],
    "conv_general_dilated_local": [
        ("t", lambda f, x: f(x, jnp.ones((1, x.shape[1], x.shape[2]), x.dtype), (1,), "SAME",
                             (1,)))],
    "composite": [("x", lambda f, x: f(lambda a: a, "a.name")(x))],
    "platform_dependent": [("x", lambda f, x: f(x, default=lambda a: a))],
    "ragged_dot": [("mm", lambda f, x, y: f(x, y[None], jnp.asarray([1])))],
    "ragged_dot_general": [("mm", lambda f, x, y: f(
        x, y, jnp.asarray([1, 1]),
        lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), (1,), ())))],
    "scaled_dot": [("tt", {})],
    "rng_bit_generator": [("", lambda f: f(jnp.asarray([1, 2, 3, 4], "u4"), (2, 3)))],
    "scatter_apply": [("v", lambda f, x: f(x, jnp.asarray([[0]]), lambda a: a * 2,
                                           lax.ScatterDimensionNumbers((), (0,), (0,))))],
}

LAX_LINALG: Cases = {
    **alike("cholesky eigh lu qr svd eig schur hessenberg tridiagonal qdwh", "g"),
    "cholesky_update": [("gv2", lambda f, r, w: f(r, w))], "symmetric_product": ["gg"],
    "ormqr": [("gv2g", lambda f, a, t, c: f(a, t, c))],
    "householder_product": [("gv2", lambda f, a, t: f(a, t))],
    "lu_pivots_to_permutation": [("", lambda f: f(jnp.asarray([1, 1], "i4"), 2))],
    "triangular_solve": ["gg"], "tridiagonal_solve": [("v2v2v2g", lambda f, *x: f(*x))],
}

NAMESPACES = {"numpy": (jnp, NUMPY), "numpy.linalg": (jnp.linalg, LINALG),
              "numpy.fft": (jnp.fft, FFT), "lax": (lax, LAX),
              "lax.linalg": (lax.linalg, LAX_LINALG)}

NO_ARRAYS = "it takes no arrays of numbers"
GIVES_NO_ARRAY = "it answers with a Python value"
FILES = "it is of files and of printing"
NARROW = "what is made of a number depends on its value (tests/numpy)"
NAMES_AN_AXIS = "it means something under a vmap with a named axis alone (tests/transforms)"
READS_VALUES = "the shape of its result depends on values, which a trace refuses"
EXCEPTIONS = {
    "numpy": {**dict.fromkeys((
        "finfo", "iinfo", "isdtype", "issubdtype", "from_dlpack", "frombuffer", "fromiter",
        "fromstring", "einsum_path", "can_cast", "promote_types", "broadcast_shapes"), NO_ARRAYS),
        **dict.fromkeys(("array_repr", "array_str", "fromfile", "get_printoptions", "load",
                         "printoptions", "save", "savez", "set_printoptions"), FILES),
        **dict.fromkeys(("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
                         "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
                         "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int1", "int2",
                         "int4", "uint1", "uint2", "uint4"), NARROW),
        **dict.fromkeys(("isrealobj", "iscomplexobj", "isscalar", "ndim", "shape", "size",
                         "iterable", "result_type"), GIVES_NO_ARRAY),
        **dict.fromkeys(("trim_zeros", "mask_indices", "real_if_close"), READS_VALUES)},
    "numpy.linalg": {}, "numpy.fft": {}, "lax.linalg": {},
    "lax": {**dict.fromkeys((
        "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax",
        "pmean", "pmin", "ppermute", "precv", "psend", "pshuffle", "pswapaxes", "psum",
        "psum_scatter", "pvary", "ragged_all_to_all", "with_sharding_constraint"),
        NAMES_AN_AXIS),
        **dict.fromkeys((
            "DotDimensionNumbers", "broadcast_shapes", "conv_dimension_numbers",
            "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
            "conv_transpose_shape_tuple", "padtype_to_pads", "reduce_window_shape_tuple"),
            NO_ARRAYS),
        **dict.fromkeys(("after_all", "create_token", "dce_sink", "dtype"), GIVES_NO_ARRAY),
        "rng_uniform": "no two calls are equal (tests/lax)"},
}
