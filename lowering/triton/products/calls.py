"""Calls as launches of templates: products of matrices with what follows them, and others."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from functrans.core.dtypes import float32
from functrans.core.jaxpr import Equation, Var
from functrans.core.precision import Precision
from functrans.core.primitive import Primitive
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import (
    FLOAT8,
    Call,
    Conv,
    Gemm,
    Map,
    Stored,
    Tensor,
    dtype_name,
)
from functrans.lowering.passes.attention.calls import Attend, AttendGradient
from functrans.lowering.rules.elementwise import convert
from functrans.lowering.rules.filter_gradients import sums_of_taps
from functrans.lowering.rules.graph import CALLS, CallRule
from functrans.lowering.rules.reduce import SUMMED_CONTRACTIONS, summed_conv, summed_dot_general
from functrans.lowering.schedule.epilogue_costs import LONG_EPILOGUE, additions_of
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.target import Target
from functrans.lowering.schedule.tile_programs import TileProgram
from functrans.lowering.triton.kernels.kernel_source import (
    KernelOperand,
    Launches,
    SizeArguments,
)
from functrans.lowering.triton.products.attention import launches_of_attention
from functrans.lowering.triton.products.choosing import BY_MODEL, MOST_TRIED, Chooser
from functrans.lowering.triton.products.convolutions import launches_of_convolution
from functrans.lowering.triton.products.epilogues import (
    STORED_TYPES,
    EpilogueWriter,
    check_length,
    main_result,
)
from functrans.lowering.triton.products.tile_programs import launches_of_tiles
from functrans.lowering.triton.templates import matmul, matmul_configs
from functrans.lowering.triton.templates import single_program as lone
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    TemplateKernel,
)
from functrans.lowering.triton.templates.matmul import (
    MatmulConfig,
    MatmulOperand,
    MatmulProblem,
    MatmulTerm,
)
from functrans.lowering.triton.templates.notes import KernelNotes, NamedValue
from functrans.lowering.triton.templates.registers import expected_spills
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.precision import resolved_precision

__all__ = ["IN_PHASES", "RULES", "launches_of", "precision_of"]

MATRIX_TYPES = {"f64": "fp64", "f32": "fp32", "bf16": "bf16", "f16": "fp16", "f8e4": "fp8e4nv",
                "f8e5": "fp8e5"}
"""What products have as operands here, and convolutions of 16 and 32 bits."""
SIXTEEN_AND_THIRTY_TWO = {"f32", "bf16", "f16"}
ALWAYS_SHORT, SHORT, NARROW = 4, 8, 16
"""Terms of sums that tensor cores, which multiply 16 by 16 and more, have no use for: of all
products, and of those that are narrow in one direction. Others are multiplied without them."""
FEW_FEATURES = 2
"""Of a group of a convolution, which is summed like elements of any kernel then: 7 x 7 taps over
128 x 32 x 32 x 96 of bfloat16 take 1.7 ms on the tensor cores of an H100."""
MOST_TAPS = 64
"""Terms that such a sum has written out."""
LONG_SUM = 1 << 12
"""Terms of the sum of a tap of a filter from which on all taps are summed in one walk over both
operands. The gradient of 3 x 3 taps over 64 x 64 x 64 x 144 of float32 took 0.88 ms on an H100 by
nine walks over 302 MB; by one a step of a network of such filters takes 9.9 ms, before 11.8."""
LARGE_MATRIX = 1 << 18
"""Elements that memory takes as long for as for a launch."""
NARROW_TYPES = {"f8e4": "fp8e4nv", "f8e5": "fp8e5", "i8": "i8"}
"""Of weights: 16 bits have all their values."""
OPERAND_TYPES = MATRIX_TYPES | NARROW_TYPES
LEAST_ROWS, MOST_ROWS = 2, 64
"""Of a product that converts weights for each tile of its rows again. With 4096 x 4096 of int8 an
H100 takes 14.3 us for 4 rows (converted in memory before: 35.7; bfloat16: 13.3), 16.9 for 16
(37.8), 28.0 for 64 (38.6); 128 rows of float8 took 57.5, and converted before 51.9."""
EXACT_AFTER = 128  # products of float8 that are added up in 14 bits, where more are asked for
PRECISIONS = {Precision.DEFAULT: "tf32", Precision.HIGH: "tf32x3", Precision.HIGHEST: "ieee"}


def _known(eqn: Equation, xs: list[Tensor], in_phase: bool = False) -> Any:
    """The call of an equation whose dtypes the templates have, else sums of products.

    A phase of a loop keeps the matrix of a vector where it is: it is a product there.
    """
    if dtype_name(eqn.outvars[0].aval.dtype) in FLOAT8:
        return _narrowed(eqn, xs)
    narrow = None if in_phase else _of_narrow_weights(eqn, xs)
    if narrow is not None:
        return narrow
    call = CALLS[eqn.primitive](eqn, xs)
    types = {x.dtype for x in xs}
    out = dtype_name(eqn.outvars[0].aval.dtype)
    if isinstance(call, Gemm) and types <= SIXTEEN_AND_THIRTY_TWO \
            and (_is_short(call) or (_is_narrow(call) and not in_phase)):
        return summed_dot_general(eqn, xs, SHORT)
    if isinstance(call, Conv) and _is_depthwise(call):
        taps = None if in_phase else sums_of_taps(eqn, xs, MOST_TAPS, LONG_SUM)
        return summed_conv(eqn, xs, MOST_TAPS) if taps is None else taps
    known = len(types) == 1 and (types | {out}) <= MATRIX_TYPES.keys()
    if isinstance(call, Tensor) or (isinstance(call, Gemm) and known) \
            or (isinstance(call, Conv) and known and types <= SIXTEEN_AND_THIRTY_TWO):
        return call
    return SUMMED_CONTRACTIONS[eqn.primitive](eqn, xs)


def _of_narrow_weights(eqn: Equation, xs: list[Tensor]) -> Gemm | None:
    """A product of few rows with weights of 8 bits, which are converted as their tiles are read.

    In memory they are written and read as 16 bits besides.
    """
    if eqn.primitive is not dot_general_p or len(xs) != 2 or not isinstance(xs[1], Map) \
            or not xs[1].converts or xs[0].dtype not in ("bf16", "f16"):
        return None
    x, w = xs
    (bits,) = w.operands
    if w.dtype != x.dtype or bits.dtype not in NARROW_TYPES or len(w.shape) != 2 or not all(
            isinstance(n, int) for n in (*x.shape, *w.shape)):
        return None
    rows, size = (math.prod([int(n) for n in t.shape]) for t in (x, w))
    if not isinstance(bits, Stored) or rows > MOST_ROWS * int(max(w.shape)) \
            or size < LARGE_MATRIX:
        return None
    call = CALLS[eqn.primitive](eqn, [x, bits])
    if type(call) is not Gemm or call.b is not bits or _is_short(call) or _is_narrow(call):
        return None
    m, n = int(call.fields["m"]), int(call.fields["n"])
    return call if LEAST_ROWS <= m <= MOST_ROWS <= n else None


def _is_short(call: Gemm) -> bool:
    """Whether sums are too short for tensor cores: they are written out, and fused with others."""
    m, n, k = [size if isinstance(size, int) else math.inf
               for size in (call.fields[name] for name in ("m", "n", "k"))]
    return k <= ALWAYS_SHORT or (k <= SHORT and min(m, n) <= NARROW)


def _is_depthwise(call: Conv) -> bool:
    """Whether a group has so few features that tensor cores would multiply zeros for the most part.

    Of the gradient of the filter the batch is summed, and what has few features is the batch.
    """
    f = call.fields
    groups, outs, ins, batch = (n if isinstance(n, int) else 1 << 30 for n in (
        f["groups"], f["out_features"], f["in_features"], f["batch"]))
    return groups > 1 and outs <= FEW_FEATURES and min(ins, batch) <= FEW_FEATURES


def _is_narrow(call: Gemm) -> bool:
    """Whether a sum is as fast as a product, as elements are read once, or few times.

    A sum along the columns of a matrix takes no epilogue: a launch more, which a large one hides.
    """
    f = call.fields
    m, n, k = [size if isinstance(size, int) else math.inf for size in (f["m"], f["n"], f["k"])]
    if m * n <= NARROW:
        return True
    if min(m, n) > 1:
        return False
    stride = f["a_col"] if n == 1 else f["b_row"]
    batches = f["batch0"] * f["batch1"]
    size = max(m, n) * k * (batches if isinstance(batches, int) else math.inf)
    return stride == 1 or max(m, n) <= NARROW or LARGE_MATRIX <= size < math.inf


def _narrowed(eqn: Equation, xs: list[Tensor]) -> Any:
    """A product in float8: rounded once, from float32."""
    (out,) = eqn.outvars
    call = _known(eqn.replace(outvars=(Var(out.aval.with_dtype(float32)),)), xs)
    if call is None:
        return None
    y = call if isinstance(call, Tensor) else call.results[0]
    dtype = dtype_name(out.aval.dtype)
    assert dtype is not None
    made = Map(y.shape, dtype, [y], lambda s, i: convert(s, s.read(y, i), dtype), source=eqn.source)
    return made if isinstance(call, Tensor) else (call, [made])


MOST_LOST, LEAST_LOST = 1.1, 2000.0
"""A product that is so many times and nanoseconds slower as its class has it has its own kernel."""

RULES: dict[Primitive, CallRule] = {dot_general_p: _known, conv_general_dilated_p: _known}
IN_PHASES: dict[Primitive, CallRule] = {dot_general_p: partial(_known, in_phase=True)}


def launches_of(call: Call, schedule: Schedule, unaligned: Collection[Tensor] = (),
                alone: bool = False, choose: Chooser = BY_MODEL,
                any_size: bool = False) -> Launches | None:
    """The launches of a call that a template computes, in the configuration that is chosen.

    Tensors that are `unaligned` are not aligned to 16 bytes. `alone`: one program computes it all.
    `any_size`: products of a class of sizes have one configuration.
    """
    if isinstance(call, Gemm):
        return _product(call, schedule, unaligned, alone, choose, any_size)
    if isinstance(call, Conv):
        return launches_of_convolution(call, precision_of(call), schedule, unaligned, alone, choose)
    if isinstance(call, TileProgram):
        return _tiles(call, unaligned, choose)
    if isinstance(call, (Attend, AttendGradient)):
        return launches_of_attention(call, precision_of(call), unaligned, choose)
    return None


def precision_of(call: Gemm | Conv | Attend | AttendGradient) -> str:
    """That of products of float32, in Triton's words."""
    return PRECISIONS[resolved_precision(call.precision)]


