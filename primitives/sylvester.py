"""Sylvester equations A X + X B = C, and square roots of triangular matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.errors import DTypeError
from functrans.core.primitive import Cost, Linear, Sample
from functrans.core.source import user_source
from functrans.primitives import native_matrices
from functrans.primitives.arithmetic import neg
from functrans.primitives.base import sample_array, shapes_differ
from functrans.primitives.differentiable import add_any
from functrans.primitives.matrix import MatrixPrimitive, matmul, swap_last, triu

if TYPE_CHECKING:
    from functrans.typing import Array

__all__ = ["TwoSided", "sylvester", "sylvester_p", "triangular_root", "triangular_root_p",
           "triangular_sylvester_p"]


class TwoSided(MatrixPrimitive, abstract=True):
    """Solves equations a x + x b = c; linear in c."""

    def type(self, a: ShapedArray, b: ShapedArray, c: ShapedArray, **params: Any) -> ShapedArray:
        self.check(a)
        self.check(b)
        if not a.dtype == b.dtype == c.dtype:
            raise DTypeError(f"{self.name} needs operands of one dtype, got {a}, {b} and {c}.",
                             where=user_source())
        if c.shape != (*a.shape[:-1], b.shape[-1]) or a.shape[:-2] != b.shape[:-2]:
            raise shapes_differ(self.name, (a, b, c), "in a x + x b = c, c has the rows of a and "
                                "the columns of b, and leading axes are equal.")
        return c.strong()

    def moved(self, of_c: Any, change: Any) -> Any:
        """The right-hand side of the tangent: what c changes by, less what the operators do."""
        return neg(change) if of_c is None else add_any(of_c, neg(change))


class TriangularSylvester(TwoSided):
    """x with t x + x s = f for upper triangles t and s, or with their transposes if `transposed`.

    With `strict` the equation holds below the diagonal alone, where x has its only elements.
    Elements of t and s below their diagonals are not read.
    """

    def evaluate(self, t: Any, s: Any, f: Any, *, transposed: bool, strict: bool) -> Any:
        return native_matrices.call("triangular_sylvester", [t, s, f], [(f.shape, f.dtype)],
                                    int(transposed), int(strict))[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, transposed: bool,
            strict: bool) -> Any:
        (t, s, f), (dt, ds, df) = primals, tangents
        params = {"transposed": transposed, "strict": strict}
        x, right = self.bind(t, s, f, **params), df
        operator = swap_last if transposed else (lambda y: y)
        if dt is not None:
            right = self.moved(right, matmul(operator(triu(dt)), x))
        if ds is not None:
            right = self.moved(right, matmul(x, operator(triu(ds))))
        return x, self.bind(t, s, right, **params)

    def transpose(self, ct: Any, t: Any, s: Any, f: Linear, *, transposed: bool,
                  strict: bool) -> tuple[None, None, Any]:
        return None, None, self.bind(t, s, ct, transposed=not transposed, strict=strict)

    def cost(self, t: ShapedArray, s: ShapedArray, f: ShapedArray, **params: Any) -> Cost:
        return Cost(f.size * (t.shape[-1] + s.shape[-1]), t.nbytes + s.nbytes + 2 * f.nbytes)

    def samples(self) -> Iterator[Sample]:
        t, s = np.triu(sample_array(3, 3)), np.triu(sample_array(2, 2, seed=1))
        t, s = t + 3 * np.eye(3, dtype=t.dtype), s + 2 * np.eye(2, dtype=s.dtype)
        f = sample_array(3, 2, seed=2)
        for transposed in (False, True):
            yield Sample((t, s, f), {"transposed": transposed, "strict": False})
        t = np.triu(sample_array(2, 3, 3, dtype=np.complex64)) + np.diag([1, 3, 6]).astype("c8")
        f = sample_array(2, 3, 3, seed=2, dtype=np.complex64)
        yield Sample((t, -t, f), {"transposed": False, "strict": True})
        yield Sample((t, -t, f), {"transposed": True, "strict": True})


class Sylvester(TwoSided):
    """x with a x + x b = c; infinite or NaN where a and -b have a common eigenvalue.

    Of complex Schur forms: R. Bartels and G. Stewart, Solution of the matrix equation AX + XB = C,
    Commun. ACM 15 (1972). The derivative is that of the solution, of every order.
    """

    def evaluate(self, a: Any, b: Any, c: Any) -> Any:
        wide = dtypes.complex_dtype(c.dtype)
        a, b, same = np.asarray(a), np.asarray(b), a is b
        t, u = _schur(a.astype(wide))
        s, v = (t, u) if same or np.array_equal(a, b) else _schur(b.astype(wide))
        inner = u.conj().mT @ c.astype(wide) @ v
        (y,) = native_matrices.call("triangular_sylvester", [t, s, inner],
                                    [(inner.shape, wide)], 0, 0)
        x = u @ y @ v.conj().mT
        return x if c.dtype.kind == "c" else np.ascontiguousarray(x.real)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (a, b, c), (da, db, dc) = primals, tangents
        x, right = self.bind(a, b, c), dc
        if da is not None:
            right = self.moved(right, matmul(da, x))
        if db is not None:
            right = self.moved(right, matmul(x, db))
        return x, self.bind(a, b, right)

    def transpose(self, ct: Any, a: Any, b: Any, c: Linear) -> tuple[None, None, Any]:
        return None, None, self.bind(swap_last(a), swap_last(b), ct)

    def cost(self, a: ShapedArray, b: ShapedArray, c: ShapedArray) -> Cost:
        m, n = a.shape[-1], b.shape[-1]
        return Cost(25 * (a.size * m + b.size * n) + 5 * c.size * (m + n),
                    a.nbytes + b.nbytes + 2 * c.nbytes)

    def samples(self) -> Iterator[Sample]:
        for lead, dtype in (((), np.float32), ((2,), np.complex64)):
            a = sample_array(*lead, 3, 3, dtype=dtype) + 3 * np.eye(3, dtype=dtype)
            b = sample_array(*lead, 2, 2, dtype=dtype, seed=1) + 2 * np.eye(2, dtype=dtype)
            yield Sample((a, b, sample_array(*lead, 3, 2, dtype=dtype, seed=2)))


def _schur(a: Any) -> list[np.ndarray[Any, Any]]:
    return native_matrices.call("schur", [a], [(a.shape, a.dtype)] * 2)


class TriangularRoot(MatrixPrimitive):
    """The upper triangle x with x x = t for an upper triangle t, the rest of which is not read.

    Its diagonal has the principal roots, NaN where a real t has negative numbers there. Source:
    A. Bjorck and S. Hammarling, A Schur method for the square root of a matrix (1983). The
    derivative needs that no two elements of the diagonal of x add up to zero.
    """

    def type(self, t: ShapedArray) -> ShapedArray:
        self.check(t)
        return t.strong()

    def evaluate(self, t: Any) -> Any:
        return native_matrices.call("triangular_root", [t], [(t.shape, t.dtype)])[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (t,), (dt,) = primals, tangents
        x = self.bind(t)
        return x, triangular_sylvester_p.bind(x, x, triu(dt), transposed=False, strict=False)

    def cost(self, t: ShapedArray) -> Cost:
        return Cost(t.size * t.shape[-1] // 3, 2 * t.nbytes)

    def samples(self) -> Iterator[Sample]:
        t = np.triu(sample_array(3, 3)) + 3 * np.eye(3, dtype=np.float32)
        yield Sample((t,))
        yield Sample((np.stack([t, 2 * t]).astype(np.complex64),))


triangular_sylvester_p, sylvester_p = TriangularSylvester(), Sylvester()
triangular_root_p = TriangularRoot()


def sylvester(a: Any, b: Any, c: Any) -> Array:
    """x with a x + x b = c for stacks of matrices of one dtype."""
    return sylvester_p.bind(a, b, c)


def triangular_root(t: Any) -> Array:
    """The principal square roots of upper triangles."""
    return triangular_root_p.bind(t)
