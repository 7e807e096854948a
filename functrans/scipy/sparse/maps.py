"""Linear maps that are known by their products, with the names of scipy.sparse.linalg."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Union

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float, kind, result_type
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.sparse.base import JAXSparse
from functrans.transforms.reverse import linear_transpose
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

Product = Callable[[Array], Array]
Matrix = Union[ArrayLike, JAXSparse, "LinearOperator"]


class LinearOperator:
    """A matrix of a shape (m, n) by its product with a vector, `matvec`.

    The adjoint product is `rmatvec`, or the transpose of `matvec`, found automatically; `matmat`
    and `rmatmat` are those with columns. Operators add, multiply by numbers and by each other, and
    `@` multiplies vectors and columns; `.T` and `.H` are the transpose and the adjoint.
    Raises ShapeError for operands that do not fit.

    >>> import functrans as ft
    >>> A = ft.scipy.sparse.linalg.LinearOperator((2, 2), lambda x: x[::-1] * 2.0)
    >>> ((A + 1.0 * A.T) @ ft.numpy.array([1.0, 3.0])).tolist()
    [12.0, 4.0]
    """

    __array_priority__ = 200  # NumPy's arrays leave `x @ A` to it

    def __init__(self, shape: tuple[int, int], matvec: Product, rmatvec: Product | None = None,
                 matmat: Product | None = None, dtype: Any = None,
                 rmatmat: Product | None = None) -> None:
        m, n = shape
        self.shape = (int(m), int(n))
        self.ndim = 2
        self.dtype = np.dtype(default_float() if dtype is None else dtype)
        self._matvec, self._rmatvec, self._matmat, self._rmatmat = (
            matvec, rmatvec, matmat, rmatmat)

    def __repr__(self) -> str:
        return f"<{self.shape[0]}x{self.shape[1]} LinearOperator of {self.dtype}>"

    def _operand(self, name: str, x: ArrayLike, size: int, axes: tuple[int, ...]) -> Array:
        given = jnp.asarray(x)
        if given.ndim not in axes or given.shape[0] != size:
            raise ShapeError(f"functrans.scipy.sparse.linalg.LinearOperator.{name}: x has shape "
                             f"{given.shape}.", where=user_source(),
                             why=f"the operator is {self.shape[0]} by {self.shape[1]}.")
        return given.astype(result_type(given.dtype, self.dtype))

    def matvec(self, x: ArrayLike) -> Array:
        """A x of a vector, or of one column."""
        given = self._operand("matvec", x, self.shape[1], (1, 2))
        out = jnp.asarray(self._matvec(given.reshape(-1)))
        return out.reshape(self.shape[0], *given.shape[1:])

    def rmatvec(self, x: ArrayLike) -> Array:
        """A* x of a vector, or of one column."""
        given = self._operand("rmatvec", x, self.shape[0], (1, 2))
        flat = given.reshape(-1)
        if self._rmatvec is not None:
            out = jnp.asarray(self._rmatvec(flat))
        else:
            like = ShapeDtypeStruct((self.shape[1],), flat.dtype)
            (out,) = linear_transpose(self._matvec, like)(flat.conj())
            out = out.conj()
        return out.reshape(self.shape[1], *given.shape[1:])

    def matmat(self, X: ArrayLike) -> Array:
        """A X of columns."""
        given = self._operand("matmat", X, self.shape[1], (2,))
        if self._matmat is not None:
            return jnp.asarray(self._matmat(given))
        out: Array = vmap(self.matvec, 1, 1)(given)
        return out

    def rmatmat(self, X: ArrayLike) -> Array:
        """A* X of columns."""
        given = self._operand("rmatmat", X, self.shape[0], (2,))
        if self._rmatmat is not None:
            return jnp.asarray(self._rmatmat(given))
        out: Array = vmap(self.rmatvec, 1, 1)(given)
        return out

    def todense(self) -> Array:
        """The matrix, by its product with one."""
        return self.matmat(jnp.eye(self.shape[1], dtype=self.dtype))

    def adjoint(self) -> LinearOperator:
        """A*."""
        return LinearOperator(self.shape[::-1], self.rmatvec, self.matvec, self.rmatmat,
                              self.dtype, self.matmat)

    def transpose(self) -> LinearOperator:
        """The transpose of A."""
        if kind(self.dtype) != "c":
            return self.adjoint()
        return LinearOperator(self.shape[::-1], lambda x: self.rmatvec(x.conj()).conj(),
                              lambda x: self.matvec(x.conj()).conj(), dtype=self.dtype)

    @property
    def H(self) -> LinearOperator:
        """A*."""
        return self.adjoint()

    @property
    def T(self) -> LinearOperator:
        """The transpose of A."""
        return self.transpose()

    def dot(self, x: Any) -> Any:
        """A x of a vector, of columns, of another operator or of a number."""
        if isinstance(x, LinearOperator):
            if self.shape[1] != x.shape[0]:
                raise ShapeError(f"functrans.scipy.sparse.linalg.LinearOperator: {self.shape} and "
                                 f"{x.shape}.", where=user_source(), why="they do not fit.")
            return LinearOperator((self.shape[0], x.shape[1]), lambda v: self.matvec(x.matvec(v)),
                                  lambda v: x.rmatvec(self.rmatvec(v)),
                                  dtype=result_type(self.dtype, x.dtype))
        if jnp.ndim(x) == 0:
            return self._scaled(x)
        return self.matvec(x) if jnp.ndim(x) == 1 else self.matmat(x)

    def _scaled(self, c: Any) -> LinearOperator:
        dtype = self.dtype if not jnp.iscomplexobj(c) else result_type(self.dtype, np.complex64)
        return LinearOperator(self.shape, lambda v: c * self.matvec(v),
                              lambda v: jnp.conj(c) * self.rmatvec(v), dtype=dtype)

    def __call__(self, x: Any) -> Any:
        return self.dot(x)

    def __matmul__(self, x: Any) -> Any:
        return self.dot(x)

    def __rmatmul__(self, x: Any) -> Any:
        given = jnp.asarray(x)
        return self.T.dot(given if given.ndim == 1 else given.T).T

    def __mul__(self, x: Any) -> Any:
        return self.dot(x)

    def __rmul__(self, x: Any) -> Any:
        return self._scaled(x) if jnp.ndim(x) == 0 else self.__rmatmul__(x)

    def __neg__(self) -> LinearOperator:
        return self._scaled(-1)

    def __add__(self, other: Any) -> LinearOperator:
        if not isinstance(other, LinearOperator):
            other = aslinearoperator(other)
        if other.shape != self.shape:
            raise ShapeError(f"functrans.scipy.sparse.linalg.LinearOperator: {self.shape} and "
                             f"{other.shape}.", where=user_source(), why="a sum has one shape.")
        return LinearOperator(self.shape, lambda v: self.matvec(v) + other.matvec(v),
                              lambda v: self.rmatvec(v) + other.rmatvec(v),
                              dtype=result_type(self.dtype, other.dtype))

    def __sub__(self, other: Any) -> LinearOperator:
        return self + (-aslinearoperator(other))

    def __pow__(self, p: int) -> LinearOperator:
        if p < 1:
            raise ArgumentError(f"functrans.scipy.sparse.linalg.LinearOperator: the power {p}.",
                                where=user_source(), why="powers are from 1 on.")
        found = self
        for _ in range(p - 1):
            found = found.dot(self)
        return found


def aslinearoperator(A: Matrix) -> LinearOperator:
    """A matrix (m, n), dense or sparse, as a `LinearOperator`.

    >>> import functrans as ft
    >>> A = ft.scipy.sparse.linalg.aslinearoperator(ft.numpy.array([[1.0, 2.0]]))
    >>> A.shape, A.rmatvec([3.0]).tolist()
    ((1, 2), [3.0, 6.0])
    """
    if isinstance(A, LinearOperator):
        return A
    if isinstance(A, JAXSparse):
        matrix: Any = A
        turned: Any = A.T
        dtype = A.dtype

        def back(x: Array) -> Array:
            out: Array = (turned @ x.conj()).conj()
            return out

        if A.ndim != 2:
            raise _no_matrix(A.shape)
        m, n = A.shape
        return LinearOperator((m, n), partial(operator.matmul, matrix), back,
                              partial(operator.matmul, matrix), dtype, back)
    if callable(A):
        raise ArgumentError("functrans.scipy.sparse.linalg: A is a function, whose shape is not "
                            "known.", where=user_source(),
                            fix="LinearOperator((m, n), A)")
    x = jnp.asarray(A)
    if x.ndim != 2:
        raise _no_matrix(x.shape)
    if kind(x.dtype) not in "fc":
        x = x.astype(default_float())
    to = partial(jnp.matmul, x, precision="highest")
    back = partial(jnp.matmul, x.conj().T, precision="highest")
    m, n = x.shape
    return LinearOperator((m, n), to, back, to, x.dtype, back)


def _no_matrix(shape: Any) -> ShapeError:
    return ShapeError(f"functrans.scipy.sparse.linalg: A has shape {shape}.", where=user_source(),
                      why="a matrix has two axes.", fix="LinearOperator((m, n), matvec)")


def square_map(name: str, A: Matrix) -> LinearOperator:
    """The operator of a square matrix."""
    found = aslinearoperator(A)
    if found.shape[0] != found.shape[1]:
        raise ShapeError(f"functrans.scipy.sparse.linalg.{name}: A has shape {found.shape}.",
                         where=user_source(), why="it is square.")
    return found
