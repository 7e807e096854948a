"""From a jaxpr to tensors and calls: every equation goes through the rule of its primitive."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.record import Record
from functrans.core.table import Table, merged
from functrans.lowering.defects import is_defect, warn_of_fallback
from functrans.lowering.loops.tensor import (
    FLOAT8,
    ITEM_SIZES,
    AnyFlag,
    Branch,
    Call,
    HostCall,
    Later,
    Map,
    ScanLoop,
    Stored,
    Tensor,
    WhileLoop,
    compute_dtype,
    dtype_name,
    has_effect,
    memory_dtype,
)
from functrans.lowering.passes.if_conversion import decide_arrays, is_condition
from functrans.lowering.passes.rematerialize import Residual
from functrans.lowering.rules import (
    bits,
    collectives,
    elementwise,
    indexing,
    library,
    linalg,
    movement,
    reduce,
    window,
)
from functrans.lowering.rules.elementwise import BY_PASSES, ELEMENTWISE
from functrans.lowering.rules.memory import stored
from functrans.primitives.arithmetic import complex_p, imag_p
from functrans.primitives.base import constant_p
from functrans.primitives.callback import debug_callback_p, io_callback_p, pure_callback_p
from functrans.primitives.check import check_p
from functrans.primitives.collective import axis_index_p, pvary_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.reduce import reduce_or_p
from functrans.primitives.shape import reshape_p
from functrans.primitives.shard_map import shard_map_p, sharding_constraint_p
from functrans.primitives.solve import adjugate_p
from functrans.primitives.sylvester import sylvester_p

__all__ = ["CALLS", "CallRule", "Graph", "any_flag_rules", "graph_of", "live_items",
           "results_of", "with_results_as_outputs"]


CallRule = Callable[[Equation, list[Tensor]],
                    "Call | Tensor | tuple[Call, Sequence[Tensor]] | None"]
"""A call whose results are those of the equation, or a call and the results; or a tensor."""


def results_of(eqn: Equation) -> list[Stored]:
    """New tensors in memory for the results of an equation whose dtypes are known."""
    return [Stored(v.aval.shape, dtype_name(v.aval.dtype) or "", (), eqn.source)
            for v in eqn.outvars]


def _scan(eqn: Equation, xs: list[Tensor]) -> Call | None:
    return ScanLoop(eqn, xs, results_of(eqn))


def _while(eqn: Equation, xs: list[Tensor]) -> Call | None:
    return WhileLoop(eqn, xs, results_of(eqn))


def _cond(eqn: Equation, xs: list[Tensor]) -> Call | None:
    return Branch(eqn, xs, results_of(eqn))


RULES: Table[elementwise.Rule] = Table(merged(
    elementwise.RULES, movement.RULES, reduce.REDUCTIONS, indexing.RULES, window.RULES, bits.RULES),
    otherwise="no kernel computes it: it is a call")

CALLS: Table[CallRule] = Table(merged(
    {scan_p: _scan, while_p: _while, cond_p: _cond}, reduce.CONTRACTIONS, library.RULES,
    linalg.RULES, collectives.RULES), beside=RULES, without={
    constant_p: "it is memory of the program",
    check_p: "NumPy tells what failed",
    **dict.fromkeys((pure_callback_p, io_callback_p, debug_callback_p), "it is Python"),
    axis_index_p: "programs of devices have it as an input",
    pvary_p: "programs of devices are without it",
    **dict.fromkeys((shard_map_p, sharding_constraint_p), "programs of devices are without it"),
    **dict.fromkeys((imag_p, complex_p), "kernels of the CPU have no complex numbers"),
    **dict.fromkeys((adjugate_p, sylvester_p), "a pass composes it of others"),
    **BY_PASSES,
})
"""What the CPU computes by calls: of its library, and of bodies."""


class Graph(Record, frozen=False):
    """A program as tensors and calls, in the order of its equations."""

    inputs: list[Stored]
    outputs: list[Tensor] = field(default_factory=list)
    items: list[Tensor | Call] = field(default_factory=list)
    constants: list[tuple[Stored, np.ndarray[Any, Any]]] = field(default_factory=list)
    origins: dict[Tensor | Call, Equation] = field(default_factory=dict)
    """The equations that values and calls come from."""
    jaxpr: Jaxpr | None = None
    after: dict[Tensor, frozenset[Tensor]] = field(default_factory=dict)
    """Values that are computed before others (see `Later`)."""
    residuals: Sequence[Residual] = ()
    """What was decided on values that are needed late."""
    _known: set[Tensor] = field(default_factory=set)

    def add(self, tensor: Tensor) -> None:
        """Put a tensor, and those that a rule made on the way to it, in the order of items."""
        if tensor in self._known or isinstance(tensor, Stored):
            return
        self._known.add(tensor)
        for x in tensor.operands:
            self.add(x)
        self.items.append(tensor)
        if self.after or isinstance(tensor, Later):
            after = self.after_of(tensor.operands)
            if isinstance(tensor, Later):
                after |= {tensor.after}
            if after:
                self.after[tensor] = after

    def after_of(self, tensors: Iterable[Tensor]) -> frozenset[Tensor]:
        """What is computed before a step that reads some values."""
        return frozenset[Tensor]().union(*[self.after[x] for x in tensors if x in self.after])


def with_results_as_outputs(graph: Graph) -> Graph:
    """The graph whose outputs are the results of calls that they are reshapes of, in place."""
    results = {t for item in graph.items if isinstance(item, Call) for t in item.results}
    taken: set[Tensor] = {*graph.inputs, *graph.outputs}
    for k, t in enumerate(graph.outputs):
        source: Tensor = t
        while (eqn := graph.origins.get(source)) is not None and eqn.primitive is reshape_p \
                and isinstance(source, Map):
            (source,) = source.operands
        if source in results and source not in taken and source.dtype == t.dtype:
            graph.outputs[k] = source
            taken.add(source)
    return graph


def live_items(items: Sequence[Tensor | Call], outputs: Iterable[Tensor]) -> list[Tensor | Call]:
    """The items that an output or a call with an effect needs, in order."""
    needed: set[Tensor] = set(outputs)
    live: list[Tensor | Call] = []
    for item in reversed(items):
        if isinstance(item, Call):
            if item.has_effect or any(r in needed for r in item.results):
                live.append(item)
                needed.update(item.operands)
        elif item in needed:
            live.append(item)
            needed.update(item.operands)
    # rules may build on tensors that are no equation's result
    return live[::-1]


_NOWHERE: Mapping[Equation, str] = {}
MOST_KNOWN: Final = 256
"""Elements of a constant that kernels may have in their text."""
Memory = Callable[[ShapedArray, Any], Stored]
"""What a value of a type is in memory; the second argument is the user's line."""


