"""Reductions in Triton: initial values, how two tiles are combined, how one is reduced."""

from __future__ import annotations

from dataclasses import dataclass

from functrans.lowering.loops.tensor import Reduce
from functrans.lowering.rules.reduce import identity_element
from functrans.lowering.triton.kernels.names import REGISTER

__all__ = ["TileReduction", "tile_reduction"]


@dataclass(frozen=True)
class TileReduction:
    """A reduction: of values alone, or of values and their places."""

    op: str
    dtype: str  # of the values

    @property
    def is_place(self) -> bool:
        return self.op in ("argmax", "argmin")

    @property
    def register(self) -> str:
        """The type of what is added up or compared."""
        return "tl.int32" if self.dtype == "bool" else REGISTER[self.dtype]

    @property
    def start(self) -> str:
        value = identity_element(self.op,
                                 "i32" if self.dtype == "bool" and self.op == "and" else self.dtype)
        if isinstance(value, float):
            return f"float('{'-' if value < 0 else ''}inf')" if value in (
                float("inf"), float("-inf")) else repr(value)
        return str(value)

    @property
    def starts(self) -> list[str]:
        """What values and places start from."""
        return [self.start, str(2**31 - 1)] if self.is_place else [self.start]

    def initial(self, shape: str) -> list[str]:
        """The accumulators of a tile."""
        return [f"tl.full({shape}, {start}, {register})" for start, register in
                zip(self.starts, (self.register, "tl.int32"), strict=False)]

    def masked(self, value: str, mask: str) -> str:
        """A value where it counts, over the shape of the mask."""
        if self.dtype == "bool":
            value = f"({value}).to(tl.int32)"
        return f"tl.where({mask}, {value}, {self.start}).to({self.register})"

    def combined(self, old: list[str], new: list[str]) -> str:
        """Two accumulators made one, element by element."""
        if self.op == "add":
            return f"{old[0]} + {new[0]}"
        return f"combine_{self.op}({', '.join([*old, *new])})"

    def reduced(self, names: list[str], axis: int) -> str:
        """Accumulators reduced along an axis, which stays with size 1."""
        values = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"tl.reduce({values}, {axis}, combine_{self.op}, keep_dims=True)"

    def result(self, names: list[str]) -> str:
        """The value of a reduction that is done."""
        if self.is_place:
            return names[1]
        return f"({names[0]} != 0)" if self.dtype == "bool" else names[0]


def tile_reduction(tensor: Reduce) -> TileReduction:
    op = tensor.op
    if tensor.value_dtype == "bool":
        op = {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(op, op)
    return TileReduction(op, tensor.value_dtype)


FUNCTIONS = '''
@triton.jit
def combine_add(a, b):
    return a + b


@triton.jit
def combine_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def combine_min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def combine_mul(a, b):
    return a * b


@triton.jit
def combine_and(a, b):
    return a & b


@triton.jit
def combine_or(a, b):
    return a | b


@triton.jit
def combine_xor(a, b):
    return a ^ b


@triton.jit
def combine_argmax(a, i, b, j):
    same = (a == b) | ((a != a) & (b != b))
    better = (b > a) | ((b != b) & (a == a))
    take = better | (same & (j < i))
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def combine_argmin(a, i, b, j):
    same = (a == b) | ((a != a) & (b != b))
    better = (b < a) | ((b != b) & (a == a))
    take = better | (same & (j < i))
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def combine_logsumexp(a, b):
    top = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    more = fm.log1p(fm.exp(-tl.abs(a - b)))
    return top + tl.where(a == b, 0.6931471805599453, more)
'''
"""The combine functions by name; a module has those that it calls."""
