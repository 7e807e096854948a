"""Products: results in the layout of the transposes that follow, and epilogues."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.expr import (
    Expr,
    ExprBuilder,
    IterationSpaceMismatch,
    reachable_expressions,
)
from functrans.lowering.loops.index import ZERO, Index, LoopVar, unflatten
from functrans.lowering.loops.tensor import (
    AnyFlag,
    Call,
    Conv,
    Gemm,
    Map,
    Stored,
    Tensor,
    tensor_text,
)
from functrans.lowering.schedule.group import FusionNote, Schedule, has_constant_stride
from functrans.lowering.schedule.kernel import Domain, Kernel, Member, Reads, accesses
from functrans.lowering.schedule.step_list import StepList
from functrans.lowering.schedule.unfused import ALL_FUSED, UnfusedValues

__all__ = ["FusedConv", "FusedGemm", "WithEpilogue", "absorb_product_transposes",
           "fuse_epilogues", "matrix_of"]


# --- Products write their results in the layout of the transposes that follow

NAMES = ("batch0", "batch1", "row", "col")


def absorb_product_transposes(schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                              unfused: UnfusedValues = ALL_FUSED) -> Schedule:
    """The schedule without kernels that only give a product another order of dimensions."""
    products = [s for s in schedule.steps if type(s) is Gemm]
    if not products:
        return schedule
    steps, kept = StepList(schedule.steps, reads, schedule.is_stored), set(outputs)
    for gemm in products:
        product = gemm.results[0]
        readers = steps.readers(product)
        if len(readers) != 1 or product in kept:
            continue
        kernel = readers[0]
        if not isinstance(kernel, Kernel) or len(kernel.members) != 1 or \
                kernel.members[0].role != "full":
            continue
        moved = kernel.members[0].tensor
        if unfused.why([product, moved]):
            continue
        fields = next((found for f in _batches(gemm)
                       if (found := _written(gemm, f, moved, schedule)) is not None), None)
        if fields is not None:
            steps.replace(kernel, [gemm.with_result(moved, fields)])
            steps.replace(gemm)
    return replace(schedule, steps=steps.steps())


def _batches(gemm: Gemm) -> Iterator[Mapping[str, Size]]:
    """The fields of a product as they are, and with its batch as two dimensions of the result."""
    f = gemm.fields
    yield f
    inner: Size = 1
    for n in reversed(gemm.results[0].shape[:-2]):
        inner = inner * n
        if f["batch0"] == 1 and isinstance(inner, int) and isinstance(f["batch1"], int) \
                and 1 < inner < f["batch1"] and f["batch1"] % inner == 0:
            yield {**f, "batch0": f["batch1"] // inner, "batch1": inner,
                   **{f"{x}_batch0": f[f"{x}_batch1"] * inner for x in "abc"}}


def _written(gemm: Gemm, f: Mapping[str, Size], moved: Tensor,
             schedule: Schedule) -> dict[str, Size] | None:
    """The fields of a product that writes `moved`, if that has its elements in another order."""
    product = gemm.results[0]
    sizes = (f["batch0"], f["batch1"], f["m"], f["n"])
    if moved.dtype != product.dtype or not isinstance(moved, Map) or not all(
            isinstance(n, int) for n in sizes) or moved.size != product.size:
        return None  # a repeated or a cut product is more, or less, than a movement
    variables = [LoopVar(name, n) for name, n in zip(NAMES, sizes)]
    parts = [Index.of(v) if n != 1 else ZERO for v, n in zip(variables, sizes)]
    at = ZERO
    for name, part in zip(NAMES, parts):
        at = at + part * f[f"c_{name}"]
    axes = [k for k, n in enumerate(sizes) if n != 1]
    for order in itertools.permutations(axes):
        if order and order[-1] < 2:
            continue  # elements one by one
        strides: list[Size] = [0, 0, 0, 0]
        step: Size = 1
        for k in reversed(order):
            strides[k] = step
            step = step * sizes[k]
        place = ZERO
        for part, stride in zip(parts, strides):
            place = place + part * stride
        s = ExprBuilder(schedule.is_stored)
        e = moved.define(s, unflatten(place, moved.shape))
        if e.op != "load" or e.aux[0] is not product:
            return None  # more than a movement, in whatever order
        if e.aux[1] == at:
            return {**f, **{f"c_{name}": n for name, n in zip(NAMES, strides)}}
    return None


# --- epilogues

class WithEpilogue(Call):
    """A call whose elements are not stored but go through `kernel`, or are stored besides.

    `product` is what the call alone computes, of the `multiplied` operands.
    """

    product: Tensor
    kernel: Kernel
    multiplied: tuple[Tensor, ...]

    def _computes(self, call: Call, kernel: Kernel, results: list[Tensor],
                  reads: Collection[Tensor]) -> None:
        (self.product,), self.kernel, self.multiplied = call.results, kernel, call.operands
        self.operands = (*call.operands, *reads)
        self.results = tuple(results)


class FusedGemm(WithEpilogue, Gemm):
    """A product of matrices with what is computed of its elements."""

    name = "gemm with epilogue"

    def __init__(self, gemm: Gemm, kernel: Kernel, results: list[Tensor],
                 reads: Collection[Tensor]) -> None:
        Gemm.__init__(self, gemm.a, gemm.b, gemm.a_offset, gemm.b_offset, gemm.fields,
                      gemm.results[0], gemm.source, gemm.precision, gemm.terms, gemm.after)
        self._computes(gemm, kernel, results, reads)


class FusedConv(WithEpilogue, Conv):
    """A convolution with what is computed of its elements."""

    name = "convolution with epilogue"

    def __init__(self, conv: Conv, kernel: Kernel, results: list[Tensor],
                 reads: Collection[Tensor]) -> None:
        x, w = conv.operands
        Conv.__init__(self, x, w, conv.offsets, conv.fields, conv.results[0], conv.source,
                      conv.precision)
        self._computes(conv, kernel, results, reads)


def matrix_of(call: Gemm | Conv) -> tuple[Size, Size] | None:
    """Rows and columns of the matrix that a call computes, if its elements are in their order.

    A convolution has places of its images as rows, and features as columns.
    """
    f: Mapping[str, Any] = call.fields
    if isinstance(call, Gemm):
        return f["batch0"] * f["batch1"] * f["m"], f["n"]
    features, step = f["out_features"] * f["groups"], f["out_features"] * f["groups"]
    if f["out_feature"] != 1 or (f["groups"] != 1 and f["out_group"] != f["out_features"]):
        return None
    rows: Size = 1
    for n, stride in zip((f["batch"], *f["out_size"])[::-1],
                         (f["out_batch"], *f["out_space"])[::-1], strict=True):
        if n != 1 and stride != step:
            return None
        rows, step = rows * n, step * n
    return rows, features


class _EpilogueRefused(Exception):
    pass


def fuse_epilogues(schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                   slower: Callable[[FusedGemm | FusedConv, Callable[[Tensor], bool]], str | None],
                   unfused: UnfusedValues = ALL_FUSED, of_convolutions: bool = False) -> Schedule:
    """The schedule with kernels moved into the products that they read.

    `slower` says why a product is faster without its epilogue, if it is. Only some targets have
    epilogues `of_convolutions`.
    """
    products: list[Gemm | Conv] = [
        s for s in schedule.steps if type(s) is Gemm
        or (of_convolutions and type(s) is Conv and matrix_of(s) is not None)]
    if not products:
        return schedule
    stored, notes, returned = set(schedule.stored), list(schedule.notes), set(outputs)

    def is_stored(t: Tensor) -> bool:
        return isinstance(t, Stored) or t in stored

    steps = StepList(schedule.steps, reads, is_stored)
    for call in reversed(products):
        product = call.results[0]
        readers = steps.readers(product)
        if not readers:
            continue
        kernel = readers[0]
        if not isinstance(kernel, Kernel):
            continue
        try:
            if apart := unfused.why([product, *[m.tensor for m in kernel.members]]):
                raise _EpilogueRefused(apart)
            fused, rest = _fused(call, kernel, stored,
                                 len(readers) > 1 or product in returned)
            if why := slower(fused, is_stored):
                raise _EpilogueRefused(why)
        except _EpilogueRefused as reason:
            tensor = kernel.members[0].tensor
            notes.append(FusionNote(tensor, tensor.source, f"no epilogue of a product: {reason}"))
            continue
        # other kernels read nothing that is stored only now: what they know of stays true
        stored.update(r for r in fused.results if not isinstance(r, Stored))
        steps.replace(kernel, [fused, *rest])
        steps.replace(call)
    return replace(schedule, steps=steps.steps(), stored=stored, notes=notes)


def _fused(call: Gemm | Conv, kernel: Kernel, stored: set[Tensor],
           kept: bool) -> tuple[FusedGemm | FusedConv, list[Kernel]]:
    """The product with what it can compute of a kernel, and the kernel that is left."""
    product = call.results[0]
    matrix = matrix_of(call)
    assert matrix is not None
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
    inner = Kernel(Domain(*matrix), taken)
    reads = _checked(inner, product, inner.shared(lambda t: isinstance(t, Stored) or t in stored))
    outer = [Kernel(kernel.domain, rest)] if rest else []
    results += [product] * kept
    return (FusedGemm(call, inner, results, reads) if isinstance(call, Gemm)
            else FusedConv(call, inner, results, reads)), outer


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
        what = tensor_text(e.tensor)
        raise _EpilogueRefused(f"the {what} is read at another place than it is computed") from None
    for tensor, index in found:
        if not has_constant_stride(index, kernel.i):
            raise _EpilogueRefused("memory is not read in order along the rows of the product")
        if tensor is product and index != kernel.places["full"]:
            raise _EpilogueRefused("elements are read at other places than the product has them")
        if tensor is not None and tensor is not product and _is_far(index, kernel):
            raise _EpilogueRefused(f"the {tensor_text(tensor)} is read down its columns")
    return list(dict.fromkeys(t for t, _ in found if t is not None and t is not product))


def _is_far(index: Index, kernel: Kernel) -> bool:
    step: Size = index.coefficient(kernel.i)
    return not (isinstance(step, int) and step in (0, 1))
