"""Calls of attention and its gradient: tensors by steps along variables, and their launches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from functrans.core.precision import Precision
from functrans.lowering.loops.tensor import AnyFlag, Call, Stored, Tensor
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.attention.reindexed import NotSoftmax
from functrans.lowering.triton.kernels.kernel_source import MEMORY, PartialResults
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

__all__ = ["Attend", "AttendGradient", "AttentionLayout", "View"]

@dataclass(frozen=True)
class View:
    """A tensor that is read, or written, by steps along variables, and along its own columns.

    A variable is known by its step in the product that gives the scores.
    """

    tensor: Tensor
    offset: int
    steps: Mapping[int, int]
    col: int = 0
    factor: float = 1.0  # what its elements are multiplied by

    @property
    def key(self) -> tuple[Tensor, int, frozenset[tuple[int, int]], int]:
        return (self.tensor, self.offset, frozenset((v, n) for v, n in self.steps.items() if n),
                self.col)


@dataclass(eq=False)
class AttentionLayout:
    """The variables of the scores as batch, heads of keys, heads that share keys, rows, columns."""

    sizes: Mapping[int, int]
    batch: int | None
    head: int | None
    shared: int | None
    row: int | None
    key: int

    def size(self, v: int | None) -> int:
        return 1 if v is None else self.sizes[v]

    def heads(self, view: View, keyed: bool = False) -> Heads:
        """The strides of a tensor, of heads of keys or of queries."""
        def step(v: int | None) -> int:
            return 0 if v is None else view.steps.get(v, 0)

        head, shared = step(self.head), step(self.shared)
        if not keyed and self.shared is not None:
            if self.head is not None and head != shared * self.size(self.shared):
                raise NotSoftmax("heads that share keys are not beside each other")
            head = shared
        if keyed and shared:
            raise NotSoftmax("keys are not shared")
        row = step(self.key if keyed else self.row)
        t = view.tensor
        return Heads(MEMORY[t.dtype], step(self.batch), head, row, view.col,
                     view.offset * BYTES[MEMORY[t.dtype]] % 16 == 0)


class Attend(Call):
    """softmax(scores) values; the results are what attention gives, and the sums of rows."""

    name = "attention"
    is_composed = True

    def __init__(self, problem: AttentionProblem, layout: AttentionLayout,
                 views: Mapping[str, View], out: View,
                 sums: Stored, zero: bool, any_flags: Sequence[AnyFlag] = (),
                 precision: Precision | None = None) -> None:
        super().__init__([v.tensor for v in views.values()],
                         [out.tensor, sums, *any_flags], out.tensor.source)
        self.problem, self.layout, self.views, self.sums = problem, layout, views, sums
        self.any_flags = any_flags  # of what is not finite
        self.made = {"out": out}
        self.zero = zero  # whether rows that see nothing are 0, not NaN
        self.precision = precision

    def move(self, name: str, view: View) -> None:
        """Write a result to another place. Raises NotSoftmax where kernels cannot."""
        if view.factor != 1:
            raise NotSoftmax("a multiple")
        self.problem = replace(self.problem, out=self.layout.heads(view))
        self.made = {name: view}
        self.results = (view.tensor, self.sums, *self.any_flags)

    @property
    def has_places(self) -> bool:
        """Whether kernels can write the results where they are."""
        return self.problem.out is not None

    def _known(self, precision: str, unaligned: Collection[Tensor]) -> AttentionProblem:
        return replace(_without_alignment(self.problem, self.places, unaligned),
                       precision=precision, empty_is_zero=self.zero)

    def configs(self, precision: str, unaligned: Collection[Tensor]) -> list[list[AttentionConfig]]:
        """Of each launch those worth trying; tensors that are `unaligned` are not aligned."""
        return [configs(self._known(precision, unaligned))]

    def kernels(self, precision: str, unaligned: Collection[Tensor],
                chosen: Sequence[AttentionConfig], target: Target) -> list[TemplateKernel]:
        """The launches."""
        return forward(self._known(precision, unaligned), chosen[0], target=target)

    @property
    def places(self) -> dict[str, tuple[Tensor | PartialResults, int]]:
        return _places({**self.views,
                        **self.made}) | {"sums": (self.sums, 0)} | _flagged_tensors(self.any_flags)


class AttendGradient(Call):
    """The gradients of queries, keys and values."""

    name = "gradient of attention"
    is_composed = True

    def __init__(self, attend: Attend, gradient: AttentionGradientProblem,
                 views: Mapping[str, View],
                 results: Mapping[str, View], factors: Mapping[str, float],
                 any_flags: Sequence[AnyFlag] = ()) -> None:
        self.attend, self.gradient, self.views = attend, gradient, dict(views)
        self.precision, self.any_flags = attend.precision, any_flags
        self.made = dict(results)
        self.factors = dict(factors)  # of dq and dk: the scale, where it does not come later
        super().__init__((), (), attend.source)
        self.connect()

    def connect(self) -> None:
        """Read and write the tensors of the views, those of the attention included."""
        reads = dict.fromkeys(v.tensor for v in self._reads.values())
        self.operands = (*reads, self.attend.sums)
        results = [v.tensor for v in self.made.values()]
        self.results = (*results, *self.any_flags)

    @property
    def _reads(self) -> dict[str, View]:
        return {**self.attend.views, **self.attend.made, **self.views}

    def move(self, name: str, view: View) -> None:
        """Write a result to another place. Raises NotSoftmax where kernels cannot."""
        heads = self.attend.layout.heads(view, name != "dq")
        if name == "dv" and view.factor != 1:
            raise NotSoftmax("a multiple")
        if name != "dv":
            self.factors[name] *= view.factor
        self.gradient = replace(self.gradient, **{name: heads})  # type: ignore[arg-type]
        self.made[name] = view
        self.connect()

    @property
    def has_places(self) -> bool:
        """Whether kernels can write the results where they are."""
        return self.gradient.dq is not None

    def _known(self, precision: str, unaligned: Collection[Tensor]) -> AttentionGradientProblem:
        p = replace(_without_alignment(self.attend.problem, self.places, unaligned),
                    precision=precision, empty_is_zero=self.attend.zero)
        return replace(_without_alignment(self.gradient, self.places, unaligned), attention=p)

    def configs(self, precision: str, unaligned: Collection[Tensor]) -> list[list[AttentionConfig]]:
        """Of each launch those worth trying; tensors that are `unaligned` are not aligned."""
        g = self._known(precision, unaligned)
        return [dq_configs(g), dk_dv_configs(g)]

    def kernels(self, precision: str, unaligned: Collection[Tensor],
                chosen: Sequence[AttentionConfig], target: Target) -> list[TemplateKernel]:
        """The launches."""
        g = replace(self._known(precision, unaligned), dq_scale=self.factors["dq"],
                    dk_scale=self.factors["dk"])
        dq, dk_dv = chosen
        return backward(g, dq, dk_dv, target=target)

    @property
    def places(self) -> dict[str, tuple[Tensor | PartialResults, int]]:
        p = self.attend.problem
        products = PartialResults(1, p.batch * p.heads * p.queries, "f32")
        views = {**self._reads, **self.made}
        own: dict[str, tuple[Tensor | PartialResults, int]] = {
            "sums": (self.attend.sums, 0), "products": (products, 0)}
        return _places(views) | own | _flagged_tensors(self.any_flags)


Problem = TypeVar("Problem", AttentionProblem, AttentionGradientProblem)


def _without_alignment(p: Problem, places: Mapping[str, tuple[Tensor | PartialResults, int]],
                       unaligned: Collection[Tensor]) -> Problem:
    changed = {name: replace(getattr(p, name), aligned=False) for name, (t, _) in places.items()
               if t in unaligned and isinstance(getattr(p, name, None), Heads)}
    return replace(p, **changed)


def _flagged_tensors(any_flags: Sequence[AnyFlag]) -> dict[str,
                                                           tuple[Tensor | PartialResults, int]]:
    return {f"mark{k}": (t, 0) for k, t in enumerate(any_flags)}


def _places(views: Mapping[str, View]) -> dict[str, tuple[Tensor | PartialResults, int]]:
    return {name: (v.tensor, v.offset * BYTES[MEMORY[v.tensor.dtype]])
            for name, v in views.items()}
