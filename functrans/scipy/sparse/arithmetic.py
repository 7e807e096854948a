"""Sparse arrays of SciPy's formats: what operators and elementwise functions do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.sparse import elementwise
from functrans.scipy.sparse.places import compact, of_columns, summed
from functrans.sparse.base import JAXSparse, OtherFormat, mismatch
from functrans.sparse.bcoo import BCOO
from functrans.sparse.operators import as_bcoo
from functrans.sparse.products import bcoo_dot_general as dot_general

# the class of each format, as an array and as a matrix; functrans/scipy/sparse/formats.py and
# host_arrays.py fill it in
CLASSES: dict[tuple[str, bool], Any] = {}


class sparray:
    """The base class of sparse arrays, on which `*` is elementwise.

    >>> from functrans.scipy import sparse
    >>> isinstance(sparse.eye_array(2), sparse.sparray)
    True
    """


class spmatrix:
    """The base class of sparse matrices, on which `*` is the matrix product.

    >>> from functrans.scipy import sparse
    >>> isinstance(sparse.eye_array(2), sparse.spmatrix)
    False
    """


def from_scipy(x: Any) -> bool:
    """Whether x is a sparse array of SciPy's own."""
    return type(x).__module__.startswith("scipy.sparse") and hasattr(x, "tocoo")


def bcoo_of(x: Any) -> BCOO:
    """Any sparse array, SciPy's own included, as coordinates."""
    if isinstance(x, JAXSparse):
        return compact(as_bcoo(x))
    if from_scipy(x):
        return BCOO.from_scipy_sparse(x)
    return as_bcoo(x.tocoo())


def is_sparse(x: Any) -> bool:
    """Whether x is a sparse array of any kind."""
    return isinstance(x, (JAXSparse, sparray, spmatrix)) or from_scipy(x)


def _elementwise(name: str) -> Callable[[Any], Any]:
    fun: Callable[[Any], Any] = getattr(jnp, name)

    def method(self: Any) -> Any:
        return self._unary(fun)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`functrans.numpy.{name}` of each element."
    return method


