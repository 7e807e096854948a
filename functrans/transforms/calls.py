"""Calls of jitted functions that the runtime does not know: trace, compile, run, remember."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase, get_trace, wrap
from functrans.core import config
from functrans.core.dtypes import float0
from functrans.core.evaluate import eval_jaxpr
from functrans.core.trace import Tracer, run_in
from functrans.core.tree import tree_unflatten
from functrans.transforms.checks.eager import CheckTrace
from functrans.transforms.executables import (
    constants_for,
    executable_of,
    is_compiled_within,
    is_on_gpu,
    wrapped,
)
from functrans.transforms.flat import flatten_args
from functrans.transforms.jit_primitive import checked_p, jit_p
from functrans.transforms.traces import Jitted, Traced, Traces

__all__ = ["Calls"]

MOST_SIGNATURES = 4096
"""How many sets of sizes are looked up without Python, before they are forgotten."""
MOST_PROGRAMS = 256
"""... where each set of sizes has a program of its own."""


class Calls:
    """What a jitted function does where the runtime's table has no program."""

    def __init__(self, jitted: Jitted) -> None:
        self.jitted = jitted
        self.traces = Traces(jitted)

    def miss(self, call: Any, args: tuple[Any, ...], kwargs: dict[str, Any], key: Any) -> Any:
        """The result of a call; its program is the runtime's from now on, by `key`."""
        if type(get_trace()) is CheckTrace:  # which looks at operations, not at programs
            return run_in(None, self.miss, call, args, kwargs, key)
        jitted = self.jitted
        if config.current().disable_jit:
            return jitted.fun(*args, **kwargs)
        (dynamic, keywords), fixed = jitted.static.split(args, kwargs)
        leaves, tree = flatten_args((dynamic, keywords), f"jit of {jitted.name}", keywords=True)
        if _concrete(leaves):
            traced = self.traces.for_call(args, leaves, tree, fixed)
        else:
            self.traces.names_of(tree, [x.shape for x in leaves])
            traced = self.traces.for_types(leaves, tree, fixed)
        jitted.note_donated(traced, args)
        return self.apply(call, traced, leaves, key)

    def apply(self, call: Any, traced: Traced, leaves: Sequence[Any], key: Any) -> Any:
        """The results for leaves of arguments, or their tracers."""
        if _concrete(leaves) and not traced.closed_over_tracers:
            return self._run(call, traced, leaves, key)
        checks = config.current().checks
        if checks:
            outs = checked_p.bind(*traced.consts, *leaves, jaxpr=traced.jaxpr,
                                  name=self.jitted.name, checks=checks)
        elif self.jitted.inline:
            outs = eval_jaxpr(traced.jaxpr, (), *traced.consts, *leaves)
        else:
            outs = jit_p.bind(*traced.consts, *leaves, jaxpr=traced.jaxpr, name=self.jitted.name)
        return tree_unflatten(traced.out_tree, outs)

    def _run(self, call: Any, traced: Traced, leaves: Sequence[Any], key: Any) -> Any:
        executable = executable_of(traced.jaxpr, traced.donated, self.jitted.require_inplace,
                                   leaves)
        execute = executable.at([np.shape(x) for x in (*traced.consts, *leaves)]).run
        consts = constants_for(execute, traced.consts)
        weak = [a.weak_type for a in traced.jaxpr.out_avals]
        is_compiled = isinstance(execute, (_runtime.Program, _runtime.CudaProgram))
        if is_compiled or is_on_gpu(execute):
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
            call.insert(key, program, _template(traced, len(weak)), weak)
        return tree_unflatten(traced.out_tree, [o if n else wrap(o, w) for o, w, n in
                                                zip(outs, weak, nothing, strict=True)])


def _concrete(leaves: Sequence[Any]) -> bool:
    return get_trace() is None and not any(isinstance(x, Tracer) for x in leaves)


def _template(traced: Traced, count: int) -> Any:
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
