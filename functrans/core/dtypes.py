"""Dtypes: names, kinds, defaults in scope, and promotion on a lattice with weak Python scalars.

Dtypes are NumPy's, with bfloat16, the 8-bit floats and complex32 of ml_dtypes. A *weak* value
comes from a Python scalar: it takes part in promotion by its kind only, so that `x * 2.0` keeps the
dtype of a floating x. All 64-bit dtypes are legal everywhere.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, overload

import ml_dtypes
import numpy as np

from functrans.core import config
from functrans.core.errors import (
    HERE,
    ArgumentError,
    DTypeError,
    FunctransError,
    IntegerOverflowError,
    PromotionError,
    shown,
)
from functrans.core.key_dtypes import KEY_DTYPES, extended, key_dtype, philox_dtype, prng_key
from functrans.core.narrowing import narrowed

if TYPE_CHECKING:
    from functrans.typing import DTypeLike

__all__ = [
    "KEY_DTYPES",
    "SCALAR_TYPES",
    "DType",
    "as_dtype",
    "bfloat16",
    "canonical_scalar",
    "check_int",
    "check_scalar",
    "complex32",
    "complex_dtype",
    "computed_dtype",
    "default_complex",
    "default_dtypes",
    "default_float",
    "default_int",
    "dtype_and_weak",
    "dtype_of",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "inexact_result_type",
    "is_half",
    "is_narrow",
    "is_weak",
    "key_dtype",
    "kind",
    "philox_dtype",
    "position_dtype",
    "prng_key",
    "promote_types",
    "real_dtype",
    "result_type",
    "scalar_dtype",
    "scalar_type_of",
    "short_name",
    "to_inexact_dtype",
    "wide_dtype",
]

DType: TypeAlias = np.dtype[Any]

float0: Final[DType] = np.dtype([("float0", np.void, 0)])
"""The dtype of the tangent of an integer or boolean value: it holds nothing."""

bool_: Final[DType] = np.dtype(np.bool_)
float16: Final[DType] = np.dtype(np.float16)
bfloat16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
float32: Final[DType] = np.dtype(np.float32)
float64: Final[DType] = np.dtype(np.float64)
complex32: Final[DType] = np.dtype(ml_dtypes.complex32)
complex64: Final[DType] = np.dtype(np.complex64)
complex128: Final[DType] = np.dtype(np.complex128)

_NARROW_FLOATS: Final = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float4_e2m1fn",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
)
_NARROW_INTS: Final = tuple(np.dtype(getattr(ml_dtypes, n)) for n in ("int1", "int2", "int4"))
_NARROW_UINTS: Final = tuple(
    np.dtype(getattr(ml_dtypes, n)) for n in ("uint1", "uint2", "uint4"))
_INTS: Final = tuple(np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
_UINTS: Final = tuple(np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
_FLOATS: Final = (float16, bfloat16, float32, float64)
_COMPLEXES: Final = (complex32, complex64, complex128)
_REAL: Final[dict[DType, DType]] = dict(zip(_COMPLEXES, (float16, float32, float64), strict=True))

_KINDS: Final[dict[DType, str]] = {
    bool_: "b",
    float0: "0",
    **dict.fromkeys(_NARROW_INTS + _INTS, "i"),
    **dict.fromkeys(_NARROW_UINTS + _UINTS, "u"),
    **dict.fromkeys(_NARROW_FLOATS + _FLOATS, "f"),
    **dict.fromkeys(_COMPLEXES, "c"),
    **dict.fromkeys(KEY_DTYPES, "k"),
}


SCALAR_TYPES: Final = frozenset(dtype.type for dtype in _KINDS if dtype != float0)


def kind(dtype: DType) -> str:
    """The kind of a dtype as one letter: b, i, u, f, c, 0 for float0, k for random keys.

    >>> kind(bfloat16), kind(np.dtype("uint8"))
    ('f', 'u')
    """
    return _KINDS[dtype]


# ------------------------------------------------------------------------------- defaults in scope


def default_float() -> DType:
    """The dtype of a Python float in this scope, float32 unless `default_dtypes` says otherwise."""
    return config.current().float_dtype


def default_int() -> DType:
    """The dtype of a Python int in this scope, int32 unless `default_dtypes` says otherwise."""
    return config.current().int_dtype


def position_dtype(*counts: object, default: DType | None = None) -> DType:
    """`default`, or int32, for positions and counts of up to `counts`; int64 where it is too small.

    A symbolic size is taken to fit: what it becomes does not change dtypes.

    >>> from functrans.core.dtypes import position_dtype
    >>> position_dtype(2**31 - 1).name, position_dtype(2**31).name
    ('int32', 'int64')
    """
    least = np.dtype(np.int32) if default is None else default
    top = np.iinfo(least).max
    wide = any(isinstance(n, int) and n > top for n in counts)
    return np.dtype(np.int64) if wide else least


def default_complex() -> DType:
    """The dtype of a Python complex in this scope: complex128 beside float64, else complex64."""
    return complex128 if config.current().float_dtype == float64 else complex64


def default_dtypes(
    float_dtype: DTypeLike | None = None, int_dtype: DTypeLike | None = None
) -> AbstractContextManager[config.Config]:
    """Context manager: the dtypes of Python scalars and dtype-less creation, in this thread.

    Raises ArgumentError if `float_dtype` is not floating or `int_dtype` not a signed integer.

    >>> with default_dtypes("float64", "int64"):
    ...     result_type(1), result_type(1.0), result_type(1j)
    (dtype('int64'), dtype('float64'), dtype('complex128'))
    """
    changes: dict[str, DType] = {}
    for field, given, wanted in (("float_dtype", float_dtype, "f"), ("int_dtype", int_dtype, "i")):
        if given is not None:
            dtype = np.dtype(given)
            if _KINDS.get(dtype) != wanted or dtype in _NARROW_INTS:
                needed = "a floating dtype" if wanted == "f" else "a signed integer dtype"
                raise ArgumentError(
                    f"default_dtypes: {field} is {dtype}, and must be {needed}.",
                    fix='with default_dtypes("float64", "int64"): ...',
                )
            changes[field] = dtype
    return config.scope(**changes)


# --------------------------------------------------------------------------- from values to dtypes

_UNSIGNED: Final[dict[DType, DType]] = dict(zip(_INTS, _UINTS, strict=True))
_SCALAR_KINDS: Final[dict[type, str]] = {bool: "b", int: "i", float: "f", complex: "c"}


def _default_of_kind(letter: str) -> DType:
    """The default dtype of a kind letter; the unsigned one is as wide as the signed one."""
    if letter == "f":
        return config.current().float_dtype
    if letter == "i":
        return config.current().int_dtype
    if letter == "u":
        return _UNSIGNED[config.current().int_dtype]
    return bool_ if letter == "b" else default_complex()


def scalar_dtype(pytype: type) -> DType:
    """The dtype that Python's bool, int, float or complex gets in this scope."""
    return _default_of_kind(_SCALAR_KINDS[pytype])


