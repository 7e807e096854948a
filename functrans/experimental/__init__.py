"""What jax.experimental has of the kind: errors as values, derivatives along curves, odeint,
sparse arrays."""

from functrans.core.errors import explain_missing_names
from functrans.experimental import checkify, jet, ode, sparse

__all__ = ["checkify", "jet", "ode", "sparse"]

explain_missing_names(globals())
