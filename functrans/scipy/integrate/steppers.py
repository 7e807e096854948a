"""Solvers that go one step at a time: their times and values are known, outside of `jit`.

Each `step()` changes the object. Within `grad` and `jvp` values have derivatives, those of the
steps that were taken.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.numpy.common import converted, is_traced
from functrans.scipy.arguments import inexact, of_rank
from functrans.scipy.integrate.bdf import BdfState, bdf_method, bdf_start, bdf_value
from functrans.scipy.integrate.dense import DenseOutput, StepFunction
from functrans.scipy.integrate.radau import RadauState, radau_method, radau_start, radau_value
from functrans.scipy.integrate.steps import (
    GROW,
    SAFETY,
    SHRINK,
    StepTolerance,
    Walk,
    first_step,
    step,
)
from functrans.scipy.integrate.tableaus import (
    DOP853 as COEFFICIENTS_853,
)
from functrans.scipy.integrate.tableaus import (
    DOP853_INSIDE,
    DOP853_MORE_A,
    DOP853_MORE_C,
    Tableau,
)
from functrans.scipy.integrate.tableaus import RK23 as COEFFICIENTS_23
from functrans.scipy.integrate.tableaus import RK45 as COEFFICIENTS_45
from functrans.scipy.products import matmul
from functrans.transforms.derivatives import jacfwd
from functrans.transforms.flat import check_callable
from functrans.transforms.jit.api import jit
from functrans.typing import Array, ArrayLike

Slope = Callable[..., Any]
# steps times the spectral radius, where explicit ones are given up, and where they are taken up
_STIFF, _LAZY = 3.25, 0.5


def known(name: str, x: Any) -> float:
    """The value of a number, also that which a derivative is taken at."""
    value = lax.stop_gradient(x) if isinstance(x, Tracer) else x
    if is_traced(value):
        raise ArgumentError(f"functrans.scipy.integrate.{name}: values are traced.",
                            where=user_source(), why="which steps are taken depends on them.",
                            fix="functrans.scipy.integrate.solve_ivp(..., t_eval=times)")
    number: Any = value
    return float(number)


class OdeSolver(ABC):
    """A solver of y' = `fun(t, y)` from `t0` to `t_bound` that goes by `step()`.

    It has `t`, `y`, `t_old`, `step_size`, `direction`, `status` ("running", "finished" or "failed")
    and the numbers `nfev`, `njev`, `nlu`; `dense_output()` is the solution within the last step.

    >>> issubclass(ft.scipy.integrate.RK45, ft.scipy.integrate.OdeSolver)
    True
    """

    TOO_SMALL_STEP: ClassVar[str] = "Required step size is less than spacing between numbers."

    def __init__(self, fun: Slope, t0: ArrayLike, y0: ArrayLike, t_bound: ArrayLike,
                 vectorized: bool = False, support_complex: bool = True) -> None:
        name = type(self).__name__
        check_callable(fun, f"scipy.integrate.{name}")
        y, *span = inexact(y0, t0, t_bound)
        of_rank(f"integrate.{name}", "y0", y, 1)
        self.y, self.n = y, y.size
        self.t, self.t_bound = (v.real.reshape(()) for v in span)
        self.t_old: Array | None = None
        ends = known(name, self.t), known(name, self.t_bound)
        self.direction = float(np.sign(ends[1] - ends[0])) or 1.0
        self.status = "running"
        self.nfev = self.njev = self.nlu = 0
        self.vectorized = vectorized

        def slope(t: Array, y: Array) -> Array:
            found = jnp.asarray(fun(t, y))
            if found.size != y.size:
                raise ShapeError(f"functrans.scipy.integrate.{name}: fun returns shape "
                                 f"{found.shape}, y has {y.shape}.", where=user_source())
            return found.reshape(y.shape).astype(y.dtype)

        self._slope = slope

    def fun(self, t: ArrayLike, y: ArrayLike) -> Array:
        """The derivative, counted in `nfev`.

        >>> solver = ft.scipy.integrate.RK23(lambda t, y: -2 * y, 0.0, jnp.ones(1), 1.0)
        >>> solver.fun(0.0, jnp.ones(1)).tolist()
        [-2.0]
        """
        self.nfev += 1
        return self._slope(jnp.asarray(t), jnp.asarray(y))

    @property
    def step_size(self) -> Array | None:
        """The length of the last step."""
        return None if self.t_old is None else jnp.abs(self.t - self.t_old)

    def step(self) -> str | None:
        """Go one step; returns a message where it failed.

        >>> solver = ft.scipy.integrate.RK45(lambda t, y: -y, 0.0, jnp.ones(1), 1.0)
        >>> solver.step()
        >>> solver.status, bool(solver.t > 0)
        ('running', True)
        """
        if self.status != "running":
            raise ArgumentError(f"functrans.scipy.integrate.{type(self).__name__}: the solver is "
                                f"{self.status}.", where=user_source(),
                                fix="while solver.status == 'running': solver.step()")
        name, t = type(self).__name__, self.t
        if self.n == 0 or known(name, t) == known(name, self.t_bound):
            self.t_old, self.t, self.status = t, self.t_bound, "finished"
            return None
        if not self._advance():
            self.status = "failed"
            return self.TOO_SMALL_STEP
        self.t_old = t
        if self.direction * (known(name, self.t) - known(name, self.t_bound)) >= 0:
            self.status = "finished"
        return None

    def dense_output(self) -> DenseOutput:
        """The solution within the last step.

        >>> solver = ft.scipy.integrate.RK45(lambda t, y: 0 * y + 1, 0.0, jnp.zeros(1), 1.0)
        >>> solver.step()
        >>> print((solver.dense_output()(solver.t) - solver.y).round(4))
        [0.]
        """
        if self.t_old is None:
            raise ArgumentError(f"functrans.scipy.integrate.{type(self).__name__}: there was no "
                                "step.", where=user_source(), fix="solver.step()")
        return self._within()

    @abstractmethod
    def _advance(self) -> bool:
        """Go one step, or say that it cannot."""

    @abstractmethod
    def _within(self) -> DenseOutput:
        """The solution within the last step."""

    def _limits(self, rtol: Any, atol: Any, max_step: Any) -> tuple[StepTolerance, Array]:
        dtype = self.t.dtype
        self.max_step = converted("scipy.integrate", max_step, dtype)
        if known(type(self).__name__, self.max_step) <= 0:
            raise ArgumentError(f"functrans.scipy.integrate.{type(self).__name__}: max_step is "
                                f"{max_step}.", where=user_source(), why="it is positive.")
        least = 100 * float(finfo(dtype).eps)
        tolerance = StepTolerance(jnp.maximum(converted("scipy.integrate", rtol, dtype), least),
                                  converted("scipy.integrate", atol, dtype))
        self.rtol, self.atol = tolerance
        return tolerance, self.max_step

    def _first(self, first: Any, f: Array, order: int, tolerance: StepTolerance) -> Array:
        length = jnp.abs(self.t_bound - self.t)
        if first is None:
            self.nfev += 1
            sign = jnp.asarray(self.direction).astype(self.t.dtype)
            return first_step(self._slope, self.t, self.y, f, sign, order, tolerance,
                              jnp.minimum(self.max_step, length))
        size = converted("scipy.integrate", first, self.t.dtype)
        if not 0 < known(type(self).__name__, size) <= known(type(self).__name__, length):
            raise ArgumentError(f"functrans.scipy.integrate.{type(self).__name__}: first_step is "
                                f"{first}.", where=user_source(),
                                why="it is positive and within the interval.")
        return size

    def _least(self) -> float:
        now = np.asarray(known(type(self).__name__, self.t), self.t.dtype)
        return 10 * abs(float(np.nextafter(now, self.direction * np.inf) - now))


class _RungeKutta(OdeSolver):
    tableau: ClassVar[Tableau]

    def __init__(self, fun: Slope, t0: ArrayLike, y0: ArrayLike, t_bound: ArrayLike,
                 max_step: ArrayLike = np.inf, rtol: ArrayLike = 1e-3, atol: ArrayLike = 1e-6,
                 vectorized: bool = False, first_step: ArrayLike | None = None) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized)
        self._tolerance, _ = self._limits(rtol, atol, max_step)
        self.f = self.fun(self.t, self.y)
        self.h_abs = self._first(first_step, self.f, self.tableau.order, self._tolerance)
        self._walk: Walk | None = None

    def _advance(self) -> bool:
        name, least, rejected = type(self).__name__, self._least(), False
        size = min(max(known(name, self.h_abs), least), known(name, self.max_step))
        while True:
            if not size >= least:
                return False
            end = self.t + size * self.direction
            if self.direction * (known(name, end) - known(name, self.t_bound)) > 0:
                end = self.t_bound
            h = end - self.t
            y, f, slopes, error = step(self._slope, self.tableau, self.t, self.y, self.f, h,
                                       self._tolerance)
            self.nfev += len(self.tableau.c)
            norm = known(name, error)
            factor = SHRINK if math.isnan(norm) else GROW if norm == 0 else \
                SAFETY * norm ** (-1 / (self.tableau.order + 1))
            if norm < 1:
                factor = min(GROW, factor, *([1.0] if rejected else []))
                break
            size, rejected = abs(known(name, h)) * max(SHRINK, factor), True
        self.h_abs = jnp.asarray(abs(known(name, h)) * factor).astype(self.t.dtype)
        none = jnp.array(0)
        self._walk = Walk(end, y, f, self.h_abs, self.t, self.y, h, slopes, none, none, none)
        self.t, self.y, self.f = end, y, f
        return True

    def _within(self) -> DenseOutput:
        walk, tableau = self._walk, self.tableau
        assert walk is not None
        return StepFunction(walk.before, walk.t, lambda t: _inside(tableau, walk, t))


def _inside(tableau: Tableau, walk: Walk, t: Array) -> Array:
    x = (t - walk.before) / walk.h_before
    assert tableau.p is not None
    powers = jnp.stack([x ** (k + 1) for k in range(tableau.p.shape[1])])
    weights = matmul(jnp.asarray(tableau.p).astype(x.dtype), powers)
    return walk.y_before + walk.h_before * matmul(weights.astype(walk.y.dtype), walk.slopes)


class RK23(_RungeKutta):
    """Steps of Bogacki and Shampine's method of order 3; see `solve_ivp` for the arguments.

    >>> solver = ft.scipy.integrate.RK23(lambda t, y: -y, 0.0, jnp.ones(1), 1.0)
    >>> while solver.status == "running":
    ...     message = solver.step()
    >>> solver.status, round(float(solver.y[0]), 2)
    ('finished', 0.37)
    """

    tableau = COEFFICIENTS_23


class RK45(_RungeKutta):
    """Steps of Dormand and Prince's method of order 5; see `solve_ivp` for the arguments.

    >>> solver = ft.scipy.integrate.RK45(lambda t, y: -y, 0.0, jnp.ones(1), 1.0)
    >>> while solver.status == "running":
    ...     message = solver.step()
    >>> solver.status, round(float(solver.y[0]), 2)
    ('finished', 0.37)
    """

    tableau = COEFFICIENTS_45


class DOP853(_RungeKutta):
    """Steps of the method of order 8 of Dormand and Prince; see `solve_ivp` for the arguments.

    Within a step it is a polynomial of degree 7, from three more evaluations.

    >>> solver = ft.scipy.integrate.DOP853(lambda t, y: -y, 0.0, jnp.ones(1), 1.0)
    >>> while solver.status == "running":
    ...     message = solver.step()
    >>> solver.status, round(float(solver.y[0]), 3)
    ('finished', 0.368)
    """

    tableau = COEFFICIENTS_853

    def _within(self) -> DenseOutput:
        walk = self._walk
        assert walk is not None
        h, slopes = walk.h_before, [*walk.slopes]
        for row, c in zip(DOP853_MORE_A, DOP853_MORE_C):
            move = sum(float(w) * k for w, k in zip(row, slopes) if w)
            slopes.append(self.fun(walk.before + float(c) * h, walk.y_before + h * move))
        rise = walk.y - walk.y_before
        parts = [rise, h * slopes[0] - rise, 2 * rise - h * (walk.f + slopes[0]),
                 *(h * sum(float(w) * k for w, k in zip(row, slopes) if w)
                   for row in DOP853_INSIDE)]

        def value(t: Array) -> Array:
            x = (t - walk.before) / h
            y = jnp.zeros_like(walk.y)
            for i, part in enumerate(reversed(parts)):
                y = (y + part) * (x if i % 2 == 0 else 1 - x)
            return walk.y_before + y

        return StepFunction(walk.before, walk.t, value)


class _Implicit(OdeSolver):
    """Solvers whose attempts of a step are compiled."""

    order: ClassVar[int]

    def __init__(self, fun: Slope, t0: ArrayLike, y0: ArrayLike, t_bound: ArrayLike,
                 max_step: ArrayLike = np.inf, rtol: ArrayLike = 1e-3, atol: ArrayLike = 1e-6,
                 jac: Any = None, jac_sparsity: None = None, vectorized: bool = False,
                 first_step: ArrayLike | None = None) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized)
        self._tolerance, longest = self._limits(rtol, atol, max_step)
        f = self.fun(self.t, self.y)
        size = self._first(first_step, f, self.order, self._tolerance)
        sign = jnp.asarray(self.direction).astype(self.t.dtype)
        slopes = jac
        if jac is not None and not callable(jac):
            (matrix,) = inexact(jac)
            slopes = lambda t, y: matrix
        self._jacobian = slopes or (lambda t, y: jacfwd(lambda v: self._slope(t, v))(y))
        self._state, improve = self._prepared(f, size, sign, slopes, longest)
        self._improve = jit(improve)

    @abstractmethod
    def _prepared(self, f: Array, size: Array, sign: Array, jac: Any, longest: Array) -> Any:
        """The state, and what tries a step."""

    @property
    def J(self) -> Array:
        """The Jacobian at the last value."""
        return jnp.asarray(self._jacobian(self.t, self.y))

    def _advance(self) -> bool:
        name, least = type(self).__name__, self._least()
        while True:
            before = int(self._counted())
            if not known(name, self._state.h) >= least:
                return False
            moved = self._improve(self._state)
            accepted = known(name, moved.t) != known(name, self._state.t)
            self._state = moved
            self.nfev += int(self._counted()) - before
            self.njev, self.nlu = self.njev + 1, self.nlu + 1
            if accepted:
                break
        self.t, self.y, self.h_abs = moved.t, self._last(), moved.h
        return True

    def _counted(self) -> float:
        return known(type(self).__name__, self._state.evaluations)

    @abstractmethod
    def _last(self) -> Array:
        """The last value."""


class Radau(_Implicit):
    """Steps of the implicit method Radau IIA of order 5, for stiff equations; see `solve_ivp`.

    >>> solver = ft.scipy.integrate.Radau(lambda t, y: -50 * y, 0.0, jnp.ones(1), 1.0)
    >>> while solver.status == "running":
    ...     message = solver.step()
    >>> solver.status, bool(abs(solver.y[0]) < 1e-5)
    ('finished', True)
    """

    order = 3

    def _prepared(self, f: Array, size: Array, sign: Array, jac: Any, longest: Array) -> Any:
        return radau_start(self.t, self.y, size), radau_method(
            self._slope, jac, self.y, self.t_bound, sign, self._tolerance, longest)

    def _last(self) -> Array:
        y: Array = self._state.y
        return y

    def _within(self) -> DenseOutput:
        state: RadauState = self._state
        return StepFunction(state.before, state.t, lambda t: radau_value(state, t))


class BDF(_Implicit):
    """Steps of backward differentiation of orders 1 to 5, for stiff equations; see `solve_ivp`.

    >>> solver = ft.scipy.integrate.BDF(lambda t, y: -50 * y, 0.0, jnp.ones(1), 1.0)
    >>> while solver.status == "running":
    ...     message = solver.step()
    >>> solver.status, bool(abs(solver.y[0]) < 1e-5)
    ('finished', True)
    """

    order = 1

    def _prepared(self, f: Array, size: Array, sign: Array, jac: Any, longest: Array) -> Any:
        self._sign = sign
        return bdf_start(self.t, self.y, f, size, sign), bdf_method(
            self._slope, jac, self.t_bound, sign, self._tolerance, longest)

    def _last(self) -> Array:
        y: Array = self._state.differences[0]
        return y

    def _within(self) -> DenseOutput:
        state: BdfState = self._state
        sign = self._sign
        return StepFunction(state.before, state.t, lambda t: bdf_value(state, t, sign))


class LSODA(OdeSolver):
    """Steps that are explicit, of order 5, while they are not stiff, and then backward formulas.

    As in LSODA the method is chosen on the way: by the length of a step times the growth of the
    derivative along it, and back by that of the Jacobian. Its formulas are those of `RK45` and
    `BDF`, not Adams's. `min_step` stops it where steps would be shorter; `lband` and `uband` are
    not needed.

    >>> solver = ft.scipy.integrate.LSODA(lambda t, y: -1000 * (y - 1), 0.0, jnp.zeros(1), 10.0)
    >>> while solver.status == "running":
    ...     message = solver.step()
    >>> solver.status, solver.stiff, round(float(solver.y[0]), 3)
    ('finished', True, 1.0)
    """

    def __init__(self, fun: Slope, t0: ArrayLike, y0: ArrayLike, t_bound: ArrayLike,
                 first_step: ArrayLike | None = None, min_step: float = 0.0,
                 max_step: ArrayLike = np.inf, rtol: ArrayLike = 1e-3, atol: ArrayLike = 1e-6,
                 jac: Any = None, lband: int | None = None, uband: int | None = None,
                 vectorized: bool = False) -> None:
        super().__init__(fun, t0, y0, t_bound, vectorized)
        self._options: dict[str, Any] = {"max_step": max_step, "rtol": rtol, "atol": atol}
        self._jac, self.min_step, self.stiff, self._warned = jac, min_step, False, 0
        self._now: OdeSolver = RK45(self._slope, self.t, self.y, self.t_bound,
                                    first_step=first_step, **self._options)

    def _advance(self) -> bool:
        name = type(self).__name__
        counts = self._now.nfev, self._now.njev, self._now.nlu
        if self._now.step() is not None:
            return False
        self.nfev, self.njev, self.nlu = (
            old + now - before for old, now, before in zip(
                (self.nfev, self.njev, self.nlu),
                (self._now.nfev, self._now.njev, self._now.nlu), counts))
        size = self._now.step_size
        assert size is not None and self._now.t_old is not None
        if known(name, size) < self.min_step and self._now.status == "running":
            return False
        self._within_step = self._now.dense_output()
        self.t, self.y = self._now.t, self._now.y
        if self._now.status == "running":
            self._chosen(size)
        return True

    def _chosen(self, size: Array) -> None:
        name = type(self).__name__
        now = self._now
        if isinstance(now, RK45):
            walk = now._walk
            assert walk is not None
            # Hairer and Wanner (1996), IV.2: the growth between the last two stages
            row = COEFFICIENTS_45.a[-1]
            last = walk.y_before + walk.h_before * sum(
                float(w) * k for w, k in zip(row, walk.slopes) if w)
            rise = jnp.linalg.norm(walk.slopes[-1] - walk.slopes[-2])
            run = jnp.linalg.norm(walk.y - last)
            growth = known(name, jnp.abs(walk.h_before) * rise) / max(known(name, run), 1e-300)
            self._warned = self._warned + 1 if growth > _STIFF else max(self._warned - 1, 0)
            if self._warned >= 8:
                self.stiff, self._warned = True, 0
                self._now = BDF(self._slope, self.t, self.y, self.t_bound, jac=self._jac,
                                **self._options)
        elif isinstance(now, BDF):
            growth = known(name, size * jnp.max(jnp.sum(jnp.abs(now.J), axis=1)))
            self._warned = self._warned + 1 if growth < _LAZY else 0
            if self._warned >= 8:
                self.stiff, self._warned = False, 0
                self._now = RK45(self._slope, self.t, self.y, self.t_bound, **self._options)

    def _within(self) -> DenseOutput:
        return self._within_step
