"""Programs of functions, and less what nobody reads, as `jax.interpreters.partial_eval` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.convert import to_arrays
from functrans.core.errors import publish
from functrans.core.jaxpr import Jaxpr
from functrans.core.prune import prune_jaxpr, used_inputs
from functrans.core.staging import StageTracer as DynamicJaxprTracer
from functrans.core.staging import stage
from functrans.extend.linear_util import WrappedFun

__all__ = ["DynamicJaxprTracer", "dce_jaxpr", "trace_to_jaxpr_dynamic"]


def trace_to_jaxpr_dynamic(fun: WrappedFun, in_avals: Sequence[ShapedArray]
                           ) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a function of flat arrays, the types of its results, and its constants.

    >>> import functrans as ft
    >>> fun = ft.extend.linear_util.wrap_init(lambda x: [x * 2])
    >>> trace_to_jaxpr_dynamic(fun, [ft.typeof(1.5)])[0]
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    closed = stage(lambda *args: to_arrays(list(fun.call_wrapped(*args)), fun.__name__), in_avals,
                   name=fun.__name__)
    return closed.jaxpr, list(closed.out_avals), list(closed.consts)


def dce_jaxpr(jaxpr: Jaxpr, used_outputs: bool | Sequence[bool],
              instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, list[bool]]:
    """The program of some of its results, without the inputs that these do not need.

    Also, which inputs those are that are left; `instantiate` keeps inputs all the same.

    >>> import functrans as ft
    >>> jaxpr = ft.make_jaxpr(lambda x, y: (x + 1, y * 2))(1.0, 2.0).jaxpr
    >>> dce_jaxpr(jaxpr, [False, True])
    ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }, [False, True])
    """
    n = len(jaxpr.outvars)
    wanted = [used_outputs] * n if isinstance(used_outputs, bool) else list(used_outputs)
    kept = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else instantiate
    outs = tuple([v for v, w in zip(jaxpr.outvars, wanted, strict=True) if w])
    pruned = prune_jaxpr(jaxpr.replace(outvars=outs))
    used = [u or k for u, k in zip(used_inputs(pruned), kept, strict=True)]
    invars = tuple([v for v, u in zip(pruned.invars, used, strict=True) if u])
    return pruned.replace(invars=invars), used


publish(globals(), __all__)
