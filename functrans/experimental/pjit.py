"""`jax.experimental.pjit`: jit, whose arguments may be divided over devices."""

from functrans.core.errors import explain_missing_names
from functrans.transforms.constraints import with_sharding_constraint
from functrans.transforms.jit.api import jit

pjit = jit

__all__ = ["pjit", "with_sharding_constraint"]

explain_missing_names(globals())
