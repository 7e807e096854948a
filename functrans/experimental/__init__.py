"""What jax.experimental has of the kind: errors as values, derivatives along curves."""

from functrans.core.errors import explain_missing_names
from functrans.experimental import checkify, jet

__all__ = ["checkify", "jet"]

explain_missing_names(globals())
