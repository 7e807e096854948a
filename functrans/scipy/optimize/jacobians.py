"""Approximate Jacobians as objects that are set up, updated and solved with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.optimize.implicit import Function
from functrans.scipy.optimize.mixing import broyden
from functrans.scipy.products import matmul
from functrans.scipy.sparse.krylov import bicgstab, gmres
from functrans.transforms.forward import jvp
from functrans.typing import Array, ArrayLike


class _Approximation:
    shape: tuple[int, int]
    func: Function

    def setup(self, x: ArrayLike, F: ArrayLike, func: Function) -> None:
        """Begin at x, where func is F."""
        self.func = func
        self.x, self.f = (v.reshape(-1) for v in inexact(x, F))
        self.shape, self.dtype = (self.f.size, self.x.size), self.f.dtype

    def _ready(self) -> None:
        if not hasattr(self, "func"):
            raise ArgumentError(f"functrans.scipy.optimize.{type(self).__name__}: it is not set "
                                "up.", where=user_source(), fix=".setup(x, func(x), func)")


class BroydenFirst(_Approximation):
    """The Jacobian of `broyden1`: `setup(x, F, func)`, `update(x, F)`, `solve(v)`, `matvec(v)`.

    >>> jacobian = ft.scipy.optimize.BroydenFirst(alpha=1.0)
    >>> jacobian.setup([0.0, 0.0], [1.0, 1.0], lambda x: 2 * x + 1)
    >>> jacobian.update([1.0, 0.0], [3.0, 1.0])
    >>> jacobian.solve([2.0, 0.0]).tolist()
    [1.0, 0.0]
    """

    def __init__(self, alpha: float | None = None, reduction_method: str = "restart",
                 max_rank: float | None = None) -> None:
        one_of("optimize.BroydenFirst", "reduction_method", reduction_method, ("restart",))
        self._model = broyden(True, alpha, max_rank)

    def setup(self, x: ArrayLike, F: ArrayLike, func: Function) -> None:
        """Begin at x, where func is F.

        >>> jacobian = ft.scipy.optimize.BroydenFirst(alpha=0.5)
        >>> jacobian.setup([0.0], [1.0], lambda x: x + 1)
        >>> jacobian.solve([1.0]).tolist()
        [-0.5]
        """
        super().setup(x, F, func)
        self._state = self._model.start(self.x, self.f)

    def update(self, x: ArrayLike, F: ArrayLike) -> None:
        """Take in a step to x, where the function is F.

        >>> jacobian = ft.scipy.optimize.BroydenFirst(alpha=1.0)
        >>> jacobian.setup([0.0], [1.0], lambda x: 4 * x + 1)
        >>> jacobian.update([1.0], [5.0])
        >>> jacobian.todense().tolist()
        [[4.0]]
        """
        self._ready()
        at, f = (v.reshape(-1) for v in inexact(x, F))
        self._state = self._model.update(self._state, at, f, at - self.x, f - self.f)
        self.x, self.f = at, f

    def solve(self, v: ArrayLike, tol: float = 0.0) -> Array:
        """x whose product is v.

        >>> jacobian = ft.scipy.optimize.BroydenFirst(alpha=2.0)
        >>> jacobian.setup([0.0], [1.0], lambda x: x + 1)
        >>> jacobian.solve([1.0]).tolist()
        [-2.0]
        """
        self._ready()
        return self._model.solve(self._state, inexact(v)[0].astype(self.dtype))

    def todense(self) -> Array:
        """The matrix.

        >>> jacobian = ft.scipy.optimize.BroydenFirst(alpha=2.0)
        >>> jacobian.setup([0.0], [1.0], lambda x: x + 1)
        >>> jacobian.todense().tolist()
        [[-0.5]]
        """
        self._ready()
        found: Array = jnp.linalg.inv(self._state[0])
        return found

    def matvec(self, v: ArrayLike) -> Array:
        """The product with a vector.

        >>> jacobian = ft.scipy.optimize.BroydenFirst(alpha=2.0)
        >>> jacobian.setup([0.0], [1.0], lambda x: x + 1)
        >>> jacobian.matvec([2.0]).tolist()
        [-1.0]
        """
        return matmul(self.todense(), inexact(v)[0].astype(self.dtype))


class KrylovJacobian(_Approximation):
    """The Jacobian of `newton_krylov`: products are those of `ft.jvp`, solved in Krylov spaces.

    >>> jacobian = ft.scipy.optimize.KrylovJacobian()
    >>> jacobian.setup([1.0, 2.0], [1.0, 4.0], lambda x: x ** 2)
    >>> jacobian.matvec([1.0, 1.0]).tolist(), jacobian.solve([2.0, 4.0], tol=1e-6).round(4).tolist()
    ([2.0, 4.0], [1.0, 1.0])
    """

    def __init__(self, rdiff: float | None = None, method: str = "lgmres",
                 inner_maxiter: int = 20, inner_M: Any = None, outer_k: int = 10,
                 **kw: Any) -> None:
        one_of("optimize.KrylovJacobian", "method", method, ("lgmres", "gmres", "bicgstab"))
        self.method, self.inner_maxiter, self.inner_M = method, inner_maxiter, inner_M

    def update(self, x: ArrayLike, F: ArrayLike) -> None:
        """Go to x, where the function is F.

        >>> jacobian = ft.scipy.optimize.KrylovJacobian()
        >>> jacobian.setup([1.0], [1.0], lambda x: x ** 2)
        >>> jacobian.update([2.0], [4.0])
        >>> jacobian.matvec([1.0]).tolist()
        [4.0]
        """
        self._ready()
        self.x, self.f = (v.reshape(-1) for v in inexact(x, F))

    def matvec(self, v: ArrayLike) -> Array:
        """The product with a vector.

        >>> jacobian = ft.scipy.optimize.KrylovJacobian()
        >>> jacobian.setup([3.0], [9.0], lambda x: x ** 2)
        >>> jacobian.matvec([1.0]).tolist()
        [6.0]
        """
        self._ready()
        along = inexact(v)[0].astype(self.dtype)
        found: Array = jvp(lambda x: jnp.asarray(self.func(x)), (self.x,), (along,))[1]
        return found

    def solve(self, rhs: ArrayLike, tol: float = 0.0) -> Array:
        """x whose product is `rhs`, to the relative tolerance `tol`.

        >>> jacobian = ft.scipy.optimize.KrylovJacobian()
        >>> jacobian.setup([2.0], [4.0], lambda x: x ** 2)
        >>> jacobian.solve([4.0], tol=1e-6).tolist()
        [1.0]
        """
        self._ready()
        right = inexact(rhs)[0].astype(self.dtype)
        if self.method == "bicgstab":
            return bicgstab(self.matvec, right, tol=tol, maxiter=self.inner_maxiter,
                            M=self.inner_M)[0]
        return gmres(self.matvec, right, tol=tol, restart=min(self.inner_maxiter, right.size),
                     maxiter=self.inner_maxiter, M=self.inner_M)[0]


class InverseJacobian:
    """The inverse of an approximate Jacobian as an operator: its `matvec` is `jacobian.solve`.

    It is what `inner_M` of `newton_krylov` may be.

    >>> jacobian = ft.scipy.optimize.BroydenFirst(alpha=0.5)
    >>> jacobian.setup([0.0], [1.0], lambda x: x + 1)
    >>> ft.scipy.optimize.InverseJacobian(jacobian).matvec([1.0]).tolist()
    [-0.5]
    """

    def __init__(self, jacobian: Any) -> None:
        self.jacobian = jacobian
        self.matvec: Callable[..., Array] = jacobian.solve
        if hasattr(jacobian, "setup"):
            self.setup = jacobian.setup
        if hasattr(jacobian, "update"):
            self.update = jacobian.update

    def __call__(self, v: ArrayLike) -> Array:
        return self.matvec(v)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        found: tuple[int, int] = self.jacobian.shape
        return found

    @property
    def dtype(self) -> Any:
        """Of the matrix."""
        return self.jacobian.dtype