def graph_of(jaxpr: Jaxpr, inputs: Sequence[Stored] | None = None,
             rules: Mapping[Primitive, CallRule] = CALLS,
             hosted: frozenset[Primitive] = frozenset(), memory: Memory = stored,
             on_host: Mapping[Equation, str] = _NOWHERE, stores_literals: bool = False,
             of_any_dtype: Container[Primitive] = linalg.RULES) -> Graph:
    """The tensors and calls of a jaxpr without constants.

    `rules` are of the primitives that are calls, and look at the dtypes themselves where these are
    `of_any_dtype`; primitives without any rule go to the host, and those that are `hosted`. So do
    equations `on_host`, for the reasons that it gives. With `stores_literals` no kernel makes them.
    """
    assert not jaxpr.constvars
    if inputs is None:
        inputs = [memory(v.aval, None) for v in jaxpr.invars]
    graph = Graph(list(inputs), jaxpr=jaxpr)
    known = {dtype: _is_known(ShapedArray((), dtype), memory) for dtype in jaxpr.dtypes}
    env: dict[Var, Tensor] = dict(zip(jaxpr.invars, graph.inputs, strict=True))

    def read(atom: Atom) -> Tensor:
        if isinstance(atom, Literal):
            return _literal(graph, atom, memory, stores_literals)
        return env[atom]

    for eqn in jaxpr.eqns:
        if eqn.primitive is constant_p:
            value = np.asarray(eqn.params["value"].value)
            outs: Sequence[Tensor] = [_constant(eqn.outvars[0].aval, value, memory)]
            graph.constants.append((outs[0], value))  # type: ignore[arg-type]
        else:
            operands = [read(a) for a in eqn.invars]
            is_known = all(known[a.aval.dtype] for a in (*eqn.invars, *eqn.outvars))
            outs = _lowered(graph, eqn, operands, is_known, rules, hosted, memory, of_any_dtype) \
                if eqn not in on_host else \
                _add_call(graph, eqn, operands, _host_call(eqn, operands, memory, on_host[eqn]))
        env.update(zip(eqn.outvars, outs, strict=True))
    graph.outputs = [read(a) for a in jaxpr.outvars]
    return graph


def _lowered(graph: Graph, eqn: Equation, operands: list[Tensor], known: bool,
             rules: Mapping[Primitive, CallRule], hosted: frozenset[Primitive],
             memory: Memory, of_any_dtype: Container[Primitive]) -> Sequence[Tensor]:
    primitive = eqn.primitive
    of_kernels = RULES.get(primitive)
    if of_kernels is None and primitive in ELEMENTWISE:  # registered since
        of_kernels = elementwise.rule_of(primitive)
    if known and of_kernels is not None and primitive not in hosted:
        outs: Sequence[Tensor] | None = _by_rule(of_kernels, eqn, operands)
        if outs is not None:
            for out in outs:
                graph.add(out)
                graph.origins.setdefault(out, eqn)
            return outs
    call = None
    if primitive in rules and (known or primitive in of_any_dtype):
        rule = rules[primitive]
        call = _by_rule(rule, eqn, operands) if rule is CALLS.get(primitive) \
            else rule(eqn, operands)
    if isinstance(call, Tensor):
        graph.add(call)
        graph.origins.setdefault(call, eqn)
        return [call]
    if call is None and _computes_nothing(eqn):
        return [_empty(graph, v.aval, memory) for v in eqn.outvars]
    return _add_call(graph, eqn, operands, call or _host_call(eqn, operands, memory))