def canonical_scalar(value: complex) -> DType:
    """The dtype that a Python scalar gets where nothing else decides.

    Raises IntegerOverflowError if an int does not fit the default integer dtype.

    >>> canonical_scalar(True), canonical_scalar(3), canonical_scalar(3.0)
    (dtype('bool'), dtype('int32'), dtype('float32'))
    """
    for pytype, letter in _SCALAR_KINDS.items():
        if isinstance(value, pytype):
            dtype = _default_of_kind(letter)
            if letter == "i":
                check_int(value, dtype)
            return dtype
    raise _no_dtype(value)


def check_int(value: Any, dtype: DType, *, where: object = HERE) -> None:
    """Raise IntegerOverflowError unless the Python int `value` fits the integer dtype."""
    info = iinfo(dtype)
    if not info.min <= value <= info.max:
        raise IntegerOverflowError(
            f"the Python int {shown(value)} does not fit {dtype}, "
            f"which holds {info.min} to {info.max}.",
            where=where,
            why="a Python int takes the integer dtype of the array beside it, "
            f"or the default integer dtype, which is {default_int()} here.",
            fix=_overflow_fix(value, dtype))


def check_scalar(value: Any, dtype: DType, operation: str) -> None:
    """Raise unless a Python scalar can be an operand beside arrays of `dtype`."""
    letter, held = _SCALAR_KINDS[type(value)], _KINDS[dtype]
    if letter == "i" and held in "iu":
        check_int(value, dtype)
    elif _KIND_ORDER.index(letter) > _KIND_ORDER.index(held.replace("u", "i")):
        raise DTypeError(
            f"{operation}: the Python scalar {value!r} does not convert to {dtype}.",
            where=HERE,
            why="operands of a primitive have one dtype; a scalar takes the array's.",
            fix=f'x.astype("{_default_of_kind(letter).name}"), or the function of functrans.numpy',
        )


