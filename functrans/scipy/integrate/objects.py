"""ode and complex_ode: differential equations that are asked for one time after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of, refused
from functrans.scipy.integrate.steppers import (
    BDF,
    DOP853,
    LSODA,
    RK45,
    OdeSolver,
)
from functrans.transforms.flat import check_callable
from functrans.typing import Array, ArrayLike


class IntegrationWarning(UserWarning):
    """What SciPy warns of with; a category for `warnings.filterwarnings`.

    >>> issubclass(ft.scipy.integrate.IntegrationWarning, UserWarning)
    True
    """


class ODEintWarning(Warning):
    """What SciPy warns of with; a category for `warnings.filterwarnings`.

    >>> issubclass(ft.scipy.integrate.ODEintWarning, Warning)
    True
    """


_INTEGRATORS: Final[Mapping[str, type[OdeSolver]]] = MappingProxyType(
    {"dopri5": RK45, "dop853": DOP853, "lsoda": LSODA, "vode": DOP853, "zvode": DOP853})


class ode:
    """y' = `f(t, y, *args)` that `integrate(t)` solves up to a time, and again from there.

    `set_integrator(name, rtol=1e-6, atol=1e-12, nsteps=500, max_step=0.0, first_step=0.0)` takes
    "dopri5", "dop853", "lsoda" (see `LSODA`), "vode" and "zvode": these two take steps of `DOP853`,
    or with `method="bdf"` those of `BDF`. Values are known, outside of `jit`; under `grad` they
    have derivatives. Raises ArgumentError for another integrator.

    >>> solver = ft.scipy.integrate.ode(lambda t, y: -y).set_integrator("dopri5")
    >>> _ = solver.set_initial_value(jnp.ones(1), 0.0)
    >>> y = solver.integrate(1.0)
    >>> round(float(y[0]), 3), solver.successful()
    (0.368, True)
    """

    def __init__(self, f: Callable[..., Any], jac: Callable[..., Any] | None = None) -> None:
        check_callable(f, "scipy.integrate.ode")
        self.f, self.jac = f, jac
        self.f_params: tuple[Any, ...] = ()
        self.jac_params: tuple[Any, ...] = ()
        self.t: Array = jnp.asarray(0.0)
        self._y: Array | None = None
        self._code = 1
        self.set_integrator("vode")

    @property
    def y(self) -> Array:
        """The value at `t`.

        >>> solver = ft.scipy.integrate.ode(lambda t, y: -y)
        >>> solver.set_initial_value(jnp.ones(2)).y.tolist()
        [1.0, 1.0]
        """
        if self._y is None:
            raise ArgumentError("functrans.scipy.integrate.ode: there is no value.",
                                where=user_source(), fix=".set_initial_value(y, t)")
        return self._y

    def set_initial_value(self, y: ArrayLike, t: ArrayLike = 0.0) -> ode:
        """Begin at a value and a time.

        >>> solver = ft.scipy.integrate.ode(lambda t, y: -y)
        >>> float(solver.set_initial_value(jnp.ones(2), 3.0).t)
        3.0
        """
        value, time = inexact(y, t)
        self._y, self.t, self._code = jnp.atleast_1d(value), time.real, 1
        return self

    def set_integrator(self, name: str, **integrator_params: Any) -> ode:
        """Choose how it is solved.

        >>> _ = ft.scipy.integrate.ode(lambda t, y: -y).set_integrator("vode", method="bdf")
        """
        how = str(name).lower()
        one_of("integrate.ode", "name", how, tuple(_INTEGRATORS))
        options = {"rtol": 1e-6, "atol": 1e-12, "nsteps": 500, "max_step": 0.0, "first_step": 0.0,
                   "method": "adams", "with_jacobian": False, "order": 12, "lband": None,
                   "uband": None, "min_step": 0.0, "safety": 0.9, "verbosity": -1, "beta": 0.0,
                   "ifactor": 10.0, "dfactor": 0.2}
        unknown = set(integrator_params) - set(options)
        if unknown:
            raise ArgumentError(f"functrans.scipy.integrate.ode: there is no option "
                                f"{sorted(unknown)[0]!r}.", where=user_source(),
                                fix=", ".join(sorted(options)))
        self._options: dict[str, Any] = options | integrator_params
        stiff = how in ("vode", "zvode") and str(self._options["method"]).lower() == "bdf"
        self._kind: Any = BDF if stiff else _INTEGRATORS[how]
        return self

    def set_f_params(self, *args: Any) -> ode:
        """Further arguments of f.

        >>> solver = ft.scipy.integrate.ode(lambda t, y, k: -k * y).set_f_params(2.0)
        >>> round(float(solver.set_initial_value(jnp.ones(1)).integrate(1.0)[0]), 3)
        0.135
        """
        self.f_params = args
        return self

    def set_jac_params(self, *args: Any) -> ode:
        """Further arguments of the Jacobian.

        >>> _ = ft.scipy.integrate.ode(lambda t, y: -y).set_jac_params(2.0)
        """
        self.jac_params = args
        return self

    def set_solout(self, solout: Any) -> None:
        """Refused: steps are those of a solver.

        >>> try:
        ...     ft.scipy.integrate.ode(lambda t, y: -y).set_solout(print)
        ... except ft.errors.ArgumentError as error:
        ...     print(str(error).splitlines()[0])
        functrans.scipy.integrate.ode.set_solout does not take solout.
        """
        raise refused("integrate.ode.set_solout", "solout", "a solver has its own steps.",
                      "functrans.scipy.integrate.RK45(f, t0, y0, t_bound).step()")

    def integrate(self, t: ArrayLike, step: bool = False, relax: bool = False) -> Array:
        """The value at t; with `step` or `relax` that after one step towards t, at `self.t`.

        >>> solver = ft.scipy.integrate.ode(lambda t, y: -y).set_initial_value(jnp.ones(1))
        >>> round(float(solver.integrate(2.0)[0]), 3), float(solver.t)
        (0.135, 2.0)
        """
        options = self._options
        extra: dict[str, Any] = {}
        if self._kind in (BDF, LSODA) and self.jac is not None:
            given = self.jac
            extra["jac"] = lambda t, y: given(t, y, *self.jac_params)
        if self._kind is LSODA:
            extra["min_step"] = options["min_step"]
        solver = self._kind(lambda t, y: self.f(t, y, *self.f_params), self.t, self.y, t,
                            rtol=options["rtol"], atol=options["atol"],
                            max_step=options["max_step"] or np.inf,
                            first_step=options["first_step"] or None, **extra)
        count, self._code = 0, 1
        while solver.status == "running" and not (count and (step or relax)):
            count += 1
            if count > options["nsteps"] or solver.step() is not None:
                self._code = -1
                break
        self._y, self.t = solver.y, solver.t
        return self.y

    def successful(self) -> bool:
        """Whether the last `integrate` came to its time.

        >>> solver = ft.scipy.integrate.ode(lambda t, y: -y).set_integrator("dopri5", nsteps=1)
        >>> _ = solver.set_initial_value(jnp.ones(1)).integrate(10.0)
        >>> solver.successful(), solver.get_return_code()
        (False, -1)
        """
        return self._code > 0

    def get_return_code(self) -> int:
        """1, or -1 where the last `integrate` did not come to its time.

        >>> ft.scipy.integrate.ode(lambda t, y: -y).get_return_code()
        1
        """
        return self._code


class complex_ode(ode):
    """As `ode`, with complex values.

    >>> solver = ft.scipy.integrate.complex_ode(lambda t, y: 1j * y).set_integrator("dop853")
    >>> y = solver.set_initial_value(jnp.ones(1), 0.0).integrate(jnp.pi)
    >>> print(y.round(3).real)
    [-1.]
    """

    def set_initial_value(self, y: ArrayLike, t: ArrayLike = 0.0) -> complex_ode:
        """Begin at a value, which becomes complex, and a time.

        >>> solver = ft.scipy.integrate.complex_ode(lambda t, y: 1j * y)
        >>> solver.set_initial_value(jnp.ones(1)).y.tolist()
        [(1+0j)]
        """
        super().set_initial_value(jnp.asarray(y) * (1 + 0j), t)
        return self
