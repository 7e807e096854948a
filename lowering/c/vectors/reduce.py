"""A vector to one scalar: halves are combined until one element is left, a pairwise tree."""

from __future__ import annotations

from collections.abc import Mapping

from functrans.lowering.c.vectors.builder import DTYPES, Emitter, VectorBuilder
from functrans.lowering.c.vectors.operators import arithmetic

__all__ = ["EMITTERS"]

_OPERATIONS = ("add", "mul", "max", "min", "and", "or", "xor")


def _reduce(op: str) -> Emitter:
    stem = f"reduce_{op}"

    def emit(b: VectorBuilder, dtype: str, lanes: int) -> str:
        v, s = b.type(dtype, lanes), DTYPES[dtype].c
        if lanes == 1:
            body = "return v;"
        elif b.bytes(dtype, lanes) > 16:
            low, high = b.lo(dtype, lanes, "v"), b.hi(dtype, lanes, "v")
            both = arithmetic(b, op, dtype, (low, high), lanes // 2)
            body = f"return {b.fn(stem, dtype, lanes // 2)}({both});"
        else:
            terms = [f"v[{l}]" for l in range(lanes)]
            while len(terms) > 1:
                half = len(terms) // 2
                terms = [arithmetic(b, op, dtype, pair, 1)
                         for pair in zip(terms[:half], terms[half:])]
            body = f"return {terms[0]};"
        return b.inline(stem, dtype, lanes, s, f"{v} v", body)
    return emit


def _square(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v = b.type(dtype, lanes)
    return b.inline("square", dtype, lanes, v, f"{v} a",
                    f"return {arithmetic(b, 'mul', dtype, ('a', 'a'), lanes)};")


EMITTERS: Mapping[str, Emitter] = {
    **{f"reduce_{op}": _reduce(op) for op in _OPERATIONS}, "square": _square,
}
