"""What jax.experimental has of the kind: derivatives of all orders along a curve."""

from functrans.core.errors import explain_missing_names
from functrans.experimental import jet

__all__ = ["jet"]

explain_missing_names(globals())
