"""The primitives of programs, by JAX's names."""

from functrans.core.errors import explain_missing_names
from functrans.lax import primitive_names
from functrans.lax.primitive_names import *  # noqa: F403  every name of that list
from functrans.transforms.checkpoint import checkpoint_p as remat_p
from functrans.transforms.custom_jvp import custom_jvp_call_p
from functrans.transforms.custom_vjp import custom_vjp_call_p
from functrans.transforms.jit.primitive import jit_p

__all__ = [*primitive_names.__all__, "custom_jvp_call_p", "custom_vjp_call_p", "jit_p",
           "remat_p"]

explain_missing_names(globals())
