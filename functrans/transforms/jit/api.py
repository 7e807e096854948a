"""`jit`: trace a function once per type of its arguments, compile the jaxpr, and run that.

A call goes through the runtime's `JitFunction`: it flattens the arguments and looks the program up
without entering Python. What it does not know (first calls, calls under a trace, arguments that are
not plain containers of arrays) goes to `Calls.miss`. `jit(f).lower(*args)` stops before: it gives a
traced function (`Lowered`), and that the program that it compiles to (`Compiled`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, overload
from weakref import WeakSet

import numpy as np

from functrans import _runtime
from functrans.core import config
from functrans.core.byte_text import bytes_of
from functrans.core.dims import Shape, Size, is_static
from functrans.core.errors import ArgumentError, public
from functrans.core.jaxpr import Jaxpr
from functrans.core.sizes import shape_names
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, tree_flatten, tree_unflatten
from functrans.lowering.backend import Executable, backend_for
from functrans.transforms.flat import adopt_attributes, check_callable, flatten_args, name_of
from functrans.transforms.jit.calls import Calls, Jitted, Traced
from functrans.transforms.jit.executables import forget_executables
from functrans.transforms.jit.fitting import fitted, in_fewer, limits_of
from functrans.transforms.jit.sizes import NamedSizes, SizedShapes
from functrans.transforms.staged import aval_of
from functrans.transforms.static import StaticArguments

if TYPE_CHECKING:
    from functrans.typing import PyTree

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["Compiled", "Lowered", "clear_caches", "jit", "lower"]

if TYPE_CHECKING:
    class CompiledFunction(_runtime.JitFunction[P, R]):
        """What `jit` returns."""

        lower: Callable[..., Lowered]

ArgNums: TypeAlias = int | Sequence[int] | None
ArgNames: TypeAlias = str | Sequence[str] | None

_functions: WeakSet[Any] = WeakSet()


@overload
def jit(fun: Callable[P, R], *, static_argnums: ArgNums = None, static_argnames: ArgNames = None,
        donate_argnums: ArgNums = None, donate_argnames: ArgNames = None, inline: bool = False,
        keep_unused: bool = False, require_inplace: bool = False,
        dynamic_shapes: Mapping[str | int, Any] | None = None,
        memory_limit: str | int | None = None
        ) -> CompiledFunction[P, R]: ...


@overload
def jit(fun: None = None, *, static_argnums: ArgNums = None, static_argnames: ArgNames = None,
        donate_argnums: ArgNums = None, donate_argnames: ArgNames = None, inline: bool = False,
        keep_unused: bool = False, require_inplace: bool = False,
        dynamic_shapes: Mapping[str | int, Any] | None = None,
        memory_limit: str | int | None = None
        ) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...


def jit(fun: Callable[..., Any] | None = None, *, static_argnums: ArgNums = None,
        static_argnames: ArgNames = None, donate_argnums: ArgNums = None,
        donate_argnames: ArgNames = None, inline: bool = False, keep_unused: bool = False,
        require_inplace: bool = False, dynamic_shapes: Mapping[str | int, Any] | None = None,
        memory_limit: str | int | None = None) -> Callable[..., Any]:
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

    Without `fun`, returns a decorator. The result has `lower(*args)`, `clear_cache()` and the
    original as `__wrapped__`.
    Raises StaticArgumentError for an unhashable static argument, and whatever tracing raises.

    >>> import functrans as ft
    >>> @ft.jit
    ... def norm(x):
    ...     return ft.numpy.sqrt((x * x).sum())
    >>> float(norm(ft.numpy.array([3.0, 4.0])))
    5.0
    """
    if fun is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames,
            donate_argnums=donate_argnums, donate_argnames=donate_argnames, inline=inline,
            keep_unused=keep_unused, require_inplace=require_inplace,
            dynamic_shapes=dynamic_shapes, memory_limit=memory_limit)
    check_callable(fun, "jit")
    static = StaticArguments.of(fun, static_argnums, static_argnames)
    donate = static.positions(donate_argnums, donate_argnames, "donate_argnums")
    calls = Calls(Jitted(fun, name_of(fun), static, donate, inline, require_inplace,
                         NamedSizes(dynamic_shapes, static),
                         None if memory_limit is None else bytes_of(memory_limit)))
    call: Any = _runtime.JitFunction(calls.miss, static.argnums, static.argnames)
    adopt_attributes(call, fun)
    call.__name__ = calls.jitted.name
    call.calls = calls
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
    """Forget all traces and compiled programs of all jitted functions."""
    for call in list(_functions):
        call.clear_cache()
    forget_executables()


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
    jitted = fun if isinstance(fun, _runtime.JitFunction) else jit(fun)
    if target is not None:
        kwargs["target"] = target
    lowered: Lowered = jitted.lower(*args, **kwargs)
    return lowered


