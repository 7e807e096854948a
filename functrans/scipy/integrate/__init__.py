"""Integrals of functions and samples, and differential equations, named as in scipy.integrate."""

from functrans.core.errors import publish
from functrans.scipy.integrate.adaptive import fixed_quad, quad
from functrans.scipy.integrate.equations import OdeResult, odeint, solve_ivp
from functrans.scipy.integrate.samples import (
    cumulative_simpson,
    cumulative_trapezoid,
    romb,
    simpson,
    trapezoid,
)

__all__ = [
    "OdeResult", "cumulative_simpson", "cumulative_trapezoid", "fixed_quad", "odeint", "quad",
    "romb", "simpson", "solve_ivp", "trapezoid",
]

publish(globals(), __all__)
