"""Hessians that are updated from changes of gradients, and products with their inverse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.products import matmul, vdot
from functrans.typing import Array, ArrayLike


class HessianUpdateStrategy(ABC):
    """What updates a Hessian, or its inverse, from a step and the change of the gradient along it.

    >>> issubclass(ft.scipy.optimize.BFGS, ft.scipy.optimize.HessianUpdateStrategy)
    True
    """

    @abstractmethod
    def initialize(self, n: int, approx_type: str) -> None:
        """Begin with n variables; `approx_type` is "hess", or "inv_hess" for the inverse.

        >>> strategy = ft.scipy.optimize.BFGS()
        >>> strategy.initialize(3, "inv_hess")
        >>> strategy.get_matrix().shape
        (3, 3)
        """

    @abstractmethod
    def update(self, delta_x: ArrayLike, delta_grad: ArrayLike) -> None:
        """Take in a step and the change of the gradient along it.

        >>> strategy = ft.scipy.optimize.SR1(init_scale=1.0)
        >>> strategy.initialize(1, "hess")
        >>> strategy.update([1.0], [5.0])
        >>> strategy.get_matrix().tolist()
        [[5.0]]
        """

    @abstractmethod
    def dot(self, p: ArrayLike) -> Array:
        """The product of the matrix and a vector.

        >>> strategy = ft.scipy.optimize.BFGS()
        >>> strategy.initialize(1, "hess")
        >>> strategy.dot([3.0]).tolist()
        [3.0]
        """

    @abstractmethod
    def get_matrix(self) -> Array:
        """The matrix.

        >>> strategy = ft.scipy.optimize.SR1()
        >>> strategy.initialize(1, "hess")
        >>> strategy.get_matrix().tolist()
        [[1.0]]
        """


class _FullHessian(HessianUpdateStrategy):
    def __init__(self, init_scale: Any = "auto") -> None:
        self.init_scale = init_scale
        self.first_iteration: bool | None = None
        self.n: int | None = None
        self.approx_type: str | None = None
        self._matrix: Array | None = None

    def initialize(self, n: int, approx_type: str) -> None:
        one_of("optimize.HessianUpdateStrategy", "approx_type", approx_type, ("hess", "inv_hess"))
        self.n = known_size("optimize.HessianUpdateStrategy", "n", n)
        self.approx_type, self.first_iteration = approx_type, True
        self._matrix = jnp.eye(self.n)

    def _ready(self) -> Array:
        if self._matrix is None:
            raise ArgumentError(f"functrans.scipy.optimize.{type(self).__name__}: there is no "
                                "matrix.", where=user_source(), why="its size is not known.",
                                fix=".initialize(n, 'hess')")
        return self._matrix

    def update(self, delta_x: ArrayLike, delta_grad: ArrayLike) -> None:
        """Take in a step and the change of the gradient along it; zero changes are left out."""
        matrix = self._ready()
        step, change = inexact(delta_x, delta_grad)
        if step.shape != (self.n,) or change.shape != (self.n,):
            raise ShapeError(f"functrans.scipy.optimize.{type(self).__name__}: delta_x has shape "
                             f"{step.shape}, delta_grad {change.shape}.", where=user_source(),
                             why=f"there are {self.n} variables.")
        matrix = matrix.astype(step.dtype)
        if self.first_iteration:
            matrix = self._scale(step, change) * matrix
            self.first_iteration = False
        new = self._updated(matrix, step, change)
        still = jnp.all(step == 0) | jnp.all(change == 0)
        self._matrix = jnp.where(still, matrix, new)

    def _scale(self, step: Array, change: Array) -> Array:
        """Of the first matrix: Nocedal and Wright, Numerical Optimization (2006), (6.20)."""
        if not isinstance(self.init_scale, str):
            found: Array = inexact(self.init_scale)[0].astype(step.dtype)
            return found
        one_of("optimize.HessianUpdateStrategy", "init_scale", self.init_scale, ("auto",))
        ss, yy, ys = vdot(step, step), vdot(change, change), jnp.abs(vdot(change, step))
        above, below = (yy, ys) if self.approx_type == "hess" else (ys, yy)
        usable = (ss > 0) & (yy > 0) & (ys > 0)
        return jnp.where(usable, above / jnp.where(usable, below, 1), 1)

    @abstractmethod
    def _updated(self, matrix: Array, step: Array, change: Array) -> Array:
        """The matrix after a step that is not zero."""

    def dot(self, p: ArrayLike) -> Array:
        """The product of the matrix and a vector.

        >>> strategy = ft.scipy.optimize.SR1()
        >>> strategy.initialize(2, "hess")
        >>> strategy.dot([1.0, 2.0]).tolist()
        [1.0, 2.0]
        """
        matrix = self._ready()
        (vector,) = inexact(p)
        return matmul(matrix.astype(vector.dtype), vector)

    def get_matrix(self) -> Array:
        """The matrix.

        >>> strategy = ft.scipy.optimize.BFGS()
        >>> strategy.initialize(2, "hess")
        >>> strategy.get_matrix().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return self._ready()