def _lower(calls: Calls, *args: Any, **kwargs: Any) -> Lowered:
    """Trace for arguments given as arrays or ShapeDtypeStructs.

    A `target` that is text, which no argument of a compiled function can be, is ours.
    """
    if not isinstance(kwargs.get("target"), str):
        return _traced_for(calls, args, kwargs)
    target: str = kwargs.pop("target")
    with config.scope(backend=backend_for(target)):
        return _traced_for(calls, args, kwargs)


def _traced_for(calls: Calls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    (dynamic, keywords), fixed = calls.jitted.static.split(args, kwargs)
    leaves, tree = tree_flatten((dynamic, keywords))
    avals, traces = tuple(map(aval_of, leaves)), calls.traces
    traced = traces.for_names(avals, tree, fixed) or traces.for_types(avals, tree, fixed)
    calls.jitted.note_donated(traced, args)
    return Lowered(calls, traced, tree, fixed, [a.shape for a in avals])


def _eval_shape(calls: Calls, *args: Any, **kwargs: Any) -> Any:
    lowered = _lower(calls, *args, **kwargs)
    return tree_unflatten(lowered.out_tree, list(lowered.jaxpr.out_avals))


# --- before and after compilation


class Lowered:
    """A traced function before compilation; `shapes` are those of the arguments at hand."""

    def __init__(self, calls: Calls, traced: Traced, in_tree: PyTreeDef, fixed: Any,
                 shapes: Sequence[Shape]) -> None:
        self._calls = calls
        self._traced = traced
        self._in_tree = in_tree
        self._fixed = fixed
        self._shapes = [*map(np.shape, traced.consts), *shapes]
        self._backend = config.current().backend

    @property
    def jaxpr(self) -> Jaxpr:
        return self._traced.jaxpr

    @property
    def out_tree(self) -> PyTreeDef:
        return self._traced.out_tree

    @property
    def in_tree(self) -> PyTreeDef:
        return self._in_tree

    @property
    def backend(self) -> str:
        """The name of the backend that compiles it; `auto` is decided by where arguments are."""
        return self._backend

    @property
    def limits(self) -> dict[str, Any]:
        """The settings of the memory that it may need."""
        return limits_of(self._calls.jitted, self._traced)

    def in_fewer(self) -> Iterator[Lowered]:
        """The same, with batches that ask for it in more and more chunks."""
        for traced in in_fewer(self._traced) if self._traced.asks_chunks else ():
            found = copy(self)
            found._traced = traced
            yield found

    @property
    def donated(self) -> frozenset[int]:
        """The inputs of the jaxpr, by number, whose memory the caller gives away."""
        return self._traced.donated

    def cost_analysis(self) -> dict[str, Size]:
        """That of the compiled program."""
        return self.compile().cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        """That of the compiled program."""
        return self.compile().memory_analysis()

    def inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The inputs of the jaxpr for these arguments: constants of the trace come first."""
        (dynamic, keywords), _ = self._calls.jitted.static.split(args, kwargs)
        return [*self._traced.consts, *tree_flatten((dynamic, keywords))[0]]

    def without_donation(self) -> Lowered:
        """The same, of programs that leave the memory of all arguments alone."""
        traced = copy(self._traced)
        traced.donated = frozenset()
        found = copy(self)
        found._traced = traced
        return found

    def compiled_by(self, backend: str) -> Lowered:
        """The same, for a backend whose name is given."""
        found = copy(self)
        found._backend = backend
        return found

    def as_text(self) -> str:
        """The jaxpr as text."""
        return str(self._traced.jaxpr)

    def compile(self) -> Compiled:
        """Make the program ready to run."""
        with config.scope(backend=self._backend):
            compiled = Compiled(self._calls, self._traced, self._in_tree, self._fixed)
            self._at_hand(compiled.executable)
            return compiled

    def executable(self) -> Executable:
        """What the backend makes: for the sizes at hand, where each set of sizes has its own."""
        with config.scope(backend=self._backend):
            return self._at_hand(self.compile().executable)

    def _at_hand(self, executable: Executable) -> Executable:
        if shape_names(self._shapes):
            return executable
        return executable.at([tuple(map(int, shape)) for shape in self._shapes])


class Compiled:
    """A program for arguments of one structure, shapes and dtypes."""

    def __init__(self, calls: Calls, traced: Traced, in_tree: PyTreeDef, fixed: Any) -> None:
        self._calls = calls
        self._traced = traced
        self._in_tree = in_tree
        self._fixed = fixed
        self._settings = config.current()
        self._traced, self._executable = fitted(calls.jitted, traced)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        (dynamic, keywords), fixed = self._calls.jitted.static.split(args, kwargs)
        leaves, tree = flatten_args((dynamic, keywords), "compiled function", keywords=True)
        if tree != self._in_tree or fixed != self._fixed:
            raise ArgumentError(f"compiled for arguments of structure {self._in_tree}, called with "
                                f"{tree}.", where=user_source(), fix="call the jitted function")
        avals = self._traced.jaxpr.in_avals[len(self._traced.consts):]
        self._check_sizes([a.shape for a in avals], [x.shape for x in leaves])
        for i, (x, a) in enumerate(zip(leaves, avals, strict=True)):
            if x.dtype != a.dtype or (x.shape != a.shape and is_static((*x.shape, *a.shape))):
                raise ArgumentError(f"compiled for a {a} as leaf {i} of the arguments, called with "
                                    f"a {x.aval}.", where=user_source(),
                                    fix="call the jitted function, which compiles again")
        # the program that was compiled, whatever the settings are by now
        with config.scope(backend=self._settings.backend, algebra=self._settings.algebra,
                          matmul_precision=self._settings.matmul_precision,
                          deterministic=self._settings.deterministic,
                          autotune=self._settings.autotune):
            return self._calls.apply(None, self._traced, leaves, None)

    def _check_sizes(self, mine: Sequence[Any], shapes: Sequence[Any]) -> None:
        if not shape_names(mine):
            return
        sized = SizedShapes(tuple(mine), self._traced.guards)
        sizes = sized.sizes(shapes)
        broken = None if sizes is None else sized.broken(sizes)
        if sizes is None or broken is not None:
            said = "" if broken is None else f" ({broken})"
            raise ArgumentError(f"compiled for shapes {mine}{said}; called with {list(shapes)}.",
                                where=user_source(),
                                fix="call the jitted function, which compiles again")

    @property
    def executable(self) -> Executable:
        """What the backend made."""
        return self._executable

    def as_text(self) -> str:
        """The program in the backend's own terms."""
        return self._executable.as_text()

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of a program for GPUs, as frozen records; empty for the CPU.

        A record has the `name` of a kernel, the user's `lines` that it computes, its `grid`,
        `launches`, `warps`, `stages`, bytes of `shared` memory, `registers` and `spills` of a
        thread, and as texts and bytes Triton's `text`, `ptx`, `cubin` and `sass`.
        """
        return self._executable.kernels

    def cost_analysis(self) -> dict[str, Size]:
        """`flops` and `bytes accessed` of one run."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        """Bytes of arguments, outputs, temporaries, and at the peak.

        Of the outputs, `donated` are in the memory of arguments that were given away.
        """
        return self._executable.memory_analysis()
