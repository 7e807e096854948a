"""What jax.example_libraries has: networks as pairs of functions, and optimizers as triples."""

from functrans.core.errors import explain_missing_names
from functrans.example_libraries import optimizers, stax

__all__ = ["optimizers", "stax"]

explain_missing_names(globals())