class BFGS(_FullHessian):
    """The update of Broyden, Fletcher, Goldfarb and Shanno, which stays positive definite.

    `exception_strategy` says what is done where the curvature along a step is below
    `min_curvature`: "skip_update", or "damp_update", by Powell's mixture with the old matrix. It is
    an object of a program's Python, and its arrays may be traced.
    Source: Nocedal and Wright, Numerical Optimization (2006), 6.1 and 18.3.

    >>> strategy = ft.scipy.optimize.BFGS(init_scale=1.0)
    >>> strategy.initialize(2, "hess")
    >>> strategy.update([1.0, 0.0], [3.0, 0.0])
    >>> strategy.get_matrix().tolist()
    [[3.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, exception_strategy: str = "skip_update",
                 min_curvature: float | None = None, init_scale: Any = "auto") -> None:
        one_of("optimize.BFGS", "exception_strategy", exception_strategy,
               ("skip_update", "damp_update"))
        super().__init__(init_scale)
        self.exception_strategy = exception_strategy
        self.min_curvature = min_curvature if min_curvature is not None else (
            1e-8 if exception_strategy == "skip_update" else 0.2)

    def _updated(self, matrix: Array, step: Array, change: Array) -> Array:
        inverse = self.approx_type == "inv_hess"
        w, z = (change, step) if inverse else (step, change)
        wz, product = vdot(w, z), matmul(matrix, w)
        size = vdot(w, product)
        skip = jnp.array(False)
        # a direction without curvature: the first matrix again
        lost = size <= 0
        fresh = self._scale(step, change) * jnp.eye(w.size, dtype=w.dtype)
        matrix = jnp.where(lost, fresh, matrix)
        product = matmul(matrix, w)
        size = vdot(w, product)
        small = wz <= self.min_curvature * size
        if self.exception_strategy == "skip_update":
            skip = small
        else:
            ratio = wz / jnp.where(size == 0, 1, size)
            share = jnp.where(small, (1 - self.min_curvature) / jnp.where(ratio == 1, 1, 1 - ratio),
                              1)
            z = share * z + (1 - share) * product
            wz = vdot(w, z)
        safe = jnp.where(skip | (wz == 0), 1, wz)
        if inverse:
            mixed = jnp.outer(z, matmul(matrix, w))
            # H + (1 + w H w / wz) z z' / wz - (z w' H + H w z') / wz
            new = matrix + (1 + size / safe) * jnp.outer(z, z) / safe - (mixed + mixed.T) / safe
        else:
            new = matrix + jnp.outer(z, z) / safe - jnp.outer(product, product) / jnp.where(
                size == 0, 1, size)
        return jnp.where(skip, matrix, new)


class SR1(_FullHessian):
    """The symmetric update of rank one, which may be indefinite.

    It is left out where its denominator is less than `min_denominator` times the norms.
    Source: Nocedal and Wright, Numerical Optimization (2006), 6.2.

    >>> strategy = ft.scipy.optimize.SR1(init_scale=1.0)
    >>> strategy.initialize(2, "hess")
    >>> strategy.update([1.0, 0.0], [-3.0, 0.0])
    >>> strategy.get_matrix().tolist()
    [[-3.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, min_denominator: float = 1e-8, init_scale: Any = "auto") -> None:
        super().__init__(init_scale)
        self.min_denominator = min_denominator

    def _updated(self, matrix: Array, step: Array, change: Array) -> Array:
        w, z = (change, step) if self.approx_type == "inv_hess" else (step, change)
        rest = z - matmul(matrix, w)
        divisor = vdot(w, rest)
        least = self.min_denominator * jnp.sqrt(vdot(w, w) * vdot(rest, rest))
        skip = jnp.abs(divisor) <= least
        return jnp.where(skip, matrix, matrix + jnp.outer(rest, rest) / jnp.where(skip, 1, divisor))


class LbfgsInvHessProduct:
    """The inverse of a Hessian that L-BFGS has of its last steps `sk` and changes `yk`, (k, n).

    Source: Nocedal, Math. Comp. 35 (1980).

    >>> inverse = ft.scipy.optimize.LbfgsInvHessProduct([[1.0, 0.0]], [[4.0, 0.0]])
    >>> inverse.matvec([2.0, 2.0]).tolist(), inverse.todense().tolist()
    ([0.5, 2.0], [[0.25, 0.0], [0.0, 1.0]])
    """

    def __init__(self, sk: ArrayLike, yk: ArrayLike) -> None:
        self.sk, self.yk = inexact(sk, yk)
        if self.sk.shape != self.yk.shape or self.sk.ndim != 2:
            raise ShapeError(f"functrans.scipy.optimize.LbfgsInvHessProduct: sk has shape "
                             f"{self.sk.shape}, yk {self.yk.shape}.", where=user_source(),
                             why="both are (corrections, variables).")
        self.n_corrs, n = self.sk.shape
        self.shape, self.dtype = (n, n), self.sk.dtype
        self.rho = 1 / jnp.sum(self.sk * self.yk, axis=1)

    def matvec(self, x: ArrayLike) -> Array:
        """The product with a vector.

        >>> ft.scipy.optimize.LbfgsInvHessProduct([[1.0]], [[2.0]]).matvec([4.0]).tolist()
        [2.0]
        """
        q = inexact(x)[0].reshape(-1).astype(self.dtype)
        weights = []
        for i in reversed(range(self.n_corrs)):
            weights.append(self.rho[i] * vdot(self.sk[i], q))
            q = q - weights[-1] * self.yk[i]
        for i, weight in enumerate(reversed(weights)):
            q = q + self.sk[i] * (weight - self.rho[i] * vdot(self.yk[i], q))
        return q

    rmatvec = matvec

    def __matmul__(self, x: ArrayLike) -> Array:
        (given,) = inexact(x)
        return self.matvec(given) if given.ndim == 1 else self.matmat(given)

    def matmat(self, X: ArrayLike) -> Array:
        """The product with a matrix.

        >>> inverse = ft.scipy.optimize.LbfgsInvHessProduct([[1.0]], [[2.0]])
        >>> inverse.matmat([[4.0, 6.0]]).tolist()
        [[2.0, 3.0]]
        """
        (given,) = inexact(X)
        return jnp.stack([self.matvec(given[:, j]) for j in range(given.shape[1])], axis=1)

    def todense(self) -> Array:
        """The matrix.

        >>> ft.scipy.optimize.LbfgsInvHessProduct([[1.0]], [[2.0]]).todense().tolist()
        [[0.5]]
        """
        eye = jnp.eye(self.shape[0], dtype=self.dtype)
        matrix = eye
        for s, y, rho in zip(self.sk, self.yk, self.rho):
            left = eye - rho * jnp.outer(s, y)
            matrix = matmul(left, matmul(matrix, left.T)) + rho * jnp.outer(s, s)
        return matrix


def scaled_start(x: Array, f: Array) -> Array:
    """The first guess of an inverse Jacobian that is a number."""
    norm = jnp.linalg.norm(f)
    tiny = float(finfo(f.dtype).tiny)
    found: Array = lax.stop_gradient(jnp.where(
        norm > 0, 0.5 * jnp.maximum(jnp.linalg.norm(x), 1) / jnp.maximum(norm, tiny), 1))
    return found
