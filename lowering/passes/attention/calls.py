"""Calls of attention and its gradient: what is computed, of tensors by steps along variables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from functrans.core.precision import Precision
from functrans.core.record import Record
from functrans.lowering.loops.tensor import AnyFlag, Call, Stored, Tensor
from functrans.lowering.passes.attention.reindexed import NotSoftmax

__all__ = ["Attend", "AttendGradient", "AttentionLayout", "ScoreFunction", "Strides", "View"]


class View(Record):
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


class Strides(NamedTuple):
    """Steps of a view in elements, 0 along what it is broadcast."""

    batch: int
    head: int
    row: int
    col: int


class AttentionLayout(Record, frozen=False, eq=False):
    """The variables of the scores as batch, heads of keys, heads that share keys, rows, columns."""

    sizes: Mapping[int, int]
    batch: int | None
    head: int | None
    shared: int | None
    row: int | None
    key: int

    def size(self, v: int | None) -> int:
        return 1 if v is None else self.sizes[v]

    @property
    def rows(self) -> int:
        """The rows of scores, of all heads."""
        return math.prod(map(self.size, (self.batch, self.head, self.shared, self.row)))

    def strides(self, view: View, keyed: bool = False) -> Strides:
        """The strides of a tensor, of heads of keys or of queries. Raises NotSoftmax."""
        def step(v: int | None) -> int:
            return 0 if v is None else view.steps.get(v, 0)

        head, shared = step(self.head), step(self.shared)
        if not keyed and self.shared is not None:
            if self.head is not None and head != shared * self.size(self.shared):
                raise NotSoftmax("heads that share keys are not beside each other")
            head = shared
        if keyed and shared:
            raise NotSoftmax("keys are not shared")
        return Strides(step(self.batch), head, step(self.key if keyed else self.row), view.col)

    def has_strides(self, view: View, keyed: bool = False) -> bool:
        """Whether kernels can read or write a tensor as it is."""
        try:
            self.strides(view, keyed)
        except NotSoftmax:
            return False
        return True


class ScoreFunction(Record):
    """The scores: `scale` times the product of queries and keys of `size` columns, and masks.

    Query r sees keys up to r + `offset` if that is a number, and those for which the mask holds.
    The scores of others are `fill`, before the bias is added if that is a number, and their
    gradients are 0 if it is `selected` and not added. Rows that see no key give 0, or NaN unless
    `empty_is_zero`.
    """

    size: int
    scale: float
    offset: int | None
    fill: float
    selected: bool
    empty_is_zero: bool


class Attend(Call):
    """softmax(scores) values; the results are what attention gives, and the sums of rows.

    `views`: q, k, v, and a mask and a bias where scores have them, whose columns are keys. `sums`
    are the logarithms of the sums of rows, contiguous (batch, heads, queries).
    """

    name = "attention"
    is_composed = True

    def __init__(self, scores: ScoreFunction, value_size: int, layout: AttentionLayout,
                 views: Mapping[str, View], out: View, sums: Stored,
                 any_flags: Sequence[AnyFlag] = (), precision: Precision | None = None) -> None:
        super().__init__([v.tensor for v in views.values()],
                         [out.tensor, sums, *any_flags], out.tensor.source)
        self.scores, self.value_size, self.layout = scores, value_size, layout
        self.views, self.out, self.sums = views, out, sums
        self.any_flags = any_flags  # of what is not finite
        self.precision = precision

    @property
    def made(self) -> dict[str, View]:
        """The results that have a layout."""
        return {"out": self.out}

    def move(self, views: Mapping[str, View]) -> None:
        """Write results to other places, all or none. Raises NotSoftmax where kernels cannot."""
        view = views["out"]
        if view.factor != 1:
            raise NotSoftmax("a multiple")
        self.layout.strides(view)
        self.out = view
        self.results = (view.tensor, self.sums, *self.any_flags)

    @property
    def has_places(self) -> bool:
        """Whether kernels can write the results where they are."""
        return self.layout.has_strides(self.out)


class AttendGradient(Call):
    """The gradients of queries, keys and values: `made` has dq, dk and dv, `views` dout.

    `factors` of dq and dk: the scale, where it does not come later.
    """

    name = "gradient of attention"
    is_composed = True

    def __init__(self, attend: Attend, views: Mapping[str, View], results: Mapping[str, View],
                 factors: Mapping[str, float], any_flags: Sequence[AnyFlag] = ()) -> None:
        self.attend, self.views = attend, dict(views)
        self.precision, self.any_flags = attend.precision, any_flags
        self.made = dict(results)
        self.factors = dict(factors)
        super().__init__((), (), attend.source)
        self.connect()

    def connect(self) -> None:
        """Read and write the tensors of the views, those of the attention included."""
        reads = dict.fromkeys(v.tensor for v in self.reads.values())
        self.operands = (*reads, self.attend.sums)
        results = dict.fromkeys(v.tensor for v in self.made.values())
        self.results = (*results, *self.any_flags)

    @property
    def reads(self) -> dict[str, View]:
        """What it reads, the results of the attention included."""
        return {**self.attend.views, **self.attend.made, **self.views}

    def move(self, views: Mapping[str, View]) -> None:
        """Write results to other places, all or none. Raises NotSoftmax where kernels cannot.

        Several may be parts of one tensor.
        """
        for name, view in views.items():
            self.attend.layout.strides(view, name != "dq")
            if name == "dv" and view.factor != 1:
                raise NotSoftmax("a multiple")
        for name, view in views.items():
            if name != "dv":
                self.factors[name] *= view.factor
            self.made[name] = view
        self.connect()

    @property
    def has_places(self) -> bool:
        """Whether kernels can write the results where they are."""
        return all(self.attend.layout.has_strides(v, name != "dq")
                   for name, v in self.made.items())
