"""Functions about jaxprs, types and the current trace that `jax.extend.core` has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np

from functrans.array import Array
from functrans.core import dtypes
from functrans.core.avals import AbstractValue, ShapedArray
from functrans.core.axes import bound_axes
from functrans.core.convert import to_array
from functrans.core.dims import Size
from functrans.core.errors import ConcretizationError, NonArrayError
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Var
from functrans.core.jaxpr import subjaxprs as bodies_of
from functrans.core.primitive import Primitive as AnyPrimitive
from functrans.core.source import Source, user_source
from functrans.core.staging import StageTrace
from functrans.core.trace import Trace, Tracer, get_trace, set_trace
from functrans.extend.linear_util import WrappedFun
from functrans.transforms.batching import BatchTrace
from functrans.transforms.tangents import tangent_aval

__all__ = ["AbstractToken", "DropVar", "Effect", "Effects", "TraceTag", "array_types", "call_impl",
           "concrete_or_error", "find_top_trace", "gensym", "get_opaque_trace_state",
           "jaxpr_as_fun", "mapped_aval", "new_jaxpr_eqn", "no_effects",
           "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype", "set_current_trace",
           "subjaxprs", "take_current_trace", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
           "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE",
           "valid_jaxtype"]


class Effect:
    """What an operation does besides giving results; operations of users have none.

    >>> sin = ft.make_jaxpr(jnp.sin)(1.0).eqns[0]
    >>> isinstance(sin, ft.extend.core.Effect), ft.extend.core.no_effects
    (False, frozenset())
    """


class TraceTag:
    """A name that no other trace has.

    >>> ft.extend.core.TraceTag() == ft.extend.core.TraceTag()
    False
    """


class DropVar(Var):
    """A result that nobody reads, in JAX; here it is a variable as any other.

    >>> issubclass(ft.extend.core.DropVar, ft.extend.core.Var)
    True
    """


class AbstractToken(AbstractValue):
    """The type of a token. Tokens are pytrees of arrays, which have types of their own.

    >>> isinstance(ft.typeof(jnp.ones(1)), ft.extend.core.AbstractToken)
    False
    """


Effects = AbstractSet[Effect]
no_effects: frozenset[Effect] = frozenset()
array_types: frozenset[type] = frozenset({
    Array, np.ndarray, *(np.dtype(t).type for t in "?bBhHiIqQefdFD"), ml_dtypes.bfloat16})


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function from a program's arguments to the list of its results.

    >>> closed = ft.make_jaxpr(lambda x: (x + 1, x * 2))(1.0)
    >>> [float(y) for y in ft.extend.core.jaxpr_as_fun(closed)(3.0)]
    [4.0, 6.0]
    """
    return functools.partial(eval_jaxpr, closed_jaxpr.jaxpr, closed_jaxpr.consts)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The bodies of all operations of a program.

    >>> closed = ft.make_jaxpr(lambda x: ft.lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0)
    >>> len(list(ft.extend.core.subjaxprs(closed.jaxpr)))
    2
    """
    for eqn in jaxpr.eqns:
        yield from bodies_of(eqn)


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type.

    >>> new = ft.extend.core.gensym()
    >>> new(ft.typeof(1.0)) is new(ft.typeof(1.0))
    False
    """
    return Var


def new_jaxpr_eqn(invars: Sequence[Atom], outvars: Sequence[Var], primitive: AnyPrimitive,
                  params: Mapping[str, Any], effects: Effects = no_effects,
                  source_info: Source | None = None, ctx: None = None) -> Equation:
    """An equation; the effects are those of its primitive.

    >>> sin = ft.make_jaxpr(jnp.sin)(1.0).eqns[0]
    >>> ft.extend.core.new_jaxpr_eqn(sin.invars, sin.outvars, sin.primitive, sin.params).primitive
    sin
    """
    return Equation(primitive, tuple(invars), tuple(outvars), dict(params), source_info)