def _computes_nothing(eqn: Equation) -> bool:
    """Whether no result has an element, and nothing else happens."""
    return all(isinstance(v.aval.size, int) and v.aval.size == 0 for v in eqn.outvars) \
        and not eqn.primitive.has_effect and not any(map(has_effect, subjaxprs(eqn)))


def _empty(graph: Graph, aval: ShapedArray, memory: Memory) -> Tensor:
    constant = memory(aval, None)
    graph.constants.append((constant, np.zeros(aval.shape, aval.dtype)))
    return constant


def _by_rule(rule: Callable[..., Any], eqn: Equation, operands: list[Tensor]) -> Any:
    """What a rule makes of an equation; None where it does not apply, or fails."""
    try:
        return rule(eqn, operands)
    except Exception as error:
        if not is_defect(error):
            raise
        what = " ".join([eqn.primitive.name, *[str(a.aval) for a in eqn.invars]])
        warn_of_fallback(what, "NumPy evaluates it", error, eqn.source)
        return None


def _host_call(eqn: Equation, operands: list[Tensor], memory: Memory, why: str = "") -> HostCall:
    return HostCall(eqn, operands, [memory(v.aval, eqn.source) for v in eqn.outvars], why)


def _add_call(graph: Graph, eqn: Equation, operands: Sequence[Tensor],
              call: Call | tuple[Call, Sequence[Tensor]]) -> Sequence[Tensor]:
    """The results of a call, once it is in the graph; some rules compute them from its results."""
    outs: Sequence[Tensor] = ()
    if isinstance(call, tuple):
        call, outs = call
    if call.reads_memory:
        call.read_instead({x: _in_memory(graph, x) for x in call.operands})
    for x in call.operands:
        graph.add(x)
    if graph.after:
        call.after = graph.after_of(operands)
    graph.items.append(call)
    graph.origins[call] = eqn
    graph.origins.update(dict.fromkeys(call.results, eqn))
    for out in outs:
        graph.add(out)
    return outs or call.results


def _in_memory(graph: Graph, x: Tensor) -> Tensor:
    """The value in memory that x is a reshape of: a library is told where its operands begin."""
    source = x
    while (eqn := graph.origins.get(source)) is not None and eqn.primitive is reshape_p \
            and isinstance(source, Map):
        (source,) = source.operands
    return source if isinstance(source, Stored) and source.dtype == x.dtype else x


def _is_known(aval: ShapedArray, memory: Memory) -> bool:
    """Whether kernels compute with a dtype."""
    name = dtype_name(aval.dtype)
    return name is not None and (name not in FLOAT8 or memory(aval, None).dtype == name)


def _constant(aval: ShapedArray, value: np.ndarray[Any, Any], memory: Memory) -> Stored:
    constant = memory(aval, None)
    if value.size <= MOST_KNOWN and value.dtype.kind in "biuf" and constant.dtype in ITEM_SIZES:
        constant.known = value.astype(np.float32) if constant.compute != constant.dtype else value
    return constant


def _literal(graph: Graph, atom: Literal, memory: Memory, is_stored: bool) -> Tensor:
    dtype = memory_dtype(atom.aval.dtype)
    value = np.asarray(atom.value).astype(atom.aval.dtype)
    if is_stored or not _is_known(atom.aval, memory):
        constant = memory(atom.aval, None)
        graph.constants.append((constant, value))
        return constant
    compute = compute_dtype(dtype)
    if compute != dtype:
        value = value.astype(np.float32)
    literal = Map((), dtype, (), lambda s, i: s.const(value, compute), weight=0)
    literal.pointwise = True
    return literal


# --- Conditions on any element of an array: any-flags, where a program has several conditions
#
# A reduction over all elements makes programs wait for each other, and a product could not compute
# the condition in its epilogue. A flag costs its condition, and one launch clears all flags.

LEAST_CONDITIONS = 2
"""Conditions of a program that has flags; a single one is reduced, and no launch clears flags."""
FEW_ELEMENTS = 1024
"""Elements; one program reduces fewer, and goes on with the result, where arrays need that."""


def any_flag_rules(jaxpr: Jaxpr) -> dict[Primitive, CallRule]:
    """The rules that make any-flags; none where the launch that clears them would not pay."""
    count = sum(map(is_condition, jaxpr.eqns))
    if count < LEAST_CONDITIONS:
        return {}
    return {reduce_or_p: partial(_any, few=FEW_ELEMENTS if decide_arrays(jaxpr) else 0)}


def _any(eqn: Equation, xs: list[Tensor], few: int) -> Any:
    (x,) = xs
    if not is_condition(eqn) or not isinstance(x.size, int) or x.size == 0:
        found = reduce.REDUCTIONS[reduce_or_p](eqn, xs)
        return found[0] if found else None
    return AnyFlag(x.shape, xs, lambda s, i: s.read(x, i), is_few=x.size <= few,
                   source=eqn.source)