class SparseArithmetic(OtherFormat):
    """Operators of sparse arrays, in terms of their coordinates."""

    format = ""

    @abstractmethod
    def to_bcoo(self) -> BCOO:
        """The array as the coordinates of `functrans.experimental.sparse`."""

    @abstractmethod
    def _like(self, mat: BCOO, format: str) -> Any:
        """Coordinates in a format, as an array or a matrix as this is one."""

    @abstractmethod
    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """The array in a format: "coo", "csr", "csc", "dia", "bsr", "lil" or "dok"."""

    def _plain(self) -> Any:
        """What products are computed with."""
        return self.to_bcoo()

    @property
    def _rows(self) -> str:
        """The format of what is computed with this one."""
        return self.format if self.format in ("csr", "csc", "bsr") else "csr"

    # elementwise

    def _unary(self, fun: Callable[[Any], Any]) -> Any:
        """A function with f(0) = 0, on the sums of duplicates."""
        mat = self.to_bcoo()
        if mat.unique_indices:
            return self.with_data(fun(self.data))
        mat = summed(mat)
        return self._like(mat.with_data(fun(mat.data)), self.format)

    sin, tan, arcsin, arctan, sinh, arcsinh, tanh, arctanh, expm1, log1p = map(_elementwise, (
        "sin", "tan", "arcsin", "arctan", "sinh", "arcsinh", "tanh", "arctanh", "expm1", "log1p"))
    sqrt, sign, rint, ceil, floor, trunc, deg2rad, rad2deg = map(_elementwise, (
        "sqrt", "sign", "rint", "ceil", "floor", "trunc", "deg2rad", "rad2deg"))

    def __abs__(self) -> Any:
        return self._unary(jnp.abs)

    def __round__(self, ndigits: int = 0) -> Any:
        return self._unary(lambda x: jnp.round(x, ndigits))

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Each element to a power that is not zero."""
        if jnp.ndim(n) or (not is_traced(n) and not n > 0):
            raise ArgumentError(f"functrans.scipy.sparse: the power {n}.", where=user_source(),
                                why="a power of zero is one number, greater than 0, which keeps "
                                "zeros.", fix="x.toarray() ** n")
        x = self if dtype is None else self.astype(dtype)
        return x._unary(lambda v: v ** n)

    def _other(self, y: Any) -> Any:
        """An operand as coordinates or as a dense array."""
        return bcoo_of(y) if is_sparse(y) else jnp.asarray(y)

    def multiply(self, other: Any) -> Any:
        """The elementwise product with a number, a dense or a sparse array that broadcasts."""
        y = self._other(other)
        if isinstance(y, BCOO):
            return self._like(elementwise.multiplied(self.to_bcoo(), y), self._rows)
        if y.ndim == 0:
            return self.with_data(self.data * other)
        return self._like(elementwise.with_dense(self.to_bcoo(), y, lambda a, b: a * b), "coo")

    def maximum(self, other: Any) -> Any:
        """The larger of each element and a number, an array or a sparse array."""
        return self._either(other, True)

    def minimum(self, other: Any) -> Any:
        """The smaller of each element and a number, an array or a sparse array."""
        return self._either(other, False)

    def _either(self, other: Any, largest: bool) -> Any:
        y = self._other(other)
        found = elementwise.extreme(self.to_bcoo(), y, largest)
        format = self._rows if isinstance(y, BCOO) else self.format
        return self._like(found, format) if isinstance(found, BCOO) else found

    def __mul__(self, other: Any) -> Any:
        return self.dot(other) if isinstance(self, spmatrix) else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if isinstance(self, spmatrix) and jnp.ndim(other):
            return self.__rmatmul__(other)
        return self.multiply(other)

    def __truediv__(self, other: Any) -> Any:
        y = self._other(other)
        if isinstance(y, BCOO):
            return self.todense() / y.todense()
        if y.ndim == 0:
            return self.with_data(self.data / other)
        return self._like(elementwise.with_dense(self.to_bcoo(), y, lambda a, b: a / b), "coo")

    def __rtruediv__(self, other: Any) -> Any:
        raise ArgumentError("a number or an array divided by a sparse array.", where=user_source(),
                            why="it is zero where nothing is stored.", fix="y / x.toarray()")

    def __pow__(self, power: Any) -> Any:
        if not isinstance(self, spmatrix):
            return self.power(power)
        return matrix_power(self, power)

    def _sum(self, other: Any, sign: int) -> Any:
        y = self._other(other)
        if isinstance(y, BCOO):
            return self._like(elementwise.added(self.to_bcoo(), y, sign), self._rows)
        if y.ndim:
            return self.todense() + sign * y
        if not is_traced(y) and not np.asarray(y):
            return self
        raise ArgumentError("a number added to a sparse array.", where=user_source(),
                            why="the sum has no zeros.", fix="x.toarray() + y")

    def __add__(self, other: Any) -> Any:
        return self._sum(other, 1)

    def __radd__(self, other: Any) -> Any:
        return self._sum(other, 1)

    def __sub__(self, other: Any) -> Any:
        return self._sum(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._sum(other, 1)

    def _compared(self, name: str, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return NotImplemented
        y = self._other(other)
        if not isinstance(y, BCOO) and y.ndim:
            return elementwise.COMPARISONS[name](self.todense(), y)
        return self._like(elementwise.compared(name, self.to_bcoo(), y), self._rows)

    def __eq__(self, other: Any) -> Any:
        return self._compared("==", other)

    def __ne__(self, other: Any) -> Any:
        return self._compared("!=", other)

    def __lt__(self, other: Any) -> Any:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(">=", other)

    __hash__ = None  # type: ignore[assignment]

    # products

    def dot(self, other: Any) -> Any:
        """The product with a number, a vector, columns or a sparse array."""
        if not is_sparse(other) and jnp.ndim(other) == 0:
            return self.with_data(self.data * other)
        return self @ other

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseArithmetic):
            return self._product(self._plain(), other._plain(), other)
        if is_sparse(other):
            other = bcoo_of(other)
        elif jnp.ndim(other) == 0:
            raise ShapeError("functrans.scipy.sparse: @ with a number.", where=user_source(),
                             fix="x * y")
        return self._product(self._plain(), other, self)

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return self._product(bcoo_of(other), self._plain(), self)
        return other @ self._plain()

    def _product(self, x: Any, y: Any, other: Any) -> Any:
        if not (isinstance(x, JAXSparse) and isinstance(y, JAXSparse)):
            return x @ y
        if x.shape[-1] != y.shape[max(y.ndim - 2, 0)]:
            raise mismatch("functrans.scipy.sparse", f"a product of {x.shape} and {y.shape}.")
        found = x @ y
        if not isinstance(found, JAXSparse):
            return found
        mat = as_bcoo(found)
        if not mat.ndim:
            return mat.todense()
        both = self.format == getattr(other, "format", "") == "dia"
        return self._like(compact(mat), "dia" if both else self._rows)

    def tensordot(self, other: Any, axes: Any = 2) -> Any:
        """The sum of products over axes: the last of this and the first of `other`, or pairs."""
        y = self._other(other)
        count = axes if isinstance(axes, int) else 0
        if isinstance(axes, int):
            mine, theirs = tuple(range(self.ndim - count, self.ndim)), tuple(range(count))
        else:
            mine, theirs = ((a,) if isinstance(a, int) else tuple(a) for a in axes)
        mine = tuple(a % self.ndim for a in mine)
        theirs = tuple(a % y.ndim for a in theirs)
        found = dot_general(self.to_bcoo(), y, dimension_numbers=((mine, theirs), ((), ())))
        return self._like(compact(found), "coo") if isinstance(found, BCOO) and found.ndim else (
            found.todense() if isinstance(found, BCOO) else found)


def matrix_power(x: Any, power: Any) -> Any:
    """A square sparse matrix to an integer power, by squares."""
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ShapeError(f"functrans.scipy.sparse: a power of a matrix of shape {x.shape}.",
                         where=user_source(), why="it is square.")
    if power != int(power) or power < 0:
        raise ArgumentError(f"functrans.scipy.sparse: the power {power} of a matrix.",
                            where=user_source(), why="powers are integers from 0 on.")
    power, found, square = int(power), None, x
    while power:
        if power % 2:
            found = square if found is None else found @ square
        power //= 2
        square = square @ square if power else square
    if found is not None:
        return found
    n = x.shape[0]
    at = np.arange(n)
    return x._like(of_columns([at, at], jnp.ones(n, x.dtype), (n, n), True, True), x._rows)