def _tiles(call: TileProgram, unaligned: Collection[Tensor], choose: Chooser) -> Launches:
    found = launches_of_tiles(call, {v.tensor: _precision_of(v.product.gemm, v.product.k)
                                     for v in call.values if v.product is not None})
    if n := choose.spills(found):
        raise UnsupportedKernel(f"it spills {n} numbers of each thread")
    return found


def _precision_of(call: Gemm, k: int) -> str:
    return "ieee" if k <= SHORT else precision_of(call)


# --------------------------------------------------------------------------- products


def _matmul(call: Gemm, unaligned: Collection[Tensor]) -> MatmulProblem:
    if not all(isinstance(n, int) for n in (*call.fields.values(), call.a_offset, call.b_offset)):
        raise UnsupportedKernel("a product of matrices of symbolic sizes")
    f = {name: int(n) for name, n in call.fields.items()}

    def operand(g: Gemm, t: Tensor, name: str, offset: object) -> MatmulOperand:
        row, col, batch0, batch1 = [int(g.fields[f"{name}_{d}"])
                                    for d in ("row", "col", "batch0", "batch1")]
        dtype = OPERAND_TYPES[t.dtype]
        aligned = t not in unaligned and isinstance(offset, int) \
            and offset * BYTES[dtype] % 16 == 0
        return MatmulOperand(dtype, row, col, (batch0, batch1), aligned)

    def term(g: Gemm) -> MatmulTerm:
        return MatmulTerm(operand(g, g.a, "a", g.a_offset), operand(g, g.b, "b", g.b_offset),
                          int(g.fields["k"]))

    z = call.product if isinstance(call, FusedGemm) else call.results[0]
    a, b, k = term(call)
    return MatmulProblem(f["m"], f["n"], k, a, b, operand(call, z, "c", 0),
                         (f["batch0"], f["batch1"]), precision=_precision_of(call, k),
                         exact_after=_exact_after(call),
                         more=tuple([term(g) for g in call.terms]))


