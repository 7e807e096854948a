"""`jit`: trace a function once per type of its arguments, compile the jaxpr, and run that.

A call goes through the runtime's `JitFunction`: it flattens the arguments and looks the program up
without entering Python. `JitState.miss` below handles what it does not know: first calls, calls
under a trace, and arguments that are not plain containers of arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase, get_trace, wrap
from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.axes import MappedAxis, bound_axes
from functrans.core.compiling import for_compiler
from functrans.core.cuda import gpu_of
from functrans.core.dims import Size, deciding, is_static
from functrans.core.dtypes import float0
from functrans.core.errors import ArgumentError, public
from functrans.core.evaluate import eval_jaxpr
from functrans.core.guards import Guard, sizes_decided
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder, Linear
from functrans.core.sizes import shape_names
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.core.tree import PyTreeDef, tree_flatten, tree_unflatten
from functrans.lowering.backend import (
    Executable,
    SizedBackend,
    backend_for,
    compile_for,
    get_backend,
)
from functrans.transforms.batching import front
from functrans.transforms.dynamic import Attempt, Family, SizedShapes, trace_sized
from functrans.transforms.flat import FlatFunction, check_callable, flatten_args, name_of
from functrans.transforms.named_sizes import NamedSizes
from functrans.transforms.retrace import Compilation
from functrans.transforms.staged import aval_of
from functrans.transforms.static import StaticArguments

__all__ = ["Compiled", "Lowered", "clear_caches", "executable_of", "jit", "jit_p",
           "lower"]


class Jit(HigherOrder):
    """A program compiled as a unit."""

    compiles = True

    def type(self, *avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return list(jaxpr.out_avals)

    def called(self, operands: Sequence[Any], *, jaxpr: Jaxpr,
               **params: Any) -> tuple[Jaxpr, Sequence[Any]]:
        return jaxpr, operands

    def evaluate(self, *arrays: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        return executable_of(jaxpr).run([np.asarray(a) for a in arrays])

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        jaxpr = params["jaxpr"]
        run = executable_of(jaxpr, values=args).run
        if isinstance(run, _runtime.CudaProgram):  # on arrays where they are
            outs = run(list(args))
            return [_wrapped(o, a.weak_type) for o, a in zip(outs, jaxpr.out_avals, strict=True)]
        return super().evaluate_eagerly(args, params)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[Any]]:
        pushed, nonzero = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
        outs = self.bind(*primals, *[t for t in tangents if t is not None], jaxpr=pushed, **params)
        n = len(jaxpr.outvars)
        rest = iter(outs[n:])
        return outs[:n], [next(rest) if nz else None for nz in nonzero]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[Any]]:
        split = linearize_jaxpr(jaxpr, [t is not None for t in tangents])
        n = len(jaxpr.outvars)
        outs = self.bind(*primals, jaxpr=split.primal, **params)
        residuals = split.residuals(primals, outs[n:])
        results = iter(self.bind(*residuals, *[t for t in tangents if t is not None],
                                 jaxpr=split.linear, **params))
        return outs[:n], [next(results) if nz else None for nz in split.nonzero]

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, jaxpr: Jaxpr,
                  **params: Any) -> list[Any]:
        linear = [isinstance(x, Linear) for x in operands]
        back = transpose_jaxpr(jaxpr, linear, [ct is not None for ct in cts])
        results = iter(self.bind(*[x for x in operands if not isinstance(x, Linear)],
                                 *[ct for ct in cts if ct is not None], jaxpr=back, **params))
        return [next(results) if lin else None for lin in linear]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[int | None]]:
        with for_compiler(_compiles()):
            mapped, out_batched = batch_jaxpr(jaxpr, axis, [a is not None for a in axes])
        outs = self.bind(*front(operands, axes), jaxpr=mapped, **params)
        return outs, [0 if b else None for b in out_batched]


def _compiles() -> bool:
    return config.current().backend != "reference"


def _wrapped(out: Any, weak: bool) -> Any:
    """A result as an Array; on a GPU it is one, but for the weak type."""
    if isinstance(out, ArrayBase):
        return _runtime.with_weak_type(out, weak)
    return wrap(out, weak)


def constants_for(execute: Any, consts: Sequence[Any]) -> list[Any]:
    """The constants of a trace where the program is: they go to a device once, not at each call."""
    if isinstance(execute, _runtime.CudaProgram):
        return [_runtime.place_array(x if isinstance(x, ArrayBase) else wrap(np.array(x)),
                                     execute.device + 1) for x in consts]
    return [x._np if isinstance(x, ArrayBase) else np.asarray(x) for x in consts]


jit_p = Jit()

_executables: WeakKeyDictionary[Jaxpr, dict[Any, Executable]] = WeakKeyDictionary()


def executable_of(jaxpr: Jaxpr, donated: frozenset[int] = frozenset(),
                  require_inplace: bool = False, values: Sequence[Any] = ()) -> Executable:
    """The compiled form of a jaxpr for the device of some values, made once."""
    known = _executables.setdefault(jaxpr, {})
    settings = config.current()
    backend = settings.backend
    gpu = gpu_of(values) if backend in ("auto", "triton") else None
    if backend == "auto":
        backend = "c" if gpu is None else "triton"
    key = (backend, settings.algebra, settings.matmul_precision, settings.deterministic,
           settings.autotune, donated, require_inplace)
    if key not in known:
        with sizes_decided(None):  # sizes of other programs are not those of a trace that runs
            known[key] = compile_for(get_backend(backend), jaxpr, donated, require_inplace)
    if not gpu:
        return known[key]
    if (key, gpu) not in known:
        known[key, gpu] = known[key].on(gpu)
    return known[key, gpu]


def operation_on_gpu(jaxpr: Jaxpr, gpu: int) -> Executable:
    """A program on a GPU whose machine code is also that of other sizes; the caller keeps it."""
    backend: SizedBackend = get_backend("triton")  # type: ignore[assignment]
    executable = backend.compile_for_sizes(jaxpr)
    return executable.on(gpu) if gpu else executable


class Traced:
    """What one trace of a function gave."""

    __slots__ = ("closed_over_tracers", "consts", "donated", "guards", "jaxpr", "out_tree")

    def __init__(self, fun: Callable[..., Any], tree: PyTreeDef, avals: Sequence[ShapedArray],
                 name: str) -> None:
        flat = FlatFunction(lambda args, kwargs: fun(*args, **kwargs), tree, {}, "jit")
        with for_compiler(_compiles()):
            closed = stage(flat, avals, name=name)
        self.consts = closed.consts
        self.jaxpr = closed.jaxpr.hoist_consts()
        self.out_tree: PyTreeDef = flat.out_tree
        self.donated: frozenset[int] = frozenset()
        self.guards: tuple[Guard, ...] = ()
        self.closed_over_tracers = any(isinstance(c, Tracer) for c in closed.consts)


MOST_SIGNATURES = 4096
"""How many sets of sizes are looked up without Python, before they are forgotten."""


class JitState:
    """A jitted function's traces and what to do on calls that the runtime does not know."""

    def __init__(self, fun: Callable[..., Any], static: StaticArguments, donate: tuple[int, ...],
                 inline: bool, require_inplace: bool, dynamic_shapes: Any = None) -> None:
        self.require_inplace = require_inplace
        self.fun = fun
        self.static = static
        self.donate = donate
        self.inline = inline
        self.name = name_of(fun)
        self.named = NamedSizes(dynamic_shapes, static)
        self.traces: dict[Any, Traced] = {}
        self.families: dict[Any, Family] = {}
        self.history: list[Compilation] = []

    def trace(self, leaves: Sequence[Any], tree: PyTreeDef, fixed: Any, failure: str = "",
              merged: tuple[Guard, ...] = ()) -> Traced:
        """The trace for arguments of exactly these types."""
        avals = tuple([aval_of(x) for x in leaves])
        key = self.key(avals, tree, fixed)
        known = self.traces.get(key)
        if known is None:
            known = Traced(self.static.restore(self.fun, fixed), tree, avals, self.name)
            if not known.closed_over_tracers:
                self.traces[key] = known
                self.record(avals, tree, fixed, SizedShapes(tuple([a.shape for a in avals])),
                            merged, failure)
        return known

    def key(self, avals: tuple[ShapedArray, ...], tree: PyTreeDef, fixed: Any) -> Any:
        # what a trace decides on sizes is a guard of the program that it becomes a part of
        scope = None if all(a.is_static for a in avals) else deciding.scope
        return (tree, avals, fixed, bound_axes(), config.current(), scope)

    def program(self, args: tuple[Any, ...], leaves: Sequence[Any], tree: PyTreeDef,
                fixed: Any) -> Traced:
        """The trace for a call with arrays: one for all their sizes where that can be."""
        settings = config.current()
        avals = tuple([aval_of(x) for x in leaves])
        shapes = tuple([a.shape for a in avals])
        named = self.named.of_call(self.name, tree, shapes) if self.named else {}
        auto = settings.dynamic_shapes == "auto" and _for_cpu(settings.backend, leaves)
        if not named and not auto:
            return self.trace(leaves, tree, fixed)
        kinds = tuple([(a.dtype, a.weak_type, a.ndim) for a in avals])
        family = self.families.setdefault((tree, kinds, fixed, bound_axes(), settings), Family())
        known: Traced | None = self.traces.get(self.key(avals, tree, fixed))
        known = known or family.program(shapes)
        if known is not None:
            return known
        attempt, failure = Attempt(shapes), ""
        symbolic = family.symbolic(shapes, named, auto)
        if shape_names(symbolic):
            try:
                attempt = self.sized(avals, tree, fixed, symbolic)
                if attempt.traced is not None and not self.compiles(attempt.traced, args, leaves):
                    attempt, failure = Attempt(shapes), "the backend compiles it for known sizes"
            except Exception as error:  # what fails for names may work for ints
                attempt = Attempt(shapes, merged=attempt.merged, needed=attempt.needed)
                failure = f"{type(error).__name__}: {error}".partition("\n")[0]
        family.fixed |= attempt.needed
        family.saw(shapes)
        if attempt.traced is None:
            traced = self.trace(leaves, tree, fixed, failure, attempt.merged)
            if failure:  # of names only: ints did not fail
                family.fixed.update((leaf, axis) for leaf, shape in enumerate(symbolic)
                                    for axis, n in enumerate(shape) if not isinstance(n, int))
            return traced
        sized = SizedShapes(attempt.shapes, attempt.guards)
        family.programs.insert(0, (sized, attempt.traced))
        self.record(avals, tree, fixed, sized, attempt.merged)
        return attempt.traced  # type: ignore[no-any-return]

    def sized(self, avals: Sequence[ShapedArray], tree: PyTreeDef, fixed: Any,
              symbolic: tuple[Any, ...]) -> Attempt:
        """The function traced for named sizes, with those of a call as hints."""
        fun = self.static.restore(self.fun, fixed)
        attempt = trace_sized(lambda types: Traced(fun, tree, types, self.name), avals, symbolic)
        if attempt.traced is not None and attempt.traced.closed_over_tracers:
            return Attempt(attempt.shapes)
        if attempt.traced is not None:
            attempt.traced.guards = attempt.guards
        return attempt

    def compiles(self, traced: Traced, args: tuple[Any, ...], leaves: Sequence[Any]) -> bool:
        """Whether a program of named sizes compiles to machine code where programs do."""
        self.note_donated(traced, args)
        executable = executable_of(traced.jaxpr, traced.donated, self.require_inplace, leaves)
        return isinstance(executable.run, _runtime.Program) or not traced.jaxpr.eqns \
            or not _for_cpu(config.current().backend, leaves)

    def record(self, avals: tuple[ShapedArray, ...], tree: PyTreeDef, fixed: Any,
               sized: SizedShapes, merged: tuple[Guard, ...] = (), failure: str = "") -> None:
        self.history.append(Compilation(tree, fixed, avals, bound_axes(), config.current(), sized,
                                        self.named.argument, user_source(), merged, failure))

    def miss(self, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Any:
        if config.current().disable_jit:
            return self.fun(*args, **kwargs)
        (dynamic, keywords), fixed = self.static.split(args, kwargs)
        leaves, tree = self.flatten(dynamic, keywords)
        if get_trace() is None and not any(isinstance(x, Tracer) for x in leaves):
            traced = self.program(args, leaves, tree, fixed)
        else:
            if self.named:
                self.named.of_call(self.name, tree, [x.shape for x in leaves])
            traced = self.trace(leaves, tree, fixed)
        self.note_donated(traced, args)
        return self.apply(call, traced, leaves, key)

    def note_donated(self, traced: Traced, args: tuple[Any, ...]) -> None:
        if self.donate:
            traced.donated = self.donated_inputs(args, len(traced.consts))

    def apply(self, call: Any, traced: Traced, leaves: Sequence[Any], key: Any) -> Any:
        """The results for leaves of arguments, or their tracers."""
        if get_trace() is None and not any(isinstance(x, Tracer) for x in leaves) \
                and not traced.closed_over_tracers:
            return self.run(call, traced, leaves, key)
        if self.inline:
            outs = eval_jaxpr(traced.jaxpr, (), *traced.consts, *leaves)
        else:
            outs = jit_p.bind(*traced.consts, *leaves, jaxpr=traced.jaxpr, name=self.name)
        return tree_unflatten(traced.out_tree, outs)

    def donated_inputs(self, args: tuple[Any, ...], first: int) -> frozenset[int]:
        """The inputs of the program that are leaves of donated arguments."""
        static = {i % len(args) if i < 0 else i for i in self.static.argnums}
        donate = {i % len(args) if i < 0 else i for i in self.donate}
        found: set[int] = set()
        for i, arg in enumerate(args):
            if i in static:
                continue
            count = len(tree_flatten(arg)[0])
            if i in donate:
                found.update(range(first, first + count))
            first += count
        return frozenset(found)

    def flatten(self, dynamic: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return flatten_args((dynamic, keywords), f"jit of {self.name}", keywords=True)

    def run(self, call: Any, traced: Traced, leaves: Sequence[Any], key: Any) -> Any:
        execute = executable_of(traced.jaxpr, traced.donated, self.require_inplace, leaves).run
        consts = constants_for(execute, traced.consts)
        weak = [a.weak_type for a in traced.jaxpr.out_avals]
        if isinstance(execute, (_runtime.Program, _runtime.CudaProgram)):
            # the runtime calls it without us
            outs = execute([*consts, *leaves])
            if key is not None:
                if call.cache_size() >= MOST_SIGNATURES:
                    call.cache_clear()
                call.insert(key, execute, self.template(traced, len(weak)), weak, tuple(consts))
            return tree_unflatten(traced.out_tree,
                                  [_wrapped(o, w) for o, w in zip(outs, weak, strict=True)])
        dtypes_in = [a.dtype for a in traced.jaxpr.in_avals[len(consts):]]

        def program(arrays: Sequence[Any]) -> list[Any]:
            # what is no Array is copied: an output may be an input, and belongs to the program
            return execute(consts + [x._np if isinstance(x, ArrayBase) else np.array(x, d)
                                     for x, d in zip(arrays, dtypes_in, strict=True)])

        outs = program(leaves)
        nothing = [a.dtype == float0 for a in traced.jaxpr.out_avals]
        if key is not None and not any(nothing):  # the runtime would wrap all
            call.insert(key, program, self.template(traced, len(weak)), weak)
        return tree_unflatten(traced.out_tree, [o if n else wrap(o, w) for o, w, n in
                                                zip(outs, weak, nothing, strict=True)])

    @staticmethod
    def template(traced: Traced, count: int) -> Any:
        """How the runtime rebuilds a result: a tree with `...` for each leaf, or a function."""
        template = tree_unflatten(traced.out_tree, [...] * count)
        return template if is_plain(template) else functools.partial(tree_unflatten,
                                                                     traced.out_tree)


def _for_cpu(backend: str, leaves: Sequence[Any]) -> bool:
    return backend == "c" or (backend == "auto" and gpu_of(leaves) is None)


def is_plain(tree: Any) -> bool:
    """True of trees of exact tuples, lists, dicts and None, which the runtime rebuilds itself."""
    if type(tree) in (tuple, list):
        return all(map(is_plain, tree))
    if type(tree) is dict:
        return all(map(is_plain, tree.values()))
    return tree is None or tree is ...


_functions: WeakSet[Any] = WeakSet()


def jit(fun: Callable[..., Any] | None = None, *, static_argnums: Any = None,
        static_argnames: Any = None, donate_argnums: Any = None, donate_argnames: Any = None,
        inline: bool = False, keep_unused: bool = False, require_inplace: bool = False,
        dynamic_shapes: Any = None) -> Any:
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
            dynamic_shapes=dynamic_shapes)
    check_callable(fun, "jit")
    static = StaticArguments.of(fun, static_argnums, static_argnames)
    donate = static.positions(donate_argnums, donate_argnames, "donate_argnums")
    state = JitState(fun, static, donate, inline, require_inplace, dynamic_shapes)
    call = _runtime.JitFunction(state.miss, static.argnums, static.argnames)
    functools.update_wrapper(call, fun, updated=())
    call.__name__ = state.name
    call.state = state
    call.lower = public(functools.partial(_lower, state))
    call.clear_cache = functools.partial(_clear, state, call)
    call.eval_shape = public(functools.partial(_eval_shape, state))
    _functions.add(call)
    return call


def _clear(state: JitState, call: Any) -> None:
    state.traces.clear()
    state.families.clear()
    state.history.clear()
    call.cache_clear()


def clear_caches() -> None:
    """Forget all traces and compiled programs of all jitted functions."""
    for call in list(_functions):
        call.clear_cache()
    _executables.clear()


class Lowered:
    """A traced function before compilation."""

    def __init__(self, state: JitState, traced: Traced, in_tree: PyTreeDef, fixed: Any) -> None:
        self._state = state
        self._traced = traced
        self._in_tree = in_tree
        self._fixed = fixed
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
    def donated(self) -> frozenset[int]:
        """The inputs of the jaxpr, by number, whose memory the caller gives away."""
        return self._traced.donated

    def inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The inputs of the jaxpr for these arguments: constants of the trace come first."""
        (dynamic, keywords), _ = self._state.static.split(args, kwargs)
        return [*self._traced.consts, *tree_flatten((dynamic, keywords))[0]]

    def as_text(self) -> str:
        """The jaxpr as text."""
        return str(self._traced.jaxpr)

    def compile(self) -> Compiled:
        """Make the program ready to run."""
        with config.scope(backend=self._backend):
            return Compiled(self._state, self._traced, self._in_tree, self._fixed)


class Compiled:
    """A program for arguments of one structure, shapes and dtypes."""

    def __init__(self, state: JitState, traced: Traced, in_tree: PyTreeDef, fixed: Any) -> None:
        self._state = state
        self._traced = traced
        self._in_tree = in_tree
        self._fixed = fixed
        self._settings = config.current()
        self._executable = executable_of(traced.jaxpr, traced.donated, state.require_inplace)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        (dynamic, keywords), fixed = self._state.static.split(args, kwargs)
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
            return self._state.apply(None, self._traced, leaves, None)

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

        On GPUs also how many bytes of outputs are in the memory of `donated` arguments.
        """
        return self._executable.memory_analysis()


def lower(fun: Callable[..., Any], *args: Any, target: str | None = None,
          **kwargs: Any) -> Lowered:
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
    return jitted.lower(*args, **kwargs)  # type: ignore[no-any-return]


def _lower(state: JitState, *args: Any, **kwargs: Any) -> Lowered:
    """Trace for arguments given as arrays or ShapeDtypeStructs.

    A `target` that is text, which no argument of a compiled function can be, is ours.
    """
    if not isinstance(kwargs.get("target"), str):
        return _traced_for(state, args, kwargs)
    target: str = kwargs.pop("target")
    with config.scope(backend=backend_for(target)):
        return _traced_for(state, args, kwargs)


def _traced_for(state: JitState, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    (dynamic, keywords), fixed = state.static.split(args, kwargs)
    leaves, tree = tree_flatten((dynamic, keywords))
    traced = _named_trace(state, leaves, tree, fixed) or state.trace(leaves, tree, fixed)
    state.note_donated(traced, args)
    return Lowered(state, traced, tree, fixed)


def _named_trace(state: JitState, leaves: Sequence[Any], tree: PyTreeDef,
                 fixed: Any) -> Traced | None:
    """The trace for the sizes that `dynamic_shapes` names, where the arguments have them."""
    avals = [aval_of(x) for x in leaves]
    shapes = tuple([a.shape for a in avals])
    named = state.named.of_call(state.name, tree, shapes) if state.named else {}
    symbolic = Family().symbolic(shapes, named, auto=False)
    if not named or not shape_names(symbolic):
        return None
    return state.sized(avals, tree, fixed, symbolic).traced  # type: ignore[no-any-return]


def _eval_shape(state: JitState, *args: Any, **kwargs: Any) -> Any:
    lowered = _lower(state, *args, **kwargs)
    return tree_unflatten(lowered.out_tree, list(lowered.jaxpr.out_avals))


