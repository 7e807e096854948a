"""Epilogues: what is computed from a matrix product element by element is computed per tile of it.

A kernel that reads a product in the order in which it is written becomes a function that the
library calls with every finished tile: the sums are still in the cache, and the product needs no
memory of its own unless others read it too. What a kernel computes besides, reductions say, stays
a kernel, and reads what the epilogue stores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from functrans.core.dims import Size
from functrans.lowering.loops.call import Gemm
from functrans.lowering.loops.expr import Expr, ExprBuilder, IterationSpaceMismatch
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import AnyFlag, Stored, Tensor
from functrans.lowering.schedule.group import FusionNote, Schedule, has_constant_stride
from functrans.lowering.schedule.kernel import (
    Domain,
    Kernel,
    Member,
    accesses,
    reachable_expressions,
)
from functrans.lowering.schedule.reads import Reads
from functrans.lowering.schedule.unfused import ALL_FUSED, UnfusedValues

__all__ = ["FusedGemm", "fuse_epilogues"]

class FusedGemm(Gemm):
    """A product whose elements are not stored but go through `kernel`, or are stored besides."""

    name = "gemm with epilogue"

    def __init__(self, gemm: Gemm, kernel: Kernel, results: list[Tensor],
                 reads: Collection[Tensor]) -> None:
        self.product = gemm.results[0]
        super().__init__(*gemm.operands, gemm.a_offset, gemm.b_offset, gemm.fields, self.product,
                         gemm.source, gemm.precision)
        self.operands = (*gemm.operands, *reads)
        self.results = tuple(results)  # type: ignore[arg-type]
        self.kernel = kernel


class _EpilogueRefused(Exception):
    pass


def fuse_epilogues(schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                   slower: Callable[[FusedGemm, Callable[[Tensor], bool]], str | None],
                   unfused: UnfusedValues = ALL_FUSED) -> Schedule:
    """The schedule with kernels moved into the products that they read.

    `slower` says why a product is faster without its epilogue, if it is.
    """
    steps = list(schedule.steps)
    stored, notes = set(schedule.stored), list(schedule.notes)

    def is_stored(t: Tensor) -> bool:
        return isinstance(t, Stored) or t in stored

    for gemm in reversed([s for s in schedule.steps if type(s) is Gemm]):
        product = gemm.results[0]
        readers = [k for k, s in enumerate(steps) if product in reads.of(s, is_stored)]
        if not readers:
            continue
        kernel = steps[readers[0]]
        if not isinstance(kernel, Kernel):
            continue
        try:
            if why := unfused.why([product, *[m.tensor for m in kernel.members]]):
                raise _EpilogueRefused(why)
            fused, rest = _fused(gemm, kernel, stored,
                                 len(readers) > 1 or product in outputs)
            if why := slower(fused, is_stored):
                raise _EpilogueRefused(why)
        except _EpilogueRefused as reason:
            tensor = kernel.members[0].tensor
            notes.append(FusionNote(tensor, tensor.source, f"no epilogue of a product: {reason}"))
            continue
        # other kernels read nothing that is stored only now: what they know of stays true
        stored.update(r for r in fused.results if not isinstance(r, Stored))
        steps[readers[0]:readers[0] + 1] = [fused, *rest]
        steps.remove(gemm)
    return replace(schedule, steps=steps, stored=stored, notes=notes)


def _fused(gemm: Gemm, kernel: Kernel, stored: set[Tensor],
           kept: bool) -> tuple[FusedGemm, list[Kernel]]:
    """The product with what it can compute of a kernel, and the kernel that is left."""
    product = gemm.results[0]
    f = gemm.fields
    batch, m, n = f["batch0"] * f["batch1"], f["m"], f["n"]
    if any(m.role == "scatter" for m in kernel.members):
        raise _EpilogueRefused("its elements go to computed places")
    s = kernel.shared(lambda t: isinstance(t, Stored) or t in stored)
    elements = {m: kernel.element(s, m) for m in kernel.members}
    taken = _elementwise(product, elements)
    if not taken:
        raise _EpilogueRefused("it reduces the product before anything else")
    if any(m.role == "full" and m.tensor.size != product.size for m in taken):
        raise _EpilogueRefused("it repeats the rows of the product")
    rest = [m for m in kernel.members if m not in taken]
    made = {m.tensor for m in taken}
    wanted = {e.aux for m in rest for e in reachable_expressions([elements[m]])
              if e.op == "local"} & made
    if any(product in _loads(elements[m]) for m in rest):
        raise _EpilogueRefused("another part of the kernel reads the product")
    if len(wanted - stored) > (0 if kept else 1):
        raise _EpilogueRefused("more would be stored than the product")
    results: list[Tensor] = [m.tensor for m in taken if m.tensor in stored | wanted]
    if not kept and all(isinstance(t, AnyFlag) for t in results):
        raise _EpilogueRefused("it stores nothing but whether something holds")
    inner = Kernel(Domain(batch * m, n), taken)
    reads = _checked(inner, product, inner.shared(lambda t: isinstance(t, Stored) or t in stored))
    outer = [Kernel(kernel.domain, rest)] if rest else []
    return FusedGemm(gemm, inner, [*results, *[product] * kept], reads), outer


def _elementwise(product: Tensor, elements: dict[Member, Expr]) -> list[Member]:
    """The members that follow from the product element by element, with all that they need."""
    alone: set[Tensor] = set()
    needs: dict[Tensor, set[Tensor]] = {}
    wanted: set[Tensor] = set()
    for member, e in elements.items():
        inside = {x.aux for x in reachable_expressions([e]) if x.op == "local"}
        if member.role not in ("full", "any_flag") or not inside <= alone:
            continue
        alone.add(member.tensor)
        needs[member.tensor] = inside.union(*[needs[t] for t in inside])
        if product in _loads(e) or inside & wanted:
            wanted.add(member.tensor)
    for t in list(wanted):
        wanted |= needs[t]
    return [m for m in elements if m.tensor in wanted]


def _loads(e: Expr) -> set[Tensor]:
    return {x.aux[0] for x in reachable_expressions([e]) if x.op == "load"}


def _checked(kernel: Kernel, product: Tensor, s: ExprBuilder) -> list[Tensor]:
    """What a kernel reads besides the product, if it can run on tiles."""
    try:
        found = accesses([kernel.element(s, m) for m in kernel.members])
    except IterationSpaceMismatch as e:
        raise _EpilogueRefused(f"{e.tensor} is read at another place than it is computed") from None
    for tensor, index in found:
        if not has_constant_stride(index, kernel.i):
            raise _EpilogueRefused("memory is not read in order along the rows of the product")
        if tensor is product and index != kernel.places["full"]:
            raise _EpilogueRefused("elements are read at other places than the product has them")
        if tensor is not None and tensor is not product and _is_far(index, kernel):
            raise _EpilogueRefused(f"{tensor} is read down its columns")
    return list(dict.fromkeys(t for t, _ in found if t is not None and t is not product))


def _is_far(index: Index, kernel: Kernel) -> bool:
    step: Size = index.coefficient(kernel.i)
    return not (isinstance(step, int) and step in (0, 1))