_KIND_ORDER: Final = "0kbifc"  # a number converts upwards, to none of the first two


def _overflow_fix(value: int, refused: DType) -> str:
    """The code that holds `value`: a wider integer dtype, or a float if there is none."""
    for dtype in (*_INTS, np.dtype(np.uint64)):
        if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max \
                and dtype.itemsize >= min(refused.itemsize, 8):
            if refused != default_int():
                return f'a dtype that holds it: x.astype("{dtype}"), or dtype="{dtype}"'
            scope = f', or: with ft.default_dtypes(int_dtype="{dtype}"): ...'
            return f"np.{dtype}({value})" + (scope if dtype.kind == "i" else "")
    return "float(x), which rounds it"


def as_dtype(dtype_like: Any) -> DType:
    """The NumPy dtype that a dtype-like means; Python's int, float, complex are the defaults.

    Raises DTypeError for what is no dtype and for dtypes that arrays cannot have (object, str).

    >>> as_dtype("bfloat16"), as_dtype(float), as_dtype(np.float64)
    (dtype(bfloat16), dtype('float32'), dtype('float64'))
    """
    if type(dtype_like) in _DTYPE_CLASSES and dtype_like in _KINDS:
        known: DType = dtype_like
        return narrowed(known)
    if isinstance(dtype_like, type) and dtype_like in _SCALAR_KINDS:
        return scalar_dtype(dtype_like)
    own = getattr(dtype_like, "dtype", None)
    if isinstance(own, np.dtype):
        dtype_like = own
    if dtype_like is None:
        raise _no_dtype(dtype_like)
    try:
        dtype = np.dtype(dtype_like)
    except (TypeError, ValueError):
        raise _no_dtype(dtype_like) from None
    if dtype.byteorder not in "=|":
        dtype = dtype.newbyteorder("=")
    if dtype not in _KINDS:
        raise DTypeError(
            f"arrays of dtype {dtype} are not supported.",
            why="arrays hold booleans, integers, floating and complex numbers of fixed width.",
            fix='x = x.astype("float32")',
        )
    return narrowed(_NATIVE[dtype])


_NATIVE: Final[dict[DType, DType]] = {dtype: dtype for dtype in _KINDS}


def _no_dtype(value: object) -> FunctransError:
    return DTypeError(
        f"no dtype can be told from {value!r}, of type {type(value).__name__}.",
        why="a dtype is told by an array, a dtype or its name, or a Python number.",
        fix='dtype="float32"' if type(value) is not int else
            'dtype="float32"; a shape of several axes is one tuple, zeros((2, 3))',
    )


