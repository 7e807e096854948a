"""Convolutions, with what is computed of their elements, as launches of a template."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import Conv, Tensor
from functrans.lowering.schedule.epilogues import FusedConv
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.triton.kernels.kernel_source import Launches, SizeArguments
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.products.epilogues import (
    STORED_TYPES,
    EpilogueWriter,
    check_length,
    main_result,
)
from functrans.lowering.triton.templates import convolution
from functrans.lowering.triton.templates.convolution import (
    ConvolutionConfig,
    ConvolutionProblem,
    Filter,
    Image,
)
from functrans.lowering.triton.templates.registers import expected_spills

__all__ = ["CONVOLUTION_TYPES", "launches_of_convolution"]

CONVOLUTION_TYPES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16"}


def launches_of_convolution(call: Conv, precision: str, schedule: Schedule,
                            unaligned: Collection[Tensor], alone: bool,
                            choose: Chooser) -> Launches:
    """The launches of a convolution in the configuration that is chosen.

    `alone`: in a phase of a loop, which has no arrival counters.
    """
    p = _problem(call, precision, unaligned)
    target = choose.target
    fused = isinstance(call, FusedConv)
    if isinstance(call, FusedConv):
        check_length(call, schedule)

    def launches(c: ConvolutionConfig) -> Launches:
        if alone:
            c = replace(c, last_combines=False)
        if isinstance(call, FusedConv):
            return _fused(call, schedule, unaligned, p, c, choose)
        return Launches(convolution.kernels(p, c, target=target), _operands(call))

    def expected(c: ConvolutionConfig) -> int:
        """The numbers that threads are certain to keep out of registers, uncompiled."""
        assert isinstance(call, FusedConv)
        epilogue, _ = _epilogue_writer(call, schedule, p).written()
        parts = c.parts if c.splits == 1 else 1
        return expected_spills(epilogue.lines, epilogue.result, c.numbers // parts, parts)

    more = f", and {len(call.kernel.members)} values from it" if isinstance(call, FusedConv) else ""
    return launches(choose.among(
        f"convolution of {p.batch} x {' x '.join(map(str, p.in_size))} x {p.in_features} "
        f"by {' x '.join(map(str, p.window))} x {p.out_features} of {p.x.dtype}{more}",
        (p, *[t.dtype for t in (*call.operands, *call.results)]) if fused else p,
        convolution.configs(p, target), launches,
        lambda c: convolution.estimate(p, c, target), convolution.smaller(p),
        may_spill=not fused, expected=expected if fused else None))


def _problem(call: Conv, precision: str, unaligned: Collection[Tensor]) -> ConvolutionProblem:
    """The convolution without what follows it."""
    f: Mapping[str, Any] = call.fields
    x, w = call.operands[:2]
    out = call.product if isinstance(call, FusedConv) else call.results[0]
    numbers = [n for v in (*f.values(), call.offsets)
               for n in (v if isinstance(v, (list, tuple)) else (v,))]
    if not all(isinstance(n, int) for n in numbers):
        raise UnsupportedKernel("a convolution of symbolic sizes")

    def space(name: str, sizes: str) -> tuple[int, ...]:
        """Strides; any will do where there is one place, so one that the copy engine can have."""
        far = max(f.get(f"{name}_{axis}", 0) for axis in ("batch", "feature", "out", "in"))
        return tuple([far if n == 1 else s for s, n in zip(f[f"{name}_space"], f[sizes])])

    def image(t: Tensor, name: str, sizes: str, offset: Any) -> Image:
        return Image(CONVOLUTION_TYPES[t.dtype], f[f"{name}_group"], f[f"{name}_batch"],
                     f[f"{name}_feature"], space(name, sizes), offset, t not in unaligned)

    return ConvolutionProblem(
        f["batch"], f["in_features"], f["out_features"], tuple(f["in_size"]), tuple(f["window"]),
        tuple(f["out_size"]), tuple(f["stride"]), tuple(f["pad_low"]),
        image(x, "x", "in_size", call.offsets[0]),
        Filter(CONVOLUTION_TYPES[w.dtype], f["w_group"], f["w_out"], f["w_in"],
               space("w", "window"), call.offsets[1],  # type: ignore[arg-type]
               w not in unaligned),
        image(out, "out", "out_size", 0), tuple(f["in_dilation"]), tuple(f["window_dilation"]),
        f["groups"], precision=precision)


def _operands(call: Conv) -> dict[str, Any]:
    return {"x": (call.operands[0], 0), "w": (call.operands[1], 0), "out": (call.results[0], 0)}


def _fused(call: FusedConv, schedule: Schedule, unaligned: Collection[Tensor],
           plain: ConvolutionProblem, chosen: ConvolutionConfig, choose: Chooser) -> Launches:
    """A convolution whose results have their elements where the convolution has them."""
    main = main_result(call)
    epilogue, pointers = _epilogue_writer(call, schedule, plain).written()
    out = replace(plain.out, dtype=STORED_TYPES[main.dtype], aligned=main not in unaligned)
    p = replace(plain, out=out, epilogue=epilogue)
    return Launches(convolution.kernels(p, chosen, target=choose.target),
                    _operands(call) | {"out": (main, 0)} | pointers)


def _epilogue_writer(call: FusedConv, schedule: Schedule, p: ConvolutionProblem) -> EpilogueWriter:
    """What writes the epilogue of a convolution over its tiles, in whichever phase of it.

    Rows of the matrix are told by places of the output: phases have some of them each.
    """
    features = p.out_features * p.groups
    in_order = not p.batch_inner and all(d == 1 for d in p.in_dilation)
    lines = ["rows = at_m[:, None]" if in_order else
             f"rows = tl.cast(({convolution.OUT_PLACE} + tl.cast(out_offset, tl.int64)) "
             f"// {features}, tl.int32)", "o = rows",
             f"i = cols + outer * {p.out_features}" if p.groups > 1 else "i = cols",
             "o_inside = known[:, None]", "i_inside = cols < out_features"]
    return EpilogueWriter(call, schedule, main_result(call), SizeArguments(False), lines,
                          {"o": "o_inside", "i": "i_inside"}, is_line=features == 1)
