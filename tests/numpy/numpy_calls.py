"""One call or more of every public function of NumPy that takes arrays: what its law runs over.

Every ndarray among the arguments is a place for one of our arrays.
"""

import warnings

import numpy as np
from numpy import linalg as la

RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


V = np.array([0.5, -1.25, 2.0, 0.75, -0.5], np.float32)
W = np.array([1.5, 2.25, 0.25, 3.0, 0.125], np.float32)
M = floats(3, 4)
S = floats(3, 3) + 3 * np.eye(3, dtype=np.float32)
SPD = (S @ S.T).astype(np.float32)
T = floats(2, 3, 4)
I = np.array([3, 1, 2, 0, 1], np.int32)
J = np.array([2, 2, 1, 5, 3], np.int32)
U = np.array([3, 200, 0], np.uint8)
B = np.array([True, False, True, False, True])
MASK = M > 0
C = (V + 1j * W).astype(np.complex64)
SORTED = np.sort(V)
NAN = np.array([1.0, np.nan, 3.0, 0.5, np.nan], np.float32)
BITS = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.uint8)


def call(*args, **kwargs):
    return args, kwargs


def each(names, *calls):
    return dict.fromkeys(names.split(), calls)


FUNCTIONS = {
    # one array, with and without an axis
    **each("all any amax amin argmax argmin argsort average count_nonzero cumprod cumsum flip max "
           "mean median min nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd "
           "nansum nanvar prod ptp sort std sum var nanargmax nanargmin diff trapezoid",
           call(M), call(M, axis=1)),
    **each("angle around array_str array2string", call(V)),
    **each("argwhere atleast_1d atleast_2d atleast_3d copy diagflat ediff1d fix flatnonzero "
           "fliplr flipud imag iscomplex iscomplexobj isneginf isposinf isreal isrealobj isscalar "
           "iterable nan_to_num ndim nonzero ravel real real_if_close require round shape sinc "
           "size sort_complex squeeze transpose zeros_like ones_like "
           "asanyarray asarray ascontiguousarray asarray_chkfinite asfortranarray array "
           "matrix_transpose permute_dims rot90 unwrap unique unique_all unique_counts "
           "unique_inverse unique_values corrcoef cov gradient min_scalar_type common_type "
           "row_stack vstack hstack dstack column_stack unstack", call(M)),
    **each("i0 poly vander", call(V)),
    "array_equiv": (call(V, V), call(V, [V.tolist()])),
    "array_equal": (call(V, V), call(V, W), call(V, V.tolist())),
    "allclose": (call(V, W), call(V, V.tolist())),
    "isclose": (call(V, W), call(V, V.tolist()), call([0.5], V, rtol=0.1)),
    "append": (call(V, W), call(V, [1.0, 2.0]), call(M, M, axis=0)),
    "apply_along_axis": (call(np.sum, 0, M),),
    "apply_over_axes": (call(np.sum, T, [0, 2]),),
    "arange": (call(np.asarray(3)), call(np.asarray(1.0), np.asarray(3.0))),
    "argpartition": (),  # the order within the parts is not determined
    "array_split": (call(V, 2), call(M, 3, axis=1)),
    "split": (call(M, 2, axis=1), call(M, [1, 3], 1)),
    "dsplit": (call(T, 2),), "hsplit": (call(M, 2),), "vsplit": (call(M, 3),),
    "average": (call(V, weights=[1, 2, 3, 4, 5]), call(M, 0, [1.0, 2.0, 1.0]),
                call(V, weights=W, returned=True)),
    "astype": (call(V, np.float16),),
    "bincount": (call(I), call(I, W), call(I, V.tolist(), 7)),
    "block": (call([[S, S], [S, S]]), call([V, 1.0])),
    "broadcast_arrays": (call(V, M[:, :1]), call(V, 1.0)),
    "broadcast_to": (call(V, (2, 5)),),
    "can_cast": (call("float32", np.float64),),
    "choose": (call(I, [V, W, V, W]), call([0, 1], [V[:2], [5.0, 6.0]])),
    "clip": (call(V, -1, 1), call(V, [0] * 5, None), call(V, None, W), call(V, a_min=0, a_max=W)),
    "compress": (call(B, V), call([True, False, True], M, axis=0)),
    "concat": (call([V, W]), call((M, M), axis=1)),
    "concatenate": (call([V, W]), call((M, M), 1), call([V, [1.0]], dtype=np.float64),
                    call([V, W], casting="unsafe", dtype=np.int32)),
    "convolve": (call(V, [1.0, 2.0]), call(V, W, "same")),
    "correlate": (call(V, [1.0, 2.0]), call(V, W, "full")),
    "cov": (call(M), call(V, W), call(M, rowvar=False, ddof=0), call(V, aweights=[1, 2, 3, 4, 5])),
    "corrcoef": (call(V, W),),
    "cross": (call(S, S),), "cumulative_sum": (call(V, include_initial=True),),
    "cumulative_prod": (call(V),),
    "delete": (call(V, 1), call(V, [0, 2]), call(M, slice(0, 2), 1)),
    "diag": (call(V), call(S), call(S, 1)), "diagonal": (call(S), call(T, 0, 1, 2)),
    "diag_indices_from": (call(S),), "tril_indices_from": (call(S),),
    "triu_indices_from": (call(S, 1),),
    "diff": (call(V, 2), call(V, prepend=0), call(M, axis=0, append=[[1.0] * 4])),
    "digitize": (call(V, SORTED), call(V, [0, 1], True)),
    "dot": (call(S, S), call(V, V.tolist()), call(2.0, V)),
    "inner": (call(V, W),), "outer": (call(V, W), call([1, 2], V)), "vdot": (call(C, C),),
    "kron": (call(V, S), call(S, [1, 2])),
    "tensordot": (call(S, S), call(S, S, ([0], [1])), call(S, S, 1)),
    "einsum": (call("ij,jk->ik", S, S), call("i,i", V, V.tolist()),
               call("ij,jk->ik", S, S, optimize=True)),
    "empty_like": (), "full_like": (call(V, 2), call(V, W), call(M, 1, dtype=np.float64)),
    "zeros_like": (call(V), call(V, dtype=np.int32), call(V, order="F")),
    "expand_dims": (call(V, 0), call(V, (0, 2))), "extract": (call(B, V), call([1, 0, 1], W[:3])),
    "full": (call((2,), np.asarray(3.0)), call(2, V[:2])),
    "geomspace": (call(W[0], W[1], 4),), "linspace": (call(V[0], V[1], 4), call(V, [1] * 5, 3)),
    "logspace": (call(V[0], V[1], 4),),
    "gradient": (call(V), call(V, 2.0), call(V, [0.0, 1.0, 3.0, 4.0, 6.0]), call(M, axis=0),
                 call(V, edge_order=2)),
    "heaviside": (call(V, 0.5),),
    "histogram": (call(V, 3), call(V, [-2.0, 0.0, 2.0]), call(V, "auto"), call(V, 3, weights=W),
                  call(V, bins=SORTED)),
    "histogram2d": (call(V, W, 3), call(V, W, [2, 3])),
    "histogram_bin_edges": (call(V, 3), call(V, "sturges")),
    "histogramdd": (call(M, 2), call([V, W], (2, 3))),
    "insert": (call(V, 1, 9.0), call(V, [0, 2], [7.0, 8.0]), call(M, 1, V[:3], axis=1)),
    "interp": (call(V, [0.0, 1.0], [2.0, 3.0]), call([0.1, 0.2], SORTED, W),
               call(V, SORTED, W, left=0, period=5.0)),
    "intersect1d": (call(I, J), call(I, [1, 2])), "union1d": (call(I, J), call(I, [7])),
    "setdiff1d": (call(I, J), call(I, [1])), "setxor1d": (call(I, J), call([5, 1], I)),
    "isin": (call(I, J), call(I, [1, 2]), call([1, 9], I), call(I, J, invert=True)),
    "isdtype": (), "issubdtype": (), "ix_": (call(I, J), call(B, [0, 1])),
    "lexsort": (call((I, J)), call(M)), "mask_indices": (), "iscomplex": (call(C),),
    "meshgrid": (call(V, W), call(V, [1, 2], indexing="ij", sparse=True)),
    "moveaxis": (call(T, 0, -1),), "swapaxes": (call(T, 0, 1),), "rollaxis": (call(T, 2),),
    "nan_to_num": (call(NAN), call(NAN, nan=1.0), call(NAN, copy=True)),
    "nanpercentile": (call(NAN, 30), call(NAN, [30, 50], method="lower")),
    "nanquantile": (call(NAN, 0.3), call(NAN, [0.2, 0.5], keepdims=True)),
    "percentile": (call(V, 30), call(M, [25, 75], axis=0),
                   call(V, 40, method="inverted_cdf", weights=W)),
    "quantile": (call(V, 0.3), call(M, [0.25, 0.75], axis=0),
                 call(V, 0.4, method="inverted_cdf", weights=[1, 2, 3, 4, 5])),
    "packbits": (call(BITS), call(BITS, bitorder="little")), "unpackbits": (call(U),),
    "pad": (call(V, 2), call(M, ((1, 0), (0, 2)), "edge"), call(V, 2, mode="linear_ramp"),
            call(V, 1, constant_values=W[0])),
    "partition": (), "piecewise": (call(V, [V < 0, V >= 0], [-1, 1]),
                                   call(V, [V < 0], [lambda x: -x, lambda x: x + 1])),
    "poly": (call(V), call(S)), "polyadd": (call(V, [1, 2]),), "polysub": (call([1, 2], V),),
    "polymul": (call(V, [1, 2]),), "polydiv": (call(V, [2.0, 1.0]),), "polyder": (call(V, 2),),
    "polyint": (call(V), call(V, 2, [1, 2])), "polyval": (call(V, 2.0), call([1, 2, 3], V)),
    "polyfit": (call(V, W, 1), call(V, W, 2, w=W), call(V, [1, 2, 3, 4, 5], 1, cov=True)),
    "roots": (call(V), call(I[:4])),
    "ravel_multi_index": (call((I, I), (4, 5)),),
    "unravel_index": (call(I, (2, 2)),), "repeat": (call(V, 2), call(V, I), call(M, [1, 2, 1], 0)),
    "reshape": (call(M, (4, 3)), call(M, -1), call(M, (4, 3), order="F"), call(M, (2, -1), "F")),
    "resize": (call(V, (2, 4)),), "roll": (call(V, 2), call(M, (1, 2), (0, 1))),
    "rot90": (call(M, 2, (1, 0)),), "round": (call(V, 1), call(V, decimals=2)),
    "around": (call(V, 1),),
    "searchsorted": (call(SORTED, V), call(SORTED, [0.0, 1.0], "right"),
                     call([0.0, 1.0], V), call(V, 0.2, sorter=np.argsort(V))),
    "select": (call([B, ~B], [V, W]), call([V < 0, V > 1], [V, W], 5.0),
               call([B], [V], default=W)),
    "shares_memory": (call(V, W),), "may_share_memory": (call(V, W),),
    "sort": (call(V, kind="stable"), call(M, None), call(M, 0, "mergesort")),
    "argsort": (call(V, kind="stable"),),
    "stack": (call([V, W]), call((V, W), -1), call([V, [1.0] * 5])),
    "hstack": (call([V, W]), call((V, [1.0]))), "vstack": (call([V, W]), call([V, [1.0] * 5])),
    "dstack": (call([V, W]),), "column_stack": (call([V, W]),),
    "unstack": (call(M, axis=1),),
    "sum": (call(V, where=B), call(M, 1, np.float64), call(M, axis=1, keepdims=True, initial=2.0),
            call([V, W]), call(B)),
    "mean": (call(V, where=B), call(M, 0, np.float64), call(I)),
    "max": (call(V, where=B, initial=-9.0), call(I)), "std": (call(V, ddof=1), call(V, mean=0.5)),
    "var": (call(V, ddof=1), call(I), call(C), call(V, correction=1)),
    "take": (call(V, I), call(M, [0, 1], 1), call(V, 9, mode="clip"), call(V.tolist(), I)),
    "take_along_axis": (call(V, I, 0), call(M, np.argsort(M, 1), 1)),
    "tile": (call(V, 2), call(V, (2, 2))), "trace": (call(S), call(S, 1), call(T, 0, 1, 2)),
    "tril": (call(S), call(S, 1)), "triu": (call(S), call(S, -1)),
    "trapezoid": (call(V, W), call(V, dx=2.0), call([1, 2, 3, 4, 5], V)),
    "trim_zeros": (call(np.array([0, 0, 1, 2, 0], np.float32)), call(I, "b")),
    "unique": (call(I), call(I, return_counts=True), call(I, True, True, True),
               call(np.stack([I, J]), axis=1)),
    "vander": (call(V, 3), call(V, 3, True)),
    "where": (call(B, V, W), call(B, [1, 2, 3, 4, 5], V), call(B), call([True, False], V[:2], 0)),
    "fromfunction": (), "savetxt": (), "frompyfunc": (),
    "min_scalar_type": (call(V[0]),), "typename": (), "mintypecode": (),
    "linalg.cholesky": (call(SPD),), "linalg.cond": (call(S), call(S, 1), call(S, "fro")),
    "linalg.cross": (call(S, S),), "linalg.det": (call(S),), "linalg.diagonal": (call(S),),
    "linalg.eigh": (), "linalg.eig": (), "linalg.eigvals": (), "linalg.qr": (), "linalg.svd": (),
    "linalg.eigvalsh": (call(SPD), call(SPD, "U")), "linalg.inv": (call(S),),
    "linalg.lstsq": (call(M.T, V[:4]), call(M.T, [1.0, 2.0, 3.0, 4.0], 1e-3),
                     call(M.T, V[:4], rcond=None)),
    "linalg.matmul": (call(S, S),), "linalg.matrix_norm": (call(S), call(S, ord=1)),
    "linalg.matrix_power": (call(S, 3), call(S, -1)), "linalg.matrix_rank": (call(S),
                                                                             call(M, 0.1)),
    "linalg.matrix_transpose": (call(S),), "linalg.multi_dot": (call([S, S, S]),),
    "linalg.norm": (call(V), call(S, 2), call(M, axis=1), call(V, np.inf), call([[1.0, 2.0]])),
    "linalg.outer": (call(V, W),),
    "linalg.pinv": (call(M), call(M, 1e-3), call(SPD, hermitian=True)),
    "linalg.slogdet": (call(S),), "linalg.solve": (call(S, S), call(S, [1.0, 2.0, 3.0])),
    "linalg.svdvals": (call(M),), "linalg.tensordot": (call(S, S),),
    "linalg.tensorinv": (call(SPD.reshape(3, 1, 3), ind=2),),
    "linalg.tensorsolve": (call(S, V[:3]),), "linalg.trace": (call(S),),
    "linalg.vecdot": (call(S, S),), "linalg.vector_norm": (call(V), call(M, axis=0, ord=1)),
    **each("fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fftshift fft.ifftshift",
           call(V), call(M)),
    **each("fft.fft fft.ifft fft.rfft fft.irfft", call(V), call(V, 4), call(M, axis=0),
           call(V, norm="ortho")),
    **each("fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft2 fft.rfftn fft.irfft2 fft.irfftn",
           call(M)),
}
# eigenvectors, singular vectors and orthogonal factors are determined up to signs: their products
PRODUCTS = {
    "linalg.eigh": (SPD, lambda w, v: v @ np.diag(w) @ v.T),
    "linalg.eig": (S, lambda w, v: v @ np.diag(w) @ la.inv(v)),
    "linalg.qr": (M, lambda q, r: q @ r),
    "linalg.svd": (M, lambda u, s, v: u[:, :3] @ np.diag(s) @ v[:3]),
    "linalg.eigvals": (SPD, lambda *w: np.sort(w)),
    "partition": ((V, 2), lambda *x: np.array([*sorted(x[:2]), x[2], *sorted(x[3:])])),
    "argpartition": ((V, 2), lambda *i: np.array(sorted(V[list(map(int, i[:2]))]))),
}