def dtype_and_weak(x: Any) -> tuple[DType, bool]:
    """Dtype and weakness of an array, tracer, aval, dtype-like, Python scalar or its type."""
    cls = type(x)
    if cls in _SCALAR_KINDS:
        letter = _SCALAR_KINDS[cls]
        return _default_of_kind(letter), letter != "b"
    dtype: Any = getattr(x, "dtype", None)
    if type(dtype) in _DTYPE_CLASSES:
        return narrowed(dtype), getattr(x, "weak_type", False)
    if cls in _DTYPE_CLASSES:
        return narrowed(x), False
    for pytype, letter in _SCALAR_KINDS.items():
        if x is pytype or isinstance(x, pytype):
            return _default_of_kind(letter), letter != "b"
    return as_dtype(x), False


# type(dtype) is a class of its own for each dtype: looking it up takes 40 ns, isinstance 120.
_DTYPE_CLASSES: Final = frozenset(type(dtype) for dtype in _KINDS)


def dtype_of(x: Any) -> DType:
    """The dtype of an array, tracer, aval, dtype-like or Python scalar."""
    return dtype_and_weak(x)[0]


def is_weak(x: Any) -> bool:
    """Whether a value is weakly typed: a Python number other than bool, or made from such alone.

    >>> is_weak(1.0), is_weak(True), is_weak(np.float32(1))
    (True, False, False)
    """
    return dtype_and_weak(x)[1]


# -------------------------------------------------------------------------------------- promotion

# An edge leads to a dtype one step up. "i*", "f*", "c*" are the weak kinds. Narrow types (4 to 8
# bit floats, 1 to 4 bit ints) promote to nothing but themselves, only weak values join them.
_UP: Final[dict[DType | str, tuple[DType | str, ...]]] = {
    bool_: ("i*",),
    "i*": (_UINTS[0], _INTS[0], *_NARROW_INTS, *_NARROW_UINTS),
    **dict.fromkeys((*_NARROW_INTS, *_NARROW_UINTS, *_NARROW_FLOATS), ()),
    **{_UINTS[n]: (_INTS[n + 1], _UINTS[n + 1]) for n in range(3)},
    **{_INTS[n]: (_INTS[n + 1],) for n in range(3)},
    _UINTS[3]: ("f*",),
    _INTS[3]: ("f*",),
    "f*": (*_NARROW_FLOATS, float16, bfloat16, "c*"),
    float16: (float32, complex32),
    bfloat16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    "c*": (complex32,),
    complex32: (complex64,),
    complex64: (complex128,),
    complex128: (),
}


@cache
def _above(node: DType | str) -> frozenset[DType | str]:
    """All nodes that can be reached from `node`, itself included."""
    return frozenset((node,)).union(*(_above(up) for up in _UP[node]))


def _least_upper_bound(nodes: frozenset[DType | str]) -> DType | str:
    """The lowest node above all of `nodes`; raises PromotionError where there is none."""
    common = frozenset.intersection(*map(_above, nodes))
    for node in common:
        if _above(node) == common:
            return node
    names = sorted(node if isinstance(node, str) else node.name for node in nodes)
    raise PromotionError(
        f"the dtypes {', '.join(names)} have no common dtype.",
        why="narrow integers and floats never convert implicitly.",
        fix=f'x.astype("{names[-1]}")',
    )


def _node(dtype: DType, weak: bool) -> DType | str:
    """The lattice node of a dtype."""
    letter = _KINDS[dtype]
    if letter == "k":
        raise PromotionError(
            "random keys have no common dtype with numbers.",
            why="a key is a seed: it is split and consumed by ft.random, not calculated with.",
            fix="ft.random.key_data(key) gives its two words as uint32",
        )
    if letter == "0":
        raise PromotionError(
            "float0 does not promote.",
            why="float0 is the tangent type of integers and holds nothing.",
            fix="use allow_int=True only to ignore these gradients",
        )
    return f"{'i' if letter == 'u' else letter}*" if weak and letter != "b" else dtype


