"""Aliasing: which values of a program are in one place in memory, and which updates need a copy.

An *update* begins as a value, its base, and replaces some of its elements. Its result and the base
are in one place where nothing reads the base afterwards. An output may be in the memory of an input
that the caller donates: where it is an update of that input, where the step that writes the output
reads the input at the same place alone, or where the live range of the input has ended. The rules
are those of every backend; inputs of the body of a loop count as donated to the next value of the
carry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from functrans.core.errors import BackendError
from functrans.core.record import Record
from functrans.lowering.loops.tensor import Call, Tensor, item_size
from functrans.lowering.memory.chain_blocks import in_chains
from functrans.lowering.memory.kernel_reads import ReadsOfSteps
from functrans.lowering.memory.liveness import Update
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel

__all__ = ["NONE_TOGETHER", "Aliases", "Donated", "InputOutputAliases", "aliases_of",
           "copies_needed"]

LEAST_SHARED = 1 << 16
"""Bytes of temporaries that are worth to look for what else may be in their memory."""

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
               together: Mapping[int, Sequence[Kernel]] = NONE_TOGETHER,
               by_rows: bool = False) -> Aliases:
    """The aliases of a program whose steps make `updates`; `uses` are the steps of each value.

    Some steps compute several kernels `together`. Where kernels are computed `by_rows`, temporaries
    may be in the memory of others that a step reads last.
    """
    last = {t: steps[-1] for t, steps in uses.items()}
    kept = {*graph.inputs, *graph.outputs, *(t for t, _ in graph.constants)}
    temporaries = {u.base: u.result for k, u in enumerate(updates)
                   if u is not None and u.base not in kept and not u.reads_base
                   and last[u.base] == k}
    reads = ReadsOfSteps(schedule, together, by_rows)
    inputs = _outputs_in_inputs(graph, reads, uses, updates, temporaries, donated)
    taken = {graph.outputs[j]: graph.inputs[k] for j, k in inputs.items()}
    temporaries |= _temporaries_in_outputs(
        graph, reads, updates, uses, {*kept, *temporaries}, {*graph.inputs, *taken})
    temporaries |= in_chains(schedule, uses, {*kept, *temporaries}, set(temporaries.values()))
    if by_rows:
        temporaries |= _temporaries_in_others(
            reads, updates, uses, {*kept, *temporaries}, set(temporaries.values()))
    partial = Aliases(temporaries=temporaries)
    in_place = [u.result for u in updates if u is not None and (
        temporaries.get(u.base) is u.result or taken.get(partial.place_of(u.result)) is u.base)]
    copied = [(u.result, _why_copied(graph, u, last[u.base] > k, donated))
              for k, (step, u) in enumerate(zip(schedule.steps, updates, strict=True))
              if u is not None and u.result not in in_place and _replaces_elements(step)]
    return Aliases(inputs, copied, temporaries, in_place)


def _temporaries_in_outputs(graph: Graph, reads: ReadsOfSteps, updates: Sequence[Update | None],
                            uses: Mapping[Any, Sequence[int]], fixed: Collection[Tensor],
                            taken: Collection[Tensor]) -> dict[Tensor, Tensor]:
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
                    and _is_read_there(reads, None, x, t, first, first):
                found[x] = t
                break
    return found


def _temporaries_in_others(reads: ReadsOfSteps, updates: Sequence[Update | None],
                           uses: Mapping[Any, Sequence[int]], fixed: Collection[Tensor],
                           taken: Collection[Tensor]) -> dict[Tensor, Tensor]:
    """Temporaries that a step reads last, by what it writes at their places for later steps.

    A row of a normalisation's gradient needs its operands no longer when its results are written:
    without that the fullest step of 16 layers had three more values of 4 MB, 122 MB for 110.
    """
    ending: dict[int, list[Tensor]] = {}
    beginning: dict[int, list[Tensor]] = {}
    for x, steps in uses.items():
        if isinstance(x, Tensor) and x not in fixed and len(steps) > 1 and _is_large(x):
            ending.setdefault(steps[-1], []).append(x)
            if updates[steps[0]] is None and x not in taken:
                beginning.setdefault(steps[0], []).append(x)
    found: dict[Tensor, Tensor] = {}
    for k in sorted(ending.keys() & beginning.keys()):
        for t in beginning[k]:
            for x in ending[k]:
                if x is not t and x not in found and x.shape == t.shape and x.dtype == t.dtype \
                        and reads.is_read_in_place(k, x, t):
                    found[x] = t
                    break
    return found


def _is_large(t: Tensor) -> bool:
    return isinstance(t.size, int) and t.size * item_size(t.dtype) >= LEAST_SHARED


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


def _outputs_in_inputs(graph: Graph, reads: ReadsOfSteps, uses: Mapping[Any, Sequence[int]],
                       updates: Sequence[Update | None], temporaries: Mapping[Tensor, Tensor],
                       donated: Donated) -> dict[int, int]:
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
                        reads, updates[first], x, start, first, uses.get(x, (-1,))[-1]):
                    taken[j] = k
                    del free[k]
                    break
    return taken


def _is_updated(reads: ReadsOfSteps, update: Update | None, x: Tensor, t: Tensor, first: int,
                last: int) -> bool:
    """Whether the step that makes t replaces elements of x, and nothing else reads x from then."""
    return update is not None and update.base is x and update.result is t \
        and not update.reads_base and last == first


def _is_dead(reads: ReadsOfSteps, update: Update | None, x: Tensor, t: Tensor, first: int,
             last: int) -> bool:
    """Whether x has been read when t is written."""
    return last < first


def _is_read_there(reads: ReadsOfSteps, update: Update | None, x: Tensor, t: Tensor, first: int,
                   last: int) -> bool:
    """Whether the step that writes t reads x at the place where it writes, and not after that.

    An element is then in a register before it is replaced.
    """
    return last == first and reads.is_read_in_place(first, x, t)