# Ufuncs by what they take; all others of one argument take V, of two V and W.
UFUNC_ARGUMENTS = {
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
                     "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"), (I, J)),
    **dict.fromkeys(("invert", "bitwise_invert", "bitwise_not", "bitwise_count"), (I,)),
    **dict.fromkeys(("arccosh", "acosh"), (W + 1,)),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "sqrt"), (W,)),
    **dict.fromkeys(("arccos", "arcsin", "arctanh", "acos", "asin", "atanh"), (V / 4,)),
    **dict.fromkeys(("power", "float_power", "pow"), (W, V)), "ldexp": (V, I),
    "matmul": (S, S), "vecdot": (S, S), "matvec": (S, S[0]), "vecmat": (S[0], S),
}

# Public functions of NumPy that take no arrays, or whose result is none.
NO_ARRAYS = {
    "settings and reports": "geterr seterr geterrcall seterrcall getbufsize setbufsize errstate "
        "get_printoptions set_printoptions printoptions get_include info show_config show_runtime "
        "test linalg.test fft.test",
    "text and numbers": "array_repr base_repr binary_repr format_float_positional "
        "format_float_scientific typename mintypecode",
    "dates": "busday_count busday_offset is_busday datetime_as_string datetime_data isnat",
    "files and buffers, tested by test_files": "save savez savez_compressed savetxt load loadtxt "
        "genfromtxt fromfile fromregex frombuffer fromstring from_dlpack fromiter",
    "sizes and dtypes alone": "bartlett blackman hamming hanning kaiser empty eye identity "
        "ones zeros tri indices diag_indices tril_indices triu_indices mask_indices "
        "broadcast_shapes isdtype issubdtype can_cast promote_types fft.fftfreq fft.rfftfreq "
        "fromfunction empty_like",
    "matrices, which NumPy advises against": "asmatrix bmat",
    "reports of other words": "einsum_path",
    "types of results, which follow functrans' own promotion": "result_type",
    "machinery on ndarrays": "nested_iters frompyfunc isfortran",
    "writing, tested by test_written": "copyto fill_diagonal place put putmask put_along_axis",
}


def public_functions():
    """Every public function and ufunc of NumPy by its name."""
    for prefix, space in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in dir(space):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function = getattr(space, name)
            if not name.startswith("_") and callable(function) and not isinstance(function, type):
                yield prefix + name, function


def find(name):
    space = np
    *spaces, last = name.split(".")
    for part in spaces:
        space = getattr(space, part)
    return getattr(space, last)


def calls_of(name):
    """The calls of a function, None where it is not in the tables."""
    function = find(name)
    if isinstance(function, np.ufunc):
        default = (V,) if function.nin == 1 else (V, W)
        return [call(*UFUNC_ARGUMENTS.get(name, default))]
    return FUNCTIONS.get(name)
