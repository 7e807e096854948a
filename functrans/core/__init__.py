"""The language: types, jaxprs, primitives, traces; the names that JAX has in `jax.core` are here.

The modules of this package are internal. What a user's program may need of them is here:

>>> import functrans as ft
>>> closed = ft.make_jaxpr(lambda x: 2 * x)(1.5)
>>> eval_jaxpr(closed.jaxpr, closed.consts, 4.0)[0].item()
8.0
"""

from functrans.core.avals import AbstractValue, ShapedArray, get_aval
from functrans.core.check import check_jaxpr
from functrans.core.dims import max_dim, min_dim
from functrans.core.errors import explain_missing_names
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    Literal,
    ParamDict,
    Value,
    Var,
    subjaxprs,
)
from functrans.core.trace import Trace, Tracer, ensure_compile_time_eval, eval_context

__all__ = ["AbstractValue", "Atom", "ClosedJaxpr", "Jaxpr", "Literal", "ParamDict", "ShapedArray",
           "Trace", "Tracer", "Value", "Var", "check_jaxpr", "ensure_compile_time_eval",
           "eval_context", "eval_jaxpr", "get_aval", "max_dim", "min_dim", "subjaxprs"]

explain_missing_names(globals())