def _exact_after(call: Gemm) -> int:
    is_exact = resolved_precision(call.precision) is not Precision.DEFAULT
    return EXACT_AFTER if is_exact and call.operands[0].dtype in FLOAT8 else 0


def _operands(call: Gemm) -> dict[str, tuple[KernelOperand, int]]:
    return {f"{name}_{k}" if call.terms else name: (t, int(offset) * BYTES[OPERAND_TYPES[t.dtype]])
            for k, g in enumerate((call, *call.terms))
            for name, t, offset in (("a", g.a, g.a_offset), ("b", g.b, g.b_offset))}


def _product(call: Gemm, schedule: Schedule, unaligned: Collection[Tensor], alone: bool,
             choose: Chooser, any_size: bool) -> Launches:
    p = _matmul(call, unaligned)
    target = choose.target

    def kernels(p: MatmulProblem, c: MatmulConfig) -> list[TemplateKernel]:
        if alone:
            return lone.kernels(p, c, choose.target.shared)
        return matmul.kernels(p, c, target=target, any_size=any_size)

    def launches(c: MatmulConfig) -> Launches:
        if isinstance(call, FusedGemm):
            return _fused(call, schedule, unaligned, p, c, kernels, any_size)
        return Launches([_noted(k, c) for k in kernels(p, c)],
                        _operands(call) | {"c": (call.results[0], 0)})

    if alone:
        return launches(lone.single_program_config(p))
    configs = _fitting(p, matmul_configs.configs(p, target), choose.target)
    if any_size:
        configs = _shared(p, configs, choose.target)
    if isinstance(call, FusedGemm):
        configs = _behind(call, schedule, p, configs, target)

    def expected(c: MatmulConfig) -> int:
        """What spills in a tile spills in others of which threads have as many numbers."""
        known = [choose.spills(launches(o)) for o in configs[:MOST_TRIED]
                 if o.numbers <= c.numbers]
        assert isinstance(call, FusedGemm)
        return max(known, default=0) or _expected_spills(call, schedule, p, c, any_size)

    batch = f"{p.batches} x " if p.batches > 1 else ""
    terms = f"sum of {len(p.terms)} products" if p.more else "product"
    more = f", and {len(call.kernel.members)} values from it" if isinstance(call, FusedGemm) else ""
    return launches(choose.among(
        f"{terms} {batch}{p.m} x {p.contracted} x {p.n} of {p.a.dtype}{more}",
        (p, *[t.dtype for t in (*call.operands, *call.results)]),
        configs, launches, lambda c: matmul_configs.estimate(p, c, target),
        matmul_configs.smaller(p),
        may_spill=not isinstance(call, FusedGemm),
        expected=expected if isinstance(call, FusedGemm) else None,
        lighter=lambda: _lighter(call, p, configs[0], target)))


