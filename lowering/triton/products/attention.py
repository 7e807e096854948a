"""Calls of attention and its gradient as launches of templates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import AnyFlag, Tensor
from functrans.lowering.passes.attention.calls import Attend, AttendGradient, AttentionLayout, View
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
)
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.templates.attention import (
    AttentionConfig,
    AttentionProblem,
    Heads,
    configs,
    forward,
)
from functrans.lowering.triton.templates.attention_gradient import (
    AttentionGradientProblem,
    backward,
    dk_dv_configs,
    dq_configs,
)
from functrans.lowering.triton.templates.kernel import BYTES, TemplateKernel

__all__ = ["launches_of_attention"]

Places = dict[str, tuple[KernelOperand, int]]
"""The operands of launches by name, and how many bytes they begin after."""


class _AttentionTemplate(Record):
    """The configurations of each launch that are worth trying, and the launches of chosen ones."""

    configs: list[list[AttentionConfig]]
    kernels: Callable[[Sequence[AttentionConfig]], list[TemplateKernel]]
    places: Places


def launches_of_attention(call: Attend | AttendGradient, precision: str,
                          unaligned: Collection[Tensor], choose: Chooser) -> Launches:
    """The launches of a call. `precision`: that of products of float32, in Triton's words."""
    if not call.has_places:
        raise UnsupportedKernel("kernels of attention cannot write a result where it is")
    if isinstance(call, Attend):
        attend, template = call, _forward(call, precision, unaligned, choose.target)
    else:
        attend, template = call.attend, _backward(call, precision, unaligned, choose.target)
    if not all(template.configs):
        raise UnsupportedKernel("kernels of attention would be too long to compile")
    p = _problem(attend)  # what is chosen does not depend on the alignment
    work = p.batch * p.heads * p.queries * p.keys * (p.size + p.value_size)
    cost = 2 * work / choose.target.measured.attention[p.q.dtype]
    said = f"{p.batch} x {p.heads} x {p.queries} x {p.keys} x {p.size} of {p.q.dtype}"
    first = [c[0] for c in template.configs]
    chosen: list[AttentionConfig] = []
    for k, configs_of_launch in enumerate(template.configs):
        def launches(c: AttentionConfig, k: int = k) -> Launches:
            kernels = template.kernels([*first[:k], c, *first[k + 1:]])
            return Launches(kernels[k:k + 1], dict(template.places))

        chosen.append(choose.among(f"{call.name} {k + 1}: {said}", (call.name, k, p, precision),
                                   configs_of_launch, launches, lambda c: cost))
    return Launches(template.kernels(chosen), template.places)


def _forward(call: Attend, precision: str, unaligned: Collection[Tensor],
             target: Target) -> _AttentionTemplate:
    p = _problem(call, precision, unaligned)
    places = _places({**call.views, **call.made}, call.sums)

    def kernels(chosen: Sequence[AttentionConfig]) -> list[TemplateKernel]:
        return forward(p, chosen[0], target=target)

    return _AttentionTemplate([configs(p, target=target)], kernels,
                              places | _flagged(call.any_flags))


def _backward(call: AttendGradient, precision: str, unaligned: Collection[Tensor],
              target: Target) -> _AttentionTemplate:
    p, layout = _problem(call.attend, precision, unaligned), call.attend.layout
    g = AttentionGradientProblem(
        p, _heads(layout, call.views["dout"], unaligned),
        _heads(layout, call.made["dq"], unaligned),
        _heads(layout, call.made["dk"], unaligned, keyed=True),
        _heads(layout, call.made["dv"], unaligned, keyed=True),
        dq_scale=call.factors["dq"], dk_scale=call.factors["dk"], any_flags=len(call.any_flags))

    def kernels(chosen: Sequence[AttentionConfig]) -> list[TemplateKernel]:
        dq, dk_dv = chosen
        return backward(g, dq, dk_dv, target=target)

    places = _places({**call.reads, **call.made}, call.attend.sums)
    places["products"] = PartialResults(1, layout.rows, "f32"), 0
    return _AttentionTemplate([dq_configs(g, target=target), dk_dv_configs(g, target=target)],
                              kernels, places | _flagged(call.any_flags))


def _problem(call: Attend, precision: str = "ieee",
             unaligned: Collection[Tensor] = ()) -> AttentionProblem:
    """The template's problem; tensors that are `unaligned` are not aligned to 16 bytes."""
    layout, scores, views = call.layout, call.scores, call.views

    def heads(name: str) -> Heads | None:
        return _heads(layout, views[name], unaligned) if name in views else None

    key_heads = layout.size(layout.head)
    return AttentionProblem(
        layout.size(layout.batch), key_heads * layout.size(layout.shared), key_heads,
        layout.size(layout.row), layout.size(layout.key), scores.size, call.value_size,
        _heads(layout, views["q"], unaligned), _heads(layout, views["k"], unaligned, keyed=True),
        _heads(layout, views["v"], unaligned, keyed=True), _heads(layout, call.out, unaligned),
        scores.scale, scores.offset is not None, scores.offset or 0, heads("bias"), heads("mask"),
        scores.fill, scores.selected, precision, scores.empty_is_zero,
        any_flags=len(call.any_flags))


def _heads(layout: AttentionLayout, view: View, unaligned: Collection[Tensor],
           keyed: bool = False) -> Heads:
    dtype, at = MEMORY[view.tensor.dtype], layout.strides(view, keyed)
    aligned = view.tensor not in unaligned and view.offset * BYTES[dtype] % 16 == 0
    return Heads(dtype, at.batch, at.head, at.row, at.col, aligned)


def _places(views: Mapping[str, View], sums: Tensor) -> Places:
    places: Places = {name: (v.tensor, v.offset * BYTES[MEMORY[v.tensor.dtype]])
                      for name, v in views.items()}
    return places | {"sums": (sums, 0)}


def _flagged(any_flags: Sequence[AnyFlag]) -> Places:
    return {f"mark{k}": (t, 0) for k, t in enumerate(any_flags)}