def mapped_aval(size: Size, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one lane of a value that is mapped along an axis.

    >>> ft.extend.core.mapped_aval(3, 0, ft.typeof(jnp.ones((3, 4))))
    ShapedArray(f32[4])
    """
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], *aval.shape[axis + 1:]))


def unmapped_aval(size: Size, axis: int | None, aval: ShapedArray,
                  explicit_mesh_axis: None = None) -> ShapedArray:
    """The type of a value whose lanes along a new axis have a type.

    >>> ft.extend.core.unmapped_aval(3, 0, ft.typeof(jnp.ones(4)))
    ShapedArray(f32[3,4])
    """
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> np.dtype[Any]:
    """The dtype of tangents: float0 of what is not differentiated.

    >>> ft.extend.core.primal_dtype_to_tangent_dtype(np.dtype("float32"))
    dtype('float32')
    """
    return tangent_aval(ShapedArray((), dtypes.as_dtype(primal_dtype))).dtype


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array, a tracer or a number.

    >>> ft.extend.core.valid_jaxtype(1.5), ft.extend.core.valid_jaxtype("text")
    (True, False)
    """
    try:
        to_array(x, "valid_jaxtype")
    except NonArrayError:
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """`force(val)` of a value that is known, or itself; else raises ConcretizationError.

    >>> ft.extend.core.concrete_or_error(int, 3, "n has to be known")
    3
    """
    if isinstance(val, Tracer):
        if val.concrete is None:
            raise ConcretizationError(f"the value of a {val.aval} is not known. {context}".strip(),
                                      where=user_source(), fix="an argument that is static")
        val = val.concrete
    return val if force is None else force(val)


def call_impl(f: WrappedFun, *args: Any, **params: Any) -> Any:
    """The results of a function within its transformations.

    >>> from functrans.extend import linear_util
    >>> ft.extend.core.call_impl(linear_util.wrap_init(lambda x: x * 2), 3.0)
    6.0
    """
    return f.call_wrapped(*args, **params)


# --- the current trace


def find_top_trace(_: Any = None) -> Trace | None:
    """The current trace; None where operations are evaluated.

    >>> ft.extend.core.find_top_trace() is None
    True
    """
    trace: Trace | None = get_trace()
    return trace


@contextmanager
def set_current_trace(trace: Trace | None, check_leaks: bool = False) -> Iterator[Trace | None]:
    """Context manager: operations are interpreted by a trace.

    >>> with ft.extend.core.set_current_trace(None):
    ...     jnp.sin(0.0).item()
    0.0
    """
    outer = set_trace(trace)
    try:
        yield trace
    finally:
        set_trace(outer)


@contextmanager
def take_current_trace() -> Iterator[Trace | None]:
    """Context manager: the trace that was current, while operations are evaluated.

    >>> def f(x):
    ...     with ft.extend.core.take_current_trace():
    ...         y = jnp.sin(0.0)             # computed now: the program has it as a number
    ...     return x + y
    >>> ft.jit(f)(1.0).item()
    1.0
    """
    outer = set_trace(None)
    try:
        yield outer
    finally:
        set_trace(outer)


def get_opaque_trace_state(convention: str | None = None) -> Any:
    """A value that is equal to another one of the same trace, mapped axes and nothing else.

    >>> ask = ft.extend.core.get_opaque_trace_state
    >>> seen = []
    >>> _ = ft.jit(lambda x: seen.append(ask()) or x)(1.0)
    >>> ask() == ask(), seen[0] == ask()
    (True, False)
    """
    return (get_trace(), bound_axes())


def _traces() -> Iterator[Trace]:
    trace = get_trace()
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether operations become a program, of `jit` or of another function that stages.

    >>> ask = ft.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE
    >>> seen = []
    >>> _ = ft.jit(lambda x: seen.append(ask()) or x)(1.0)
    >>> seen, ask()
    ([True], False)
    """
    return any(isinstance(t, StageTrace) for t in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether operations are mapped by `vmap`.

    >>> ask = ft.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE
    >>> seen = []
    >>> _ = ft.vmap(lambda x: seen.append(ask()) or x)(jnp.ones(2))
    >>> seen, ask()
    ([True], False)
    """
    return any(isinstance(t, BatchTrace) for t in _traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes that `vmap` maps here.

    >>> seen = []
    >>> ask = ft.extend.core.unsafe_get_axis_names_DO_NOT_USE
    >>> _ = ft.vmap(lambda x: seen.extend(ask()) or x, axis_name="i")(jnp.ones(2))
    >>> seen
    ['i']
    """
    return [t.axis.name for t in _traces()
            if isinstance(t, BatchTrace) and t.axis.name is not None]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether there is an axis that `vmap` maps.

    >>> ft.extend.core.nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(bound_axes())
