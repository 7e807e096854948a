"""Ordinary differential equations, under the names of jax.experimental.ode."""

from functrans.core.errors import publish
from functrans.scipy.integrate.adjoint import odeint

__all__ = ["odeint"]

publish(globals(), __all__)
