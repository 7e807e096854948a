"""Aliasing: which values of a program are in one place in memory, and which updates need a copy.

An *update* begins as a value, its base, and replaces some of its elements. Its result and the base
are in one place where nothing reads the base afterwards. An output may be in the memory of an input
that the caller donates: where it is an update of that input, where the step that writes the output
reads the input at the same place alone, or where the live range of the input has ended. The rules
are those of every backend; inputs of the body of a loop count as donated to the next value of the
carry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from functrans.core.errors import BackendError
from functrans.core.record import Record
from functrans.lowering.loops.expr import Expr, reachable_expressions
from functrans.lowering.loops.tensor import Call, Tensor
from functrans.lowering.memory.chain_blocks import in_chains
from functrans.lowering.memory.liveness import Update
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.epilogues import WithEpilogue
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel, accesses, stages_of

__all__ = ["NONE_TOGETHER", "Aliases", "Donated", "InputOutputAliases", "aliases_of",
           "copies_needed"]

Donated = Mapping[int, Collection[int]]
"""The inputs that are donated, by number, and the outputs that may take the memory of each."""


NONE_TOGETHER: Mapping[int, Sequence[Kernel]] = MappingProxyType({})


class InputOutputAliases(Record):
    """The input that each output aliases, by number; updates that need a copy, and why."""

    inputs: Mapping[int, int] = field(default_factory=dict)
    copied: Sequence[tuple[Tensor, str]] = ()


class Aliases(InputOutputAliases, eq=False):
    """What is in one place: outputs in inputs, and temporaries, by what each of them becomes."""

    temporaries: Mapping[Tensor, Tensor] = field(default_factory=dict)
    in_place: Collection[Tensor] = ()
    """The results of updates that begin where their base is."""

    def place_of(self, t: Tensor) -> Tensor:
        """The value whose place a temporary has: what all its updates become."""
        while t in self.temporaries:
            t = self.temporaries[t]
        return t


def aliases_of(graph: Graph, schedule: Schedule, updates: Sequence[Update | None],
               uses: Mapping[Any, Sequence[int]], donated: Donated,
               together: Mapping[int, Sequence[Kernel]] = NONE_TOGETHER) -> Aliases:
    """The aliases of a program whose steps make `updates`; `uses` are the steps of each value.

    Some steps compute several kernels `together`.
    """
    last = {t: steps[-1] for t, steps in uses.items()}
    kept = {*graph.inputs, *graph.outputs, *(t for t, _ in graph.constants)}
    temporaries = {u.base: u.result for k, u in enumerate(updates)
                   if u is not None and u.base not in kept and not u.reads_base
                   and last[u.base] == k}
    inputs = _outputs_in_inputs(graph, schedule, uses, updates, temporaries, donated, together)
    taken = {graph.outputs[j]: graph.inputs[k] for j, k in inputs.items()}
    temporaries |= _temporaries_in_outputs(
        graph, schedule, updates, uses, {*kept, *temporaries}, {*graph.inputs, *taken}, together)
    temporaries |= in_chains(schedule, uses, {*kept, *temporaries}, set(temporaries.values()))
    partial = Aliases(temporaries=temporaries)
    in_place = [u.result for u in updates if u is not None and (
        temporaries.get(u.base) is u.result or taken.get(partial.place_of(u.result)) is u.base)]
    copied = [(u.result, _why_copied(graph, u, last[u.base] > k, donated))
              for k, (step, u) in enumerate(zip(schedule.steps, updates, strict=True))
              if u is not None and u.result not in in_place and _replaces_elements(step)]
    return Aliases(inputs, copied, temporaries, in_place)


def _temporaries_in_outputs(graph: Graph, schedule: Schedule, updates: Sequence[Update | None],
                            uses: Mapping[Any, Sequence[int]], fixed: Collection[Tensor],
                            taken: Collection[Tensor],
                            together: Mapping[int, Sequence[Kernel]]) -> dict[Tensor, Tensor]:
    """Temporaries in the memory of an output whose elements are computed in their places."""
    ending: dict[int, list[Tensor]] = {}
    for x, steps in uses.items():
        if isinstance(x, Tensor) and x not in fixed and len(steps) > 1:
            ending.setdefault(steps[-1], []).append(x)
    found: dict[Tensor, Tensor] = {}
    for t in dict.fromkeys(graph.outputs):
        if t in taken or t not in uses or updates[first := uses[t][0]] is not None:
            continue
        for x in ending.get(first, ()):
            if x is not t and x not in found and x.shape == t.shape and x.dtype == t.dtype \
                    and _is_read_there(schedule, None, x, t, first, first, together):
                found[x] = t
                break
    return found


def _replaces_elements(step: Step) -> bool:
    """Whether a user wrote the update: who asks for updates in place is told of its copy."""
    return not isinstance(step, Call) or step.replaces_elements


def _why_copied(graph: Graph, update: Update, is_read_later: bool, donated: Donated) -> str:
    base = update.base
    if update.reads_base or is_read_later or base in graph.outputs:
        return "its old value is read afterwards"
    if base not in graph.inputs:
        return "its old value is a constant of the program"
    if graph.inputs.index(base) in donated:
        return "no other result is in the memory of this argument"
    return "its old value belongs to the caller"


def copies_needed(tensor: Tensor, reason: str) -> BackendError:
    """The error where `require_inplace` was asked for, and a value is copied first."""
    return BackendError(f"an update of a {tensor.dtype}{list(tensor.shape)} needs a copy.",
                        where=tensor.source, why=f"{reason}.",
                        fix="jit(f, donate_argnums=...) gives the program the memory of arguments "
                            "that are not used again")


# --------------------------------------------------------------------------- donated inputs


def _outputs_in_inputs(graph: Graph, schedule: Schedule, uses: Mapping[Any, Sequence[int]],
                       updates: Sequence[Update | None], temporaries: Mapping[Tensor, Tensor],
                       donated: Donated,
                       together: Mapping[int, Sequence[Kernel]]) -> dict[int, int]:
    taken: dict[int, int] = {}
    free = {k: x for k, x in enumerate(graph.inputs) if k in donated and x not in graph.outputs}
    before = {result: base for base, result in temporaries.items()}
    for is_possible in (_is_updated, _is_read_there, _is_dead):
        for j, t in enumerate(graph.outputs):
            start = t
            while start in before:
                start = before[start]
            if j in taken or start not in uses or graph.outputs.index(t) != j or not free:
                continue
            first = uses[start][0]
            for k, x in free.items():
                if j in donated[k] and x.shape == t.shape and x.dtype == t.dtype and is_possible(
                        schedule, updates[first], x, start, first, uses.get(x, (-1,))[-1],
                        together):
                    taken[j] = k
                    del free[k]
                    break
    return taken


def _is_updated(schedule: Schedule, update: Update | None, x: Tensor, t: Tensor, first: int,
                last: int, together: Mapping[int, Sequence[Kernel]]) -> bool:
    """Whether the step that makes t replaces elements of x, and nothing else reads x from then."""
    return update is not None and update.base is x and update.result is t \
        and not update.reads_base and last == first


def _is_dead(schedule: Schedule, update: Update | None, x: Tensor, t: Tensor, first: int,
             last: int, together: Mapping[int, Sequence[Kernel]]) -> bool:
    """Whether x has been read when t is written."""
    return last < first


def _is_read_there(schedule: Schedule, update: Update | None, x: Tensor, t: Tensor, first: int,
                   last: int, together: Mapping[int, Sequence[Kernel]]) -> bool:
    """Whether the step that writes t reads x at the place where it writes, and not after that.

    An element is then in a register before it is replaced. Where t does not depend on it, other
    threads may still read it, and so may other kernels of the same step.
    """
    step = schedule.steps[first]
    if first in together:
        writers = [k for k in together[first] if any(m.tensor is t for m in k.members)]
        others = [k for k in together[first] if k not in writers]
        if not writers or any(x in k.loads(k.builder(schedule.is_stored)) for k in others):
            return False
        (step,) = writers
    if last != first or (isinstance(step, WithEpilogue) and x in step.multiplied):
        return False
    kernel = step.kernel if isinstance(step, WithEpilogue) else step
    if not isinstance(kernel, Kernel) or any(m.role != "full" for m in kernel.members):
        return False
    s = kernel.builder(schedule.is_stored)
    elements = {m.tensor: kernel.element(s, m) for m in kernel.members}
    if t not in elements or any(tensor is x and index != kernel.places["full"]
                                for tensor, index in accesses(elements.values())):
        return False
    stages = stages_of(kernel, elements)
    order = {m.tensor: (stages[m.tensor], n) for n, m in enumerate(kernel.members)}
    readers = [m for m, e in elements.items() if any(y is x for y, _ in accesses([e]))]
    return bool(readers) and max(order[m] for m in readers) <= order[t] \
        and any(e.op == "load" and e.aux[0] is x for e in _all(elements[t], elements))


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
