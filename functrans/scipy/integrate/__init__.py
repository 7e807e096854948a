"""Integrals of functions and samples, and differential equations, named as in scipy.integrate."""

from functrans.core.errors import publish
from functrans.scipy.integrate.adaptive import fixed_quad, quad
from functrans.scipy.integrate.equations import OdeResult, odeint, solve_ivp
from functrans.scipy.integrate.nested import dblquad, newton_cotes, nquad, tplquad
from functrans.scipy.integrate.samples import (
    cumulative_simpson,
    cumulative_trapezoid,
    romb,
    simpson,
    trapezoid,
)

__all__ = [
    "OdeResult", "cumulative_simpson", "cumulative_trapezoid", "dblquad", "fixed_quad",
    "newton_cotes", "nquad", "odeint", "quad", "romb", "simpson", "solve_ivp", "tplquad",
    "trapezoid",
]

publish(globals(), __all__)
