"""What programs are made of, under the names of `jax.extend.core`.

>>> import functrans as ft
>>> closed = ft.make_jaxpr(lambda x: ft.numpy.sin(x) * 2)(0.0)
>>> [eqn.primitive.name for eqn in closed.jaxpr.eqns], jaxpr_as_fun(closed)(0.0)[0].item()
(['sin', 'mul'], 0.0)
"""

from functrans.core.check import check_jaxpr
from functrans.core.errors import (
    ConcretizationError as InconclusiveDimensionOperation,
)
from functrans.core.errors import (
    JaxprError as JaxprTypeError,
)
from functrans.core.errors import (
    publish,
)
from functrans.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from functrans.core.jaxpr import Equation as JaxprEqn
from functrans.core.jaxpr import jaxprs_in as jaxprs_in_params
from functrans.extend.core import primitives
from functrans.extend.programs import (
    AbstractToken,
    DropVar,
    Effect,
    Effects,
    TraceTag,
    array_types,
    call_impl,
    concrete_or_error,
    find_top_trace,
    gensym,
    get_opaque_trace_state,
    jaxpr_as_fun,
    mapped_aval,
    new_jaxpr_eqn,
    no_effects,
    nonempty_axis_env_DO_NOT_USE,
    primal_dtype_to_tangent_dtype,
    set_current_trace,
    subjaxprs,
    take_current_trace,
    unmapped_aval,
    unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype,
)
from functrans.extend.user_primitive import UserPrimitive as Primitive
from functrans.lax.tokens import Token

__all__ = ["AbstractToken", "ClosedJaxpr", "DropVar", "Effect", "Effects",
           "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal",
           "Primitive", "Token", "TraceTag", "Var", "array_types", "call_impl", "check_jaxpr",
           "concrete_or_error", "find_top_trace", "gensym", "get_opaque_trace_state",
           "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects",
           "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype", "primitives",
           "set_current_trace", "subjaxprs", "take_current_trace", "unmapped_aval",
           "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
           "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype"]

publish(globals(), __all__)
