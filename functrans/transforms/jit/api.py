"""`jit`: trace a function once per type of its arguments, compile the jaxpr, and run that.

A call goes through the runtime's `JitFunction`: it flattens the arguments and looks the program up
without entering Python. What it does not know (first calls, calls under a trace, arguments that are
not plain containers of arrays) goes to `Calls.miss`. `jit(f).trace(*args)` and `lower(*args)` stop
before: they give the stages on the way to a compiled program (`stages`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload
from weakref import WeakSet

from functrans import _runtime
from functrans.core import config
from functrans.core.byte_text import bytes_of
from functrans.core.cells import cells_in_use
from functrans.core.errors import public
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.lowering.backend import backend_for
from functrans.transforms.constraints import sharded_function
from functrans.transforms.flat import adopt_attributes, check_callable, name_of
from functrans.transforms.jit.calls import Calls, Jitted
from functrans.transforms.jit.executables import forget_executables
from functrans.transforms.jit.pickled import reduce_jitted
from functrans.transforms.jit.sizes import NamedSizes
from functrans.transforms.jit.stages import Compiled, Lowered, Traced
from functrans.transforms.staged import aval_of
from functrans.transforms.static import StaticArguments

if TYPE_CHECKING:
    from functrans.typing import PyTree

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["Compiled", "Lowered", "Traced", "clear_caches", "forget_calls", "jit",
           "lower"]

if TYPE_CHECKING:
    class CompiledFunction(_runtime.JitFunction[P, R]):
        """What `jit` returns."""

        def trace(self, *args: PyTree, **kwargs: PyTree) -> Traced:
            """The program for arguments given as arrays or ShapeDtypeStructs."""

        def lower(self, *args: PyTree, **kwargs: PyTree) -> Lowered:
            """The same, ready to be compiled."""

        def eval_shape(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
            """The shapes and dtypes of the results, in their structure."""

        def clear_cache(self) -> None:
            """Forget all traces and programs of this function."""

    class JitDecorator(Protocol):
        """What `jit` without a function is: `@ft.jit(static_argnums=0)` above a function."""

        def __call__(self, fun: Callable[P, R], /) -> CompiledFunction[P, R]: ...

ArgNums: TypeAlias = int | Sequence[int] | None
ArgNames: TypeAlias = str | Sequence[str] | None

_functions: WeakSet[Any] = WeakSet()


@overload
def jit(fun: Callable[P, R], *, static_argnums: ArgNums = None, static_argnames: ArgNames = None,
        donate_argnums: ArgNums = None, donate_argnames: ArgNames = None, inline: bool = False,
        keep_unused: bool = False, require_inplace: bool = False,
        dynamic_shapes: Mapping[str | int, Any] | None = None,
        memory_limit: str | int | None = None, in_shardings: PyTree = None,
        out_shardings: PyTree = None) -> CompiledFunction[P, R]: ...


@overload
def jit(fun: None = None, *, static_argnums: ArgNums = None, static_argnames: ArgNames = None,
        donate_argnums: ArgNums = None, donate_argnames: ArgNames = None, inline: bool = False,
        keep_unused: bool = False, require_inplace: bool = False,
        dynamic_shapes: Mapping[str | int, Any] | None = None,
        memory_limit: str | int | None = None, in_shardings: PyTree = None,
        out_shardings: PyTree = None) -> JitDecorator: ...


def jit(fun: Callable[..., Any] | None = None, *, static_argnums: ArgNums = None,
        static_argnames: ArgNames = None, donate_argnums: ArgNums = None,
        donate_argnames: ArgNames = None, inline: bool = False, keep_unused: bool = False,
        require_inplace: bool = False, dynamic_shapes: Mapping[str | int, Any] | None = None,
        memory_limit: str | int | None = None, in_shardings: PyTree = None,
        out_shardings: PyTree = None) -> Callable[..., Any]:
    """`fun` compiled for each combination of structure, ranks and dtypes of its arguments.

    Arguments are pytrees of arrays; those named by `static_argnums` or `static_argnames` are
    hashable Python values, and the function is traced anew for each. `donate_argnums` lets the
    program reuse the memory of arguments: they cannot be used afterwards. `require_inplace` raises
    BackendError when an update, such as `x.at[i].set(y)`, needs a copy. `inline` puts the equations
    of a call inside another traced function into that function's program.

    The second size that an axis has gives a program for all sizes (`ft.config.dynamic_shapes`);
    `dynamic_shapes={"x": {0: "B"}}` asks for it at once and says which axes go together: arguments
    by name or position, for each the names of its axes, in the argument's structure if it has one.
    A name is text, an expression such as `"2*B"`, or a Dim (`ft.dim`) with bounds.
    `explain_retrace` says why a function was compiled again.

    `memory_limit="4GB"` is what arguments, results and temporaries may need: what is kept for the
    backward part is computed again until the program fits, and batches whose lanes do not mix are
    taken in chunks; sums are added up in another order then. MemoryLimitError names the line that
    does not fit. Calls inside another jitted function have the limit of that one.

    `in_shardings` and `out_shardings` say how arguments and results lie on the devices of a mesh:
    NamedShardings, PartitionSpecs over the mesh of the scope, None for as they come, or pytrees of
    these that are prefixes of the arguments and of the result (docs/guide/distributed.md).

    Without `fun`, returns a decorator. The result has `trace(*args)`, `lower(*args)`,
    `clear_cache()` and the original as `__wrapped__` (`functrans.stages`).
    Raises StaticArgumentError for an unhashable static argument, and whatever tracing raises.

    >>> import functrans as ft
    >>> @ft.jit
    ... def norm(x):
    ...     return ft.numpy.sqrt((x * x).sum())
    >>> float(norm(ft.numpy.array([3.0, 4.0])))
    5.0
    """
    options = {
        "static_argnums": static_argnums, "static_argnames": static_argnames,
        "donate_argnums": donate_argnums, "donate_argnames": donate_argnames, "inline": inline,
        "keep_unused": keep_unused, "require_inplace": require_inplace,
        "dynamic_shapes": dynamic_shapes, "memory_limit": memory_limit,
        "in_shardings": in_shardings, "out_shardings": out_shardings}
    if fun is None:
        return functools.partial(jit, **cast("Any", options))
    check_callable(fun, "jit")
    static = StaticArguments.of(fun, static_argnums, static_argnames)
    donate = static.positions(donate_argnums, donate_argnames, "donate_argnums")
    target = fun if in_shardings is None and out_shardings is None else sharded_function(
        fun, static.argnums, in_shardings, out_shardings, name_of(fun))
    calls = Calls(Jitted(target, name_of(fun), static, donate, inline, require_inplace,
                         NamedSizes(dynamic_shapes, static),
                         None if memory_limit is None else bytes_of(memory_limit)))
    call: Any = _runtime.JitFunction(calls.miss, static.argnums, static.argnames)
    adopt_attributes(call, fun)
    call.__name__ = calls.jitted.name
    call.calls = calls
    call._reduce = functools.partial(reduce_jitted, jit, fun, options)
    call.trace = public(functools.partial(_trace, calls))
    call.lower = public(functools.partial(_lower, calls))
    call.clear_cache = functools.partial(_clear, calls, call)
    call.eval_shape = public(functools.partial(_eval_shape, calls))
    _functions.add(call)
    compiled: CompiledFunction[..., Any] = call
    return compiled


def _clear(calls: Calls, call: Any) -> None:
    calls.traces.clear()
    call.cache_clear()


def clear_caches() -> None:
    """Forget all traces and compiled programs of all jitted functions.

    >>> f = ft.jit(lambda x: x + 1)
    >>> _ = f(1.0)
    >>> ft.clear_caches()
    >>> f(1.0).item()
    2.0
    """
    for call in list(_functions):
        call.clear_cache()
    forget_executables()


def forget_calls() -> None:
    """Let the next call of each jitted function enter Python, where it is recorded."""
    for call in list(_functions):
        call.cache_clear()


def lower(fun: Callable[..., Any], *args: PyTree, target: str | None = None,
          **kwargs: PyTree) -> Lowered:
    """`fun` traced for arguments given as arrays or ShapeDtypeStructs, ready to be compiled.

    The target is `"cpu"`, or `"cuda:90"` with the compute capability of GPUs (here Hopper's), which
    need not be there: `.compile()` gives a program whose `as_text()`, `kernels`, `cost_analysis()`
    and `memory_analysis()` say what is to be known, and which runs on such GPUs. Without a target
    it is compiled for where calls would run. Raises BackendError for an unknown target, and
    whatever tracing raises.

    >>> import functrans as ft
    >>> x = ft.ShapeDtypeStruct((8, 8), "float32")
    >>> lowered = ft.lower(lambda x: ft.numpy.tanh(x) + 1, x, target="cpu")
    >>> print(lowered.jaxpr.eqns[0].primitive.name)
    tanh
    >>> lowered.compile().memory_analysis()["outputs"]
    256
    """
    jitted: Any = fun if isinstance(fun, _runtime.JitFunction) else jit(fun)
    if target is not None:
        kwargs["target"] = target
    lowered: Lowered = jitted.lower(*args, **kwargs)
    return lowered


def _lower(calls: Calls, *args: Any, **kwargs: Any) -> Lowered:
    return _trace(calls, *args, **kwargs).lower()


def _trace(calls: Calls, *args: Any, **kwargs: Any) -> Traced:
    """Trace for arguments given as arrays or ShapeDtypeStructs.

    A `target` that is text, which no argument of a compiled function can be, is ours.
    """
    if not isinstance(kwargs.get("target"), str):
        return _traced_for(calls, args, kwargs)
    target: str = kwargs.pop("target")
    with config.scope(backend=backend_for(target)):
        return _traced_for(calls, args, kwargs)


def _traced_for(calls: Calls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    if not cells_in_use():
        return _pure_trace(calls, args, kwargs)
    traced, call, cells = calls.with_cells().trace(
        lambda of, given: _pure_trace(of or calls, *given), args, kwargs)
    if cells or call.given:
        traced.touched = calls, cells
    return traced


def _pure_trace(calls: Calls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    (dynamic, keywords), fixed = calls.jitted.static.split(args, kwargs)
    leaves, tree = tree_flatten((dynamic, keywords))
    avals, traces = tuple(map(aval_of, leaves)), calls.traces
    traced = traces.for_names(avals, tree, fixed) or traces.for_types(avals, tree, fixed)
    calls.jitted.note_donated(traced, args)
    return Traced(calls, traced, tree, fixed, [a.shape for a in avals])


def _eval_shape(calls: Calls, *args: Any, **kwargs: Any) -> Any:
    traced = _trace(calls, *args, **kwargs)
    found = tree_unflatten(traced.out_tree, list(traced.program.jaxpr.out_avals))
    return found if traced.touched is None else found[0]
