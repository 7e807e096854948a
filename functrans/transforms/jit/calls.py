"""Calls of jitted functions that the runtime does not know: trace, compile, run, remember.

`Calls.miss` is where the runtime hands such a call over. `Traces` finds the trace that serves it,
or makes one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase, get_trace, wrap
from functrans.core import config
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import bound_axes
from functrans.core.cells import FrameKind, cells_in_use, framed, is_lifted
from functrans.core.check import check_jaxpr
from functrans.core.chunking import chunking, traced_in_chunks
from functrans.core.compiling import for_compiler
from functrans.core.convert import to_array
from functrans.core.dims import deciding
from functrans.core.dtypes import float0
from functrans.core.eager import is_off_host
from functrans.core.eager import is_on_gpu as is_on_gpu_array
from functrans.core.evaluate import eval_jaxpr
from functrans.core.guards import Guard
from functrans.core.jaxpr import Jaxpr, Var
from functrans.core.record import Record
from functrans.core.recording import recorded, recorder
from functrans.core.sizes import shape_names
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.switches import NoExecutionTrace
from functrans.core.trace import Tracer, run_in
from functrans.core.tree import PyTreeDef, tree_flatten, tree_unflatten
from functrans.transforms.closed import with_small_consts_inside
from functrans.transforms.flat import FlatFunction, flatten_args, parameter_names
from functrans.transforms.jit.cells import OfCells
from functrans.transforms.jit.executables import (
    constants_for,
    is_compiled_within,
    takes_arrays,
    to_machine_code,
    wrapped,
)
from functrans.transforms.jit.fitting import fitted
from functrans.transforms.jit.primitive import checked_p, jit_p
from functrans.transforms.jit.retrace import Compilation
from functrans.transforms.jit.shown import before_trace, log_reasons
from functrans.transforms.jit.sizes import (
    Attempt,
    Family,
    NamedSizes,
    SizedShapes,
    trace_some_sized,
)
from functrans.transforms.static import StaticArguments

__all__ = ["Calls", "Jitted", "TraceOutcome", "Traces"]

Avals = tuple[ShapedArray, ...]

MOST_SIGNATURES = 4096
"""How many sets of sizes are looked up without Python, before they are forgotten."""
MOST_PROGRAMS = 256
"""... where each set of sizes has a program of its own."""


class TraceOutcome:
    """What one trace of a function gave."""

    __slots__ = ("asks_chunks", "closed_over_tracers", "consts", "donated", "guards", "in_chunks",
                 "jaxpr", "out_tree")

    def __init__(self, fun: Callable[..., Any], tree: PyTreeDef, avals: Sequence[ShapedArray],
                 name: str, owner: object = None, chunks: int = 1) -> None:
        flat = FlatFunction(lambda args, kwargs: fun(*args, **kwargs), tree, {}, "jit")
        before_trace(name, avals)
        run: Callable[..., Any] = flat
        if is_lifted(owner):
            def run(*leaves: Any) -> Any:
                with framed(FrameKind.PROGRAM, owner, name):
                    return flat(*leaves)

        with recorded(name, "trace"), for_compiler(to_machine_code()), \
                traced_in_chunks(chunks) as batches:
            closed = with_small_consts_inside(stage(run, avals, name=name))
        if config.current().enable_checks:
            check_jaxpr(closed)
        self.consts = closed.consts
        self.jaxpr: Jaxpr = closed.jaxpr.hoist_consts()
        self.out_tree: PyTreeDef = flat.out_tree
        self.donated: frozenset[int] = frozenset()
        self.guards: tuple[Guard, ...] = ()
        self.closed_over_tracers = any(isinstance(c, Tracer) for c in closed.consts)
        self.asks_chunks = batches.asked

        @functools.cache
        def in_chunks(count: int) -> TraceOutcome:
            """The same with batches that ask for it in so many chunks."""
            found = TraceOutcome(fun, tree, avals, name, owner, count)
            more = len(found.consts) - len(self.consts)
            found.donated = frozenset(k + more for k in self.donated)
            return found

        self.in_chunks: Callable[[int], TraceOutcome] = in_chunks


class Jitted(Record, eq=False):
    """A function, and what `jit` was told about it."""

    fun: Callable[..., Any]
    name: str
    static: StaticArguments
    donate: tuple[int, ...]
    inline: bool
    require_inplace: bool
    named: NamedSizes
    memory_limit: int | None = None

    def note_donated(self, traced: TraceOutcome, args: tuple[Any, ...]) -> None:
        if self.donate:
            traced.donated = self.donated_inputs(args, len(traced.consts))

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


class Traces:
    """The traces of one jitted function, and the history of how they came to be."""

    def __init__(self, jitted: Jitted) -> None:
        self.jitted = jitted
        self.exact: dict[Any, TraceOutcome] = {}
        self.families: dict[Any, Family] = {}
        self.history: list[Compilation] = []

    def clear(self) -> None:
        self.exact.clear()
        self.families.clear()
        self.history.clear()

    def for_types(self, avals: Avals, tree: PyTreeDef, fixed: Any, failure: str = "",
                  merged: tuple[Guard, ...] = ()) -> TraceOutcome:
        """The trace for arguments of exactly these types."""
        key = self._key(avals, tree, fixed)
        known = self.exact.get(key)
        if known is None:
            fun = self.jitted.static.restore(self.jitted.fun, fixed)
            known = TraceOutcome(fun, tree, avals, self.jitted.name, self)
            if not known.closed_over_tracers:
                self.exact[key] = known
                self._record(avals, tree, fixed, SizedShapes(tuple([a.shape for a in avals])),
                             merged, failure)
        return known

    def for_call(self, args: tuple[Any, ...], leaves: Sequence[Any], avals: Avals,
                 tree: PyTreeDef, fixed: Any) -> TraceOutcome:
        """The trace for a call with arrays: one for all their sizes where that can be."""
        settings = config.current()
        shapes = tuple([a.shape for a in avals])
        names = self.names_of(tree, shapes)
        auto = settings.dynamic_shapes == "auto" and to_machine_code()
        if not names and not auto:
            return self.for_types(avals, tree, fixed)
        kinds = tuple([(a.dtype, a.weak_type, a.ndim) for a in avals])
        family = self.families.setdefault((tree, kinds, fixed, bound_axes(), settings), Family())
        known: TraceOutcome | None = self.exact.get(self._key(avals, tree, fixed))
        known = known or family.program(shapes)
        if known is not None:
            return known
        attempt = Attempt(shapes)
        symbolic = family.symbolic(shapes, names, auto)
        if shape_names(symbolic):
            attempt = self._sized(avals, tree, fixed, symbolic,
                                  lambda traced: self._unfit(traced, args, leaves))
        family.saw(shapes)
        traced: TraceOutcome | None = attempt.traced
        if traced is None:
            traced = self.for_types(avals, tree, fixed, attempt.failure, attempt.merged)
        else:
            sized = SizedShapes(attempt.shapes, attempt.guards)
            family.programs.insert(0, (sized, traced))
            self._record(avals, tree, fixed, sized, attempt.merged, attempt.failure)
        family.fixed |= attempt.needed
        return traced

    def for_names(self, avals: Avals, tree: PyTreeDef, fixed: Any) -> TraceOutcome | None:
        """The trace for the sizes that `dynamic_shapes` names, where the arguments have them."""
        shapes = tuple([a.shape for a in avals])
        names = self.names_of(tree, shapes)
        symbolic = Family().symbolic(shapes, names, auto=False)
        if not names or not shape_names(symbolic):
            return None
        found: TraceOutcome | None = self._sized(avals, tree, fixed, symbolic, lambda _: "").traced
        return found

    def names_of(self, tree: PyTreeDef, shapes: Sequence[Any]) -> Any:
        """The axes of a call that have names; raises ArgumentError where sizes do not agree."""
        named = self.jitted.named
        return named.of_call(self.jitted.name, tree, shapes) if named else {}

    def _key(self, avals: tuple[ShapedArray, ...], tree: PyTreeDef, fixed: Any) -> Any:
        # what a trace decides on sizes is a guard of the program that it becomes a part of
        scope = None if all(a.is_static for a in avals) else deciding.scope
        return (tree, avals, fixed, bound_axes(), config.current(), scope)

    def _sized(self, avals: Sequence[ShapedArray], tree: PyTreeDef, fixed: Any,
               symbolic: tuple[Any, ...], refusal: Callable[[TraceOutcome], str]) -> Attempt:
        """The function traced for named sizes, with those of a call as hints."""
        fun = self.jitted.static.restore(self.jitted.fun, fixed)
        attempt = trace_some_sized(
            lambda types: TraceOutcome(fun, tree, types, self.jitted.name, self), avals, symbolic,
            refusal)
        if attempt.traced is not None and attempt.traced.closed_over_tracers:
            return Attempt(attempt.shapes)
        if attempt.traced is not None:
            attempt.traced.guards = attempt.guards
        return attempt

    def _unfit(self, traced: TraceOutcome, args: tuple[Any, ...], leaves: Sequence[Any]) -> str:
        """Why a program of named sizes is better made for those of a call; else nothing."""
        self.jitted.note_donated(traced, args)
        if not to_machine_code() or not traced.jaxpr.eqns:
            return ""
        executable = fitted(self.jitted, traced, leaves)[1]
        return executable.at([_shape(x) for x in (*traced.consts, *leaves)]).specialized

    def _record(self, avals: tuple[ShapedArray, ...], tree: PyTreeDef, fixed: Any,
                sized: SizedShapes, merged: tuple[Guard, ...] = (), failure: str = "") -> None:
        self.history.append(Compilation(tree, fixed, avals, bound_axes(), config.current(), sized,
                                        self.jitted.named.argument, user_source(), merged,
                                        failure))
        if config.current().explain_misses:
            log_reasons(self.jitted.name, self.history)


class Calls:
    """What a jitted function does where the runtime's table has no program."""

    def __init__(self, jitted: Jitted) -> None:
        self.jitted = jitted
        self.traces = Traces(jitted)
        self.of_cells: OfCells | None = None

    def describe(self) -> str:
        """`<jit of loss(w, x): 2 programs>`: the repr of the function, which the runtime asks for.
        """
        count = len(self.traces.history)
        return (f"<jit of {self.jitted.name}({parameter_names(self.jitted.fun)}): "
                f"{count} program{'' if count == 1 else 's'}>")

    def miss(self, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Any:
        """The result of a call; its program is the runtime's from now on, by `key`."""
        if not cells_in_use() or config.current().disable_jit:
            return self._pure(call, args, kwargs, key)
        return self.with_cells().call(lambda: self._pure(call, args, kwargs, key), args, kwargs)

    def with_cells(self) -> OfCells:
        """The calls while there are cells."""
        if self.of_cells is None:
            self.of_cells = OfCells(self.jitted, self.traces, Calls)
        return self.of_cells

    def _pure(self, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Any:
        jitted, trace = self.jitted, get_trace()
        if type(trace) is NoExecutionTrace:
            raise trace.refusal(jitted.name)
        if trace is not None and trace.watches and trace.parent is None:
            return run_in(None, self._pure, call, args, kwargs, key)
        if config.current().disable_jit:
            return jitted.fun(*args, **kwargs)
        (dynamic, keywords), fixed = jitted.static.split(args, kwargs)
        leaves, tree = flatten_args((dynamic, keywords), f"jit of {jitted.name}", keywords=True)
        if config.current().narrows:
            leaves = [to_array(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in leaves]
        avals = tuple(map(get_aval, leaves))
        if _concrete(leaves):
            traced = self.traces.for_call(args, leaves, avals, tree, fixed)
        else:
            self.traces.names_of(tree, [a.shape for a in avals])
            traced = self.traces.for_types(avals, tree, fixed)
        jitted.note_donated(traced, args)
        return self.apply(call, traced, leaves, key)

    def apply(self, call: Any, traced: TraceOutcome, leaves: Sequence[Any], key: Any) -> Any:
        """The results for leaves of arguments, or their tracers."""
        if _concrete(leaves) and not traced.closed_over_tracers:
            now = recorder()
            if now is None:
                return self._run(call, traced, leaves, key)
            with now.span(self.jitted.name, "call",
                          arguments=", ".join([str(get_aval(x)) for x in leaves])):
                # without the key of the runtime's table, so that the next call is seen as well
                return _when_ready(self._run(call, traced, leaves, None))
        outer = chunking()
        if traced.asks_chunks and outer is not None:  # the program that this becomes a part of
            outer.asked = True
            traced = traced if outer.chunks == 1 else traced.in_chunks(outer.chunks)
        checks = config.current().checks
        if checks:
            outs = checked_p.bind(*traced.consts, *leaves, jaxpr=traced.jaxpr,
                                  name=self.jitted.name, checks=checks)
        elif self.jitted.inline:
            outs = eval_jaxpr(traced.jaxpr, (), *traced.consts, *leaves)
        else:
            outs = jit_p.bind(*traced.consts, *leaves, jaxpr=traced.jaxpr, name=self.jitted.name)
        return tree_unflatten(traced.out_tree, outs)

    def _run(self, call: Any, traced: TraceOutcome, leaves: Sequence[Any], key: Any) -> Any:
        traced, executable = fitted(self.jitted, traced, leaves)
        execute = executable.at([_shape(x) for x in (*traced.consts, *leaves)]).run
        consts = constants_for(execute, traced.consts)
        weak = [a.weak_type for a in traced.jaxpr.out_avals]
        is_compiled = isinstance(execute, (_runtime.Program, _runtime.CudaProgram))
        if is_compiled or takes_arrays(execute):
            outs = execute([*consts, *leaves])
            if key is not None:
                if call.cache_size() >= (MOST_SIGNATURES if executable.run is execute
                                         else MOST_PROGRAMS):
                    call.cache_clear()
                # the runtime calls what is compiled without us
                run, bound = (execute, tuple(consts)) if is_compiled else (
                    lambda arrays: execute([*consts, *arrays]), ())
                call.insert(key, run, _template(traced, len(weak)), weak, bound)
            return tree_unflatten(traced.out_tree,
                                  [wrapped(o, w) for o, w in zip(outs, weak, strict=True)])
        dtypes_in = [a.dtype for a in traced.jaxpr.in_avals[len(consts):]]

        # else what is no Array is copied: an output may be an input, and belongs to the program
        given: Any = np.asarray if is_compiled_within(execute) else np.array

        def program(arrays: Sequence[Any]) -> list[Any]:
            return execute(consts + [x._np if isinstance(x, ArrayBase) else given(x, d)
                                     for x, d in zip(arrays, dtypes_in, strict=True)])

        outs = program(leaves)
        nothing = [a.dtype == float0 for a in traced.jaxpr.out_avals]
        if key is not None and not any(nothing):  # the runtime would wrap all
            call.insert(key, program, _template(traced, len(weak)), weak, (),
                        _forwarded(traced, leaves))
        return tree_unflatten(traced.out_tree, [o if n else wrap(o, w) for o, w, n in
                                                zip(outs, weak, nothing, strict=True)])


def _forwarded(traced: TraceOutcome, leaves: Sequence[Any]) -> tuple[int, ...]:
    """Which leaf each result is, where all are on the host and belong to the caller."""
    jaxpr, first = traced.jaxpr, len(traced.consts)
    inputs = {v: k for k, v in enumerate(jaxpr.invars[first:])}
    found = [inputs.get(v, -1) for v in jaxpr.outvars if isinstance(v, Var)]
    fewer = len(found) < len(jaxpr.outvars) or min(found, default=-1) < 0
    if jaxpr.eqns or traced.donated or fewer:
        return ()
    return () if any(is_off_host(leaves[k]) for k in found) else tuple(found)


def _when_ready(result: Any) -> Any:
    """A result once it is there, which on a GPU is later than the call's end."""
    for x in tree_flatten(result)[0]:
        if is_on_gpu_array(x):
            x.block_until_ready()
    return result


def _shape(x: Any) -> Any:
    """The shape of a leaf; np.shape asks an array by its protocol, which takes 9 us."""
    return x.shape if isinstance(x, (ArrayBase, np.ndarray)) else np.shape(x)


def _concrete(leaves: Sequence[Any]) -> bool:
    return get_trace() is None and not any(isinstance(x, Tracer) for x in leaves)


def _template(traced: TraceOutcome, count: int) -> Any:
    """How the runtime rebuilds a result: a tree with `...` for each leaf, or a function."""
    template = tree_unflatten(traced.out_tree, [...] * count)
    return template if _is_plain(template) else functools.partial(tree_unflatten, traced.out_tree)


def _is_plain(tree: Any) -> bool:
    """True of trees of exact tuples, lists, dicts and None, which the runtime rebuilds itself."""
    if type(tree) in (tuple, list):
        return all(map(_is_plain, tree))
    if type(tree) is dict:
        return all(map(_is_plain, tree.values()))
    return tree is None or tree is ...
