"""Integrals of functions and samples, and differential equations, named as in scipy.integrate."""

from functrans.core.errors import publish
from functrans.scipy.integrate.adaptive import fixed_quad, quad
from functrans.scipy.integrate.boundary import BvpResult, solve_bvp
from functrans.scipy.integrate.boxes import cubature, quad_vec
from functrans.scipy.integrate.dense import DenseOutput, OdeSolution
from functrans.scipy.integrate.double_exponential import nsum, tanhsinh
from functrans.scipy.integrate.equations import OdeResult, odeint, solve_ivp
from functrans.scipy.integrate.nested import dblquad, newton_cotes, nquad, tplquad
from functrans.scipy.integrate.objects import (
    IntegrationWarning,
    ODEintWarning,
    complex_ode,
    ode,
)
from functrans.scipy.integrate.sampled import QMCQuadResult, lebedev_rule, qmc_quad
from functrans.scipy.integrate.samples import (
    cumulative_simpson,
    cumulative_trapezoid,
    romb,
    simpson,
    trapezoid,
)
from functrans.scipy.integrate.steppers import BDF, DOP853, LSODA, RK23, RK45, OdeSolver, Radau

__all__ = [
    "BDF", "DOP853", "LSODA", "RK23", "RK45", "BvpResult", "DenseOutput", "IntegrationWarning",
    "ODEintWarning", "OdeResult", "OdeSolution", "OdeSolver", "QMCQuadResult", "Radau",
    "complex_ode", "cubature", "cumulative_simpson", "cumulative_trapezoid", "dblquad",
    "fixed_quad", "lebedev_rule", "newton_cotes", "nquad", "nsum", "ode", "odeint", "qmc_quad",
    "quad", "quad_vec", "romb", "simpson", "solve_bvp", "solve_ivp", "tanhsinh", "tplquad",
    "trapezoid",
]

publish(globals(), __all__)
