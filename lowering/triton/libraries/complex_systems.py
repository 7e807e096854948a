"""Small systems of complex numbers, as real ones of twice as many rows: kernels have those.

(A + iB) (x + iy) = c + id is [[A, -B], [B, A]] [x, y] = [c, d], with the condition of the complex
system. Of 4,112 systems of 8 rows with 8 sides the library took 71 us on an H100, in three calls at
each of which the program's CUDA graph ended; the kernel is estimated to take 24.
"""

from __future__ import annotations

from typing import Any, Final

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Var
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.libraries.small_systems import is_small, library_time, times_of
from functrans.primitives.arithmetic import complex, imag, neg, real
from functrans.primitives.shape import concatenate, slice_in_dim
from functrans.primitives.solve import solve_p

__all__ = ["is_real_and_fast", "solve_as_real"]

COMPLEX: Final = ("complex64", "complex128")


def is_real_and_fast(eqn: Equation, target: Target) -> bool:
    """Whether a complex system is estimated to be as fast as a real one as in the library."""
    if eqn.primitive is not solve_p or eqn.invars[0].aval.dtype.name not in COMPLEX:
        return False
    a, b = [x.aval for x in eqn.invars]
    of = dtypes.real_dtype(a.dtype)
    sizes = ((*a.shape[:-2], 2 * a.shape[-2], 2 * a.shape[-1]),
             (*b.shape[:-2], 2 * b.shape[-2], b.shape[-1]))
    twice = eqn.replace(invars=tuple([Var(ShapedArray(shape, of)) for shape in sizes]),
                        outvars=(Var(ShapedArray(sizes[1], of)),))
    return is_small(twice) \
        and target.measured.launch + times_of(twice, target).launched <= library_time(eqn, target)


def solve_as_real(a: Any, b: Any) -> list[Any]:
    """The solution of a complex system."""
    rows, columns, n = a.ndim - 2, a.ndim - 1, a.shape[-1]
    matrix = concatenate([concatenate([real(a), neg(imag(a))], columns),
                          concatenate([imag(a), real(a)], columns)], rows)
    x = solve_p.bind(matrix, concatenate([real(b), imag(b)], rows))
    return [complex(slice_in_dim(x, 0, n, axis=rows), slice_in_dim(x, n, 2 * n, axis=rows))]
