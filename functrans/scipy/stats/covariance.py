"""Covariances by what is known of them, which need not be factored again."""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.numpy.common import operand, promote_dtypes_inexact
from functrans.scipy.linalg import solve_triangular
from functrans.typing import Array, ArrayLike

__all__ = ["Covariance"]


def _matrix(name: str, x: ArrayLike, square: bool = True) -> Array:
    full = f"scipy.stats.Covariance.{name}"
    x = jnp.asarray(x) if isinstance(x, (list, tuple)) else x
    found = operand(full, *promote_dtypes_inexact(full, x))
    if found.ndim < (2 if square else 1) or (square and found.shape[-1] != found.shape[-2]):
        raise ShapeError(f"{full}: the array has shape {found.shape}.", where=user_source(),
                         why="it is (..., n, n)." if square else "it is (..., n).")
    return found


@register_pytree_node_class
class Covariance:
    """A covariance made by one of `from_diagonal`, `from_precision`, `from_cholesky` and
    `from_eigendecomposition`: a tree of its root, and of the root of its inverse.

    >>> import functrans as ft
    >>> cov = ft.scipy.stats.Covariance.from_diagonal([1.0, 4.0])
    >>> [float(v) for v in cov.whiten(ft.numpy.array([1.0, 1.0]))]
    [1.0, 0.5]
    >>> [float(v) for v in cov.colorize(ft.numpy.ones(2))]
    [1.0, 2.0]
    >>> eye = ft.numpy.eye(2)
    >>> made = (cov.from_precision(eye), cov.from_cholesky(eye),
    ...         cov.from_eigendecomposition((ft.numpy.ones(2), eye)))
    >>> [abs(float(c.log_pdet)) for c in made]
    [0.0, 0.0, 0.0]
    """

    def __init__(self, kind: str, root: Array, log_pdet: Array, rank: Any) -> None:
        self._kind, self._root, self.log_pdet, self.rank = kind, root, log_pdet, rank

    def tree_flatten(self) -> tuple[Any, str]:
        return (self._root, self.log_pdet, self.rank), self._kind

    @classmethod
    def tree_unflatten(cls, aux: str, children: Any) -> Covariance:
        return cls(aux, *children)

    @staticmethod
    def from_diagonal(diagonal: ArrayLike) -> Covariance:
        """That of independent elements of these variances, some of which may be 0."""
        d = _matrix("from_diagonal", diagonal, False)
        some = d > 0
        logs = lax.log(jnp.where(some, d, 1.0))
        return Covariance("diagonal", lax.sqrt(d), jnp.sum(logs, -1), jnp.sum(some, -1))

    @staticmethod
    def from_precision(precision: ArrayLike, covariance: ArrayLike | None = None) -> Covariance:
        """The inverse of a positive definite matrix; `covariance` is accepted, and not needed."""
        root = jnp.linalg.cholesky(_matrix("from_precision", precision))
        logs = lax.log(jnp.diagonal(root, 0, -2, -1))
        return Covariance("precision", root, -2.0 * jnp.sum(logs, -1),
                          jnp.asarray(root.shape[-1]))

    @staticmethod
    def from_cholesky(cholesky: ArrayLike) -> Covariance:
        """root @ root.T of a lower triangular root."""
        root = jnp.tril(_matrix("from_cholesky", cholesky))
        logs = lax.log(jnp.abs(jnp.diagonal(root, 0, -2, -1)))
        return Covariance("cholesky", root, 2.0 * jnp.sum(logs, -1), jnp.asarray(root.shape[-1]))

    @staticmethod
    def from_eigendecomposition(eigendecomposition: tuple[ArrayLike, ArrayLike]) -> Covariance:
        """That of these eigenvalues, of which some may be 0, and eigenvectors."""
        values = _matrix("from_eigendecomposition", eigendecomposition[0], False)
        vectors = _matrix("from_eigendecomposition", eigendecomposition[1])
        eps = float(jnp.finfo(values.dtype).eps) * values.shape[-1]
        some = values > eps * jnp.max(values, -1, keepdims=True)
        logs = lax.log(jnp.where(some, values, 1.0))
        root = vectors * lax.sqrt(jnp.where(some, values, 0.0))[..., None, :]
        return Covariance("eigen", root, jnp.sum(logs, -1), jnp.sum(some, -1))

    def whiten(self, x: ArrayLike) -> Array:
        """Vectors (..., n) of this covariance made uncorrelated, of variance 1."""
        x = jnp.asarray(x)
        if self._kind == "diagonal":
            some = self._root > 0
            return jnp.where(some, x / jnp.where(some, self._root, 1.0), 0.0)
        if self._kind == "precision":
            return jnp.einsum("...i,...ij->...j", x, self._root, precision="highest")
        if self._kind == "cholesky":
            return solve_triangular(self._root, x[..., None], lower=True)[..., 0]
        squares = jnp.sum(self._root * self._root, -2)
        inverse = jnp.where(squares > 0, 1.0 / jnp.where(squares > 0, squares, 1.0), 0.0)
        return jnp.einsum("...i,...ij->...j", x, self._root, precision="highest") * inverse

    def colorize(self, x: ArrayLike) -> Array:
        """Uncorrelated vectors (..., n) of variance 1 made to have this covariance."""
        x = jnp.asarray(x)
        if self._kind == "diagonal":
            return x * self._root
        if self._kind == "precision":
            return solve_triangular(self._root, x[..., None], trans=1, lower=True)[..., 0]
        return jnp.einsum("...j,...ij->...i", x, self._root, precision="highest")

    @property
    def covariance(self) -> Array:
        """The matrix (..., n, n)."""
        root = self._root
        if self._kind == "diagonal":
            return jnp.eye(root.shape[-1], dtype=root.dtype) * (root * root)[..., None]
        if self._kind == "precision":
            return jnp.linalg.inv(jnp.matmul(root, jnp.swapaxes(root, -1, -2),
                                             precision="highest"))
        return jnp.matmul(root, jnp.swapaxes(root, -1, -2), precision="highest")

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the matrix."""
        root = self._root
        return (*root.shape, root.shape[-1]) if self._kind == "diagonal" else root.shape