@lru_cache(maxsize=4096)
def _join(*pairs: tuple[DType, bool]) -> tuple[DType, bool]:
    """The join of (dtype, weak) pairs, all at once: it is not associative. Weak ones alone join as
    if strong, and stay weak; their dtype is still to be settled by the defaults."""
    dtypes = [as_dtype(dtype) for dtype, _ in pairs]
    all_weak = all(weak for _, weak in pairs)
    if len(set(dtypes)) == 1:
        return dtypes[0], all_weak and dtypes[0] != bool_
    if KEY_DTYPES.issuperset(dtypes):
        raise PromotionError(
            f"keys of different generators have no common dtype: "
            f"{' and '.join(sorted({dtype.name for dtype in dtypes}))}.",
            why="the dtype of a key says which generator it is a seed of.",
            fix="ft.random.wrap_key_data(ft.random.key_data(key), impl=ft.random.key_impl(other))",
        )
    flags = [weak and not all_weak for _, weak in pairs]
    top = _least_upper_bound(frozenset(map(_node, dtypes, flags)))
    if top == complex32 and complex32 not in dtypes:
        top = complex64  # float16 with Python's complex, as in JAX: half a complex is asked for
    if not isinstance(top, str):
        return top, all_weak and top != bool_
    weak_ones = [dtype for dtype, weak in zip(dtypes, flags, strict=True) if weak]
    at_top = [dtype for dtype in weak_ones if _KINDS[dtype] == top[0]]
    return max(at_top, key=lambda dtype: dtype.itemsize, default=_NARROWEST[top]), True


_NARROWEST: Final[dict[str, DType]] = {"i*": _INTS[0], "f*": float16, "c*": complex64}


def promote_types(a: DTypeLike, b: DTypeLike) -> DType:
    """The lowest dtype to which both convert implicitly; Python's int, float, complex are weak.

    Raises PromotionError where there is none (8-bit floats among each other).

    >>> promote_types("int64", "float16"), promote_types("bfloat16", "float16")
    (dtype('float16'), dtype('float32'))
    """
    return result_type(_type_or_dtype(a), _type_or_dtype(b))


def _type_or_dtype(dtype_like: Any) -> Any:
    """Python scalar types as they are (they are weak), everything else as its dtype."""
    is_scalar_type = isinstance(dtype_like, type) and dtype_like in _SCALAR_KINDS
    return dtype_like if is_scalar_type else as_dtype(dtype_like)


@overload
def result_type(*args: Any, return_weak_type: Literal[False] = False) -> DType: ...
@overload
def result_type(*args: Any, return_weak_type: Literal[True]) -> tuple[DType, bool]: ...
def result_type(*args: Any, return_weak_type: bool = False) -> DType | tuple[DType, bool]:
    """The dtype of an operation on `args`: arrays, tracers, avals, dtypes, Python scalars.

    A weak result has the default dtype of its kind, or its own where that is wider. With
    `return_weak_type` the answer is the pair (dtype, weak_type).

    >>> result_type(np.float16(1), 2.0), result_type(np.int8(1), 2.0), result_type(1, 2.0)
    (dtype('float16'), dtype('float32'), dtype('float32'))
    >>> result_type(np.int8(1), 2.0, return_weak_type=True)
    (dtype('float32'), True)
    """
    pairs = [dtype_and_weak(arg) for arg in args]
    if not pairs:
        raise ArgumentError("result_type needs at least one argument.", fix="result_type(x, y)")
    dtype, weak = _join(*pairs)
    if weak:
        dtype = _settle_weak(dtype, _default_of_kind(_KINDS[dtype]))
    return (dtype, weak) if return_weak_type else dtype


@lru_cache(maxsize=256)
def _settle_weak(dtype: DType, default: DType) -> DType:
    """The dtype of a weak result: the default of its kind, its own where wider."""
    if dtype == default or dtype.itemsize <= default.itemsize:
        return default
    return dtype


