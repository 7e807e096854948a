"""Questions about dtypes: their place in NumPy's tree of scalar types, their bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from functrans.core.dtypes import (
    KEY_DTYPES,
    SCALAR_TYPES,
    DType,
    as_dtype,
    finfo,
    iinfo,
    kind,
    prng_key,
)
from functrans.core.errors import HERE, DTypeError

if TYPE_CHECKING:
    from functrans.typing import DTypeLike

__all__ = ["canonicalize_dtype", "issubdtype", "itemsize_bits"]


_ABSTRACT: Final[dict[str, type]] = {
    "k": prng_key,
    "i": np.signedinteger,
    "u": np.unsignedinteger,
    "f": np.floating,
    "c": np.complexfloating,
}


def issubdtype(arg1: DTypeLike | None, arg2: DTypeLike) -> bool:
    """Whether `arg1` (None is float) is `arg2` or below it in NumPy's tree of scalar types.

    >>> issubdtype("bfloat16", np.floating), issubdtype(np.int8, np.floating)
    (True, False)
    """
    if isinstance(arg1, type) and issubclass(arg1, np.generic) and arg1 not in SCALAR_TYPES:
        return bool(np.issubdtype(arg1, arg2)) if isinstance(arg2, type) else False
    arg1 = as_dtype(float if arg1 is None else arg1)
    if isinstance(arg2, type) and issubclass(arg2, np.generic) and arg2 not in SCALAR_TYPES:
        below = _ABSTRACT.get(kind(arg1), arg1.type)
        return issubclass(below, arg2)
    return bool(arg1 == as_dtype(arg2))


def canonicalize_dtype(dtype: DTypeLike | None, allow_extended_dtype: bool = False) -> DType:
    """The dtype that a dtype-like, None for float, means: all are legal, 64 bits stay 64 bits.

    Raises DTypeError for one of random keys unless these are allowed.

    >>> canonicalize_dtype("float64"), canonicalize_dtype(float)
    (dtype('float64'), dtype('float32'))
    """
    found = as_dtype(float if dtype is None else dtype)
    if found in KEY_DTYPES and not allow_extended_dtype:
        raise DTypeError(f"canonicalize_dtype: {found} is a dtype of random keys.",
                         where=HERE, fix="canonicalize_dtype(dtype, allow_extended_dtype=True)")
    return found


def itemsize_bits(dtype: DTypeLike) -> int:
    """The bits of a number of a dtype; 8 of a boolean, which memory has as a byte.

    >>> itemsize_bits("int4"), itemsize_bits("float8_e5m2"), itemsize_bits("complex64")
    (4, 8, 64)
    """
    found = as_dtype(dtype)
    if kind(found) in "iu":
        return int(iinfo(found).bits)
    return int(finfo(found).bits) if kind(found) == "f" else 8 * found.itemsize
