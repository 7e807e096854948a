"""Donation: which results alias arguments that the caller donates.

A result may alias an argument that is not read afterwards: one that is updated, one that a kernel
reads at the index where it writes, or one whose live range has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from functrans.lowering.loops.call import Call
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.tensor import ScatterTensor, Tensor
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel, accesses, reachable_expressions

__all__ = ["InputOutputAliases", "input_output_aliases"]


@dataclass(frozen=True)
class InputOutputAliases:
    """The input that each output aliases, by number; updates that need a copy, and why."""

    inputs: Mapping[int, int] = field(default_factory=dict)
    copied: Sequence[tuple[Tensor, str]] = ()


def input_output_aliases(graph: Graph, schedule: Schedule, uses: Mapping[Tensor, Sequence[int]],
                         updated: Mapping[Tensor, Tensor],
                         donated: Collection[int]) -> InputOutputAliases:
    """The outputs that alias donated inputs.

    `uses` are the steps that read or write a tensor; a scatter does not read its base, but starts
    from what is there. `updated` are temporaries, by what they are when they have been updated.
    """
    taken: dict[int, int] = {}
    kept = set(graph.outputs)
    free = {k: x for k, x in enumerate(graph.inputs) if k in donated and x not in kept}
    before = {t: base for base, t in updated.items()}
    for is_better in (_is_updated, _is_read_there, _is_dead):
        for j, t in enumerate(graph.outputs):
            start = t
            while start in before:
                start = before[start]
            first = min(uses.get(start, ()), default=-1)
            if j in taken or first < 0 or graph.outputs.index(t) != j:
                continue
            found = next((k for k, x in free.items() if _same_size(x, t) and is_better(
                schedule, x, start, first, max(uses.get(x, ()), default=-1))), None)
            if found is not None:
                taken[j] = found
                del free[found]
    return InputOutputAliases(taken, list(_copies(graph, schedule, uses, updated, taken)))


def _same_size(x: Tensor, t: Tensor) -> bool:
    return x.shape == t.shape and x.dtype == t.dtype


def _is_updated(schedule: Schedule, x: Tensor, t: Tensor, first: int, last: int) -> bool:
    """Whether some elements of x are replaced, and nothing reads x from then on."""
    return isinstance(t, ScatterTensor) and t.base is x and last < first


def _is_dead(schedule: Schedule, x: Tensor, t: Tensor, first: int, last: int) -> bool:
    """Whether x has been read when t is written."""
    bases = [m.tensor.base for step in schedule.steps[first:] if isinstance(step, Kernel)
             for m in step.members if isinstance(m.tensor, ScatterTensor)]
    return last < first and x not in bases


def _is_read_there(schedule: Schedule, x: Tensor, t: Tensor, first: int, last: int) -> bool:
    """Whether the step that writes t computes each element from the one of x at its place.

    An element is then in a register before it is replaced; where it is read for something else
    alone, other threads may be late.
    """
    step = schedule.steps[first]
    if last != first or (isinstance(step, FusedGemm) and x in step.operands[:2]):
        return False
    if isinstance(step, Call) and step.updated is x:
        return t is step.results[0]
    kernel = step.kernel if isinstance(step, FusedGemm) else step
    if not isinstance(kernel, Kernel) or any(m.role != "full" for m in kernel.members):
        return False
    s = kernel.builder(schedule.is_stored)
    elements = {m.tensor: kernel.element(s, m) for m in kernel.members}
    if t not in elements or any(tensor is x and index != kernel.places["full"]
                                for tensor, index in accesses(elements.values())):
        return False
    return any(e.op == "load" and e.aux[0] is x for e in _all(elements[t], elements))


def _all(e: Expr, elements: Mapping[Tensor, Expr]) -> Iterator[Expr]:
    """The expressions under one, also in other members of the kernel."""
    seen: set[Expr] = set()
    roots = [e]
    for root in roots:
        for part in reachable_expressions([root]):
            if part not in seen:
                seen.add(part)
                yield part
                if part.op == "local":
                    roots.append(elements[part.aux])


def _copies(graph: Graph, schedule: Schedule, uses: Mapping[Tensor, Sequence[int]],
            updated: Mapping[Tensor, Tensor],
            taken: Mapping[int, int]) -> Iterator[tuple[Tensor, str]]:
    """Updates that start from a copy."""
    inputs = {t: k for k, t in enumerate(graph.inputs)}
    in_place = {graph.inputs[k]: graph.outputs[j] for j, k in taken.items()}
    for k, step in enumerate(schedule.steps):
        if isinstance(step, Call):
            base = step.updated
            if base is not None and in_place.get(base) is not step.results[0]:
                yield step.results[0], "the updates of a row are added up beside its old value"
            continue
        if not isinstance(step.members[0].tensor, ScatterTensor):
            continue
        t = end = step.members[0].tensor
        while end in updated:
            end = updated[end]
        if max(uses.get(t.base, ()), default=-1) >= k or t.base in graph.outputs:
            yield t, "its old value is read afterwards"
        elif t.base in inputs and in_place.get(t.base) is not end:
            yield t, "its old value belongs to the caller"
