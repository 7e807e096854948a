"""What jax.experimental has of the kind: errors as values, derivatives along curves, odeint."""

from functrans.core.errors import explain_missing_names
from functrans.experimental import checkify, jet, ode

__all__ = ["checkify", "jet", "ode"]

explain_missing_names(globals())