def _behind(call: FusedGemm, schedule: Schedule, p: MatmulProblem, configs: list[MatmulConfig],
            target: Target) -> list[MatmulConfig]:
    """Configurations for an epilogue: a long one is waited for, where nothing hides it."""
    additions = additions_of(call.kernel, schedule.is_stored)
    if additions < LONG_EPILOGUE:
        return configs
    check_length(call, schedule)
    configs = [_with_more_warps(p, c, target) for c in configs]
    if p.a.dtype != "fp32":
        return configs
    figures, size = target.measured, p.m * p.n * p.batches
    waited = size * (additions * figures.epilogue_operation
                     + sum(BYTES[STORED_TYPES.get(t.dtype, "fp32")] for t in call.results)
                     / figures.bandwidth)
    hidden = _fitting(p, matmul_configs.side_by_side(p, target), target)
    return sorted([*configs, *hidden], key=lambda c: matmul_configs.estimate(p, c, target)
                  + (0.0 if c in hidden else waited))


def _with_more_warps(p: MatmulProblem, c: MatmulConfig, target: Target) -> MatmulConfig:
    """A configuration in which a multiprocessor has more than a warp for each of its schedulers.

    Where each has one tile, nothing else hides what an instruction of a long epilogue waits for.
    """
    tiles = -(-p.m // c.block_m) * -(-p.n // c.block_n) * p.batches * c.splits
    if c.warps != 4 or tiles > target.multiprocessors or c.block_m * c.block_n < 64 * 64:
        return c
    return replace(c, warps=8)


def _of_class(p: MatmulProblem) -> MatmulProblem:
    """A product of the largest sizes of its class."""
    extent = SizeArguments(are_arguments=True).extent
    return replace(p, m=extent(p.m), n=extent(p.n), k=extent(p.k),
                   batch=(1, extent(p.batches)))


def _shared(p: MatmulProblem, own: list[MatmulConfig], target: Target) -> list[MatmulConfig]:
    """Configurations that products of a class share, before `own` ones of these sizes.

    Of 600 products of random sizes the model thinks one in four more than 1.1 times slower as its
    class has it: these have their own, where that is worth another kernel.
    """
    shared = _fitting(p, matmul_configs.configs(_of_class(p), target), target)[0]
    lost, best = (matmul_configs.estimate(p, c, target) for c in (shared, own[0]))
    return own if lost > MOST_LOST * best and lost - best > LEAST_LOST else [shared, *own]


def _fitting(p: MatmulProblem, configs: list[MatmulConfig], target: Target) -> list[MatmulConfig]:
    """Those whose tiles fit the shared memory twice: one is computed while the next comes."""
    size = BYTES[p.a.dtype]
    if not target.has_copy_engine:
        configs = [replace(c, descriptors=False, persistent=False, parts=1) for c in configs]
    fit = [c for c in configs
           if 2 * (c.block_m + c.block_n) * c.block_k * size <= target.shared]
    return list(dict.fromkeys(fit)) or configs[-1:]


def _fused(call: FusedGemm, schedule: Schedule, unaligned: Collection[Tensor], plain: MatmulProblem,
           chosen: MatmulConfig,
           kernels: Callable[[MatmulProblem, MatmulConfig], list[TemplateKernel]],
           any_size: bool) -> Launches:
    """A product whose results have their elements where the product has them."""
    main = main_result(call)
    c = replace(plain.c, dtype=STORED_TYPES[main.dtype], row=plain.n, col=1,
                batch=(plain.batch[1] * plain.m * plain.n, plain.m * plain.n),
                aligned=main not in unaligned)
    epilogue, pointers = _epilogue_writer(call, schedule, plain, chosen, any_size).written()
    p = replace(plain, c=c, epilogue=epilogue)
    made = [_noted(k, chosen, epilogue.values) for k in kernels(p, chosen)]
    return Launches(made, _operands(call) | {"c": (main, 0)} | pointers)


def _epilogue_writer(call: FusedGemm, schedule: Schedule, p: MatmulProblem, chosen: MatmulConfig,
                     any_size: bool) -> EpilogueWriter:
    """What writes the epilogue of a product over its tiles."""
    numbers = SizeArguments(any_size)
    # tiles are those of the main loop
    whole = not chosen.together and (chosen.splits == 1 or chosen.last_combines)
    even_rows, even_cols = (whole and not any_size and size % block == 0
                            for size, block in ((p.m, chosen.block_m), (p.n, chosen.block_n)))
    batched = "" if p.batches == 1 else "(b0 * batch1 + b1) * m + "
    lines = [f"o = {batched}rows", "i = cols"]
    if not even_rows:
        bound = "" if p.batches == 1 else f" & (o < {numbers.text(p.batches * p.m)})"
        lines.append(f"o_inside = (rows < m){bound}")
    if not even_cols:
        lines.append("i_inside = cols < n")
    masks = {"o": None if even_rows else "o_inside", "i": None if even_cols else "i_inside"}
    return EpilogueWriter(call, schedule, main_result(call), numbers, lines, masks,
                          is_line=1 in (p.m, p.n))


def _noted(kernel: TemplateKernel, c: MatmulConfig,
           values: Sequence[NamedValue] = ()) -> TemplateKernel:
    """A launch of a product, and what the loops of its tiles are."""
    tiles = {"m": c.block_m, "n": c.block_n, "k": c.block_k}
    return replace(kernel, notes=KernelNotes(values, tiles))


def _expected_spills(call: FusedGemm, schedule: Schedule, p: MatmulProblem, chosen: MatmulConfig,
                     any_size: bool) -> int:
    """The numbers that threads of a product are certain to keep out of registers, uncompiled."""
    epilogue, _ = _epilogue_writer(call, schedule, p, chosen, any_size).written()
    return expected_spills(epilogue.lines, epilogue.result, chosen.numbers // chosen.parts,
                           chosen.parts)


def _lighter(call: Gemm, p: MatmulProblem, best: MatmulConfig,
             target: Target) -> list[MatmulConfig]:
    """Configurations with room for an epilogue that are faster than the `best` one without it.

    A kernel of the epilogue is a launch more, before which the product is written and read.
    """
    if not isinstance(call, FusedGemm):
        return []
    figures = target.measured
    apart = matmul_configs.estimate(p, best, target) + figures.launch \
        + 2 * p.batches * p.m * p.n * BYTES[p.c.dtype] / figures.bandwidth
    beside = sorted(matmul_configs.side_by_side(p, target), key=lambda c: c.numbers) \
        if p.a.dtype == "fp32" else []
    fitting = _fitting(p, [*beside, *matmul_configs.lighter(p, target)], target)
    return [c for c in fitting if matmul_configs.estimate(p, c, target) <= apart]