def inexact_result_type(*args: Any) -> tuple[DType, bool]:
    """The (dtype, weak_type) of a function that is never integer-valued (sin, division, mean).

    >>> inexact_result_type(1), inexact_result_type(np.int8(1)), inexact_result_type(np.float16(1))
    ((dtype('float32'), True), (dtype('float32'), False), (dtype('float16'), False))
    """
    dtype, weak = result_type(*args, return_weak_type=True)
    return to_inexact_dtype(dtype), weak


def to_inexact_dtype(dtype: DType) -> DType:
    """The dtype itself if floating or complex, else its promotion with the default float."""
    if _KINDS[dtype] in "fc":
        return dtype
    return _join((dtype, False), (config.current().float_dtype, False))[0]


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real part of a complex dtype: float16 for complex32; else itself."""
    return _REAL.get(dtype, dtype)


def complex_dtype(dtype: DType) -> DType:
    """The complex dtype whose parts hold `dtype`: complex128 for float64, else complex64: no
    function but `lax.complex`, which joins parts as they are, makes complex32 of float16."""
    if _KINDS[dtype] == "c":
        return dtype
    return complex128 if to_inexact_dtype(dtype) == float64 else complex64


def is_half(dtype: DType) -> bool:
    """Whether a dtype is stored narrow and computed in float32: float16, bfloat16 and below."""
    return dtype.itemsize <= 2 and _KINDS.get(dtype) == "f"


def is_narrow(dtype: DType) -> bool:
    """Whether a dtype is computed in a wider one: halves, complex32, integers of 1 to 4 bits."""
    return is_half(dtype) or dtype == complex32 or dtype in _NARROW_INTS or dtype in _NARROW_UINTS


def wide_dtype(dtype: DType) -> DType:
    """The dtype that a narrow one is computed in: float32, complex64, int8 or uint8."""
    wide = np.dtype(f"{_KINDS[dtype]}1") if _KINDS[dtype] in "iu" else float32
    return complex64 if dtype == complex32 else wide


def computed_dtype(dtype: DType) -> DType:
    """The dtype of sums and products while they are computed: wide for halves and complex32."""
    return wide_dtype(dtype) if is_half(dtype) or dtype == complex32 else dtype


# ------------------------------------------------------------------------------- names and limits


@lru_cache(maxsize=256)
def short_name(dtype: DType) -> str:
    """The name of a dtype in printed jaxprs.

    >>> [short_name(np.dtype(n)) for n in ("float32", "bfloat16", "int8", "bool", "complex64")]
    ['f32', 'bf16', 'i8', 'bool', 'c64']
    """
    if dtype == float0:
        return "float0"
    name: str = dtype.name
    for long, short in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(long, short)
    return name


def finfo(dtype: DTypeLike) -> np.finfo[Any]:
    """Limits of a floating or complex dtype, as numpy.finfo; bfloat16 and float8 included.

    >>> float(finfo("bfloat16").eps)
    0.0078125
    """
    # ml_dtypes annotates neither; its classes have the attributes of NumPy's
    return cast("Any", ml_dtypes.finfo)(real_dtype(as_dtype(dtype)))  # type: ignore[no-any-return]


def iinfo(dtype: DTypeLike) -> np.iinfo[Any]:
    """Limits of an integer dtype, as numpy.iinfo; int2 and int4 included.

    >>> iinfo("int8").max
    127
    """
    # as above
    return cast("Any", ml_dtypes.iinfo)(as_dtype(dtype))  # type: ignore[no-any-return]


def scalar_type_of(x: Any) -> type:
    """Python's type of numbers of the kind of an array or dtype: bool, int, float or complex.

    >>> scalar_type_of(np.int8(1)), scalar_type_of("bfloat16")
    (<class 'int'>, <class 'float'>)
    """
    letter = _KINDS[dtype_of(x)].replace("u", "i")
    found = next((t for t, own in _SCALAR_KINDS.items() if own == letter), None)
    if found is None:
        raise _no_dtype(x)
    return found
