"""Transposition of a tile of lanes x lanes elements in registers."""

from __future__ import annotations

from collections.abc import Mapping

from functrans.lowering.c.vectors.builder import DTYPES, Emitter, VectorBuilder

__all__ = ["EMITTERS"]


def _shuffles(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """log2(lanes) rounds; a round swaps the off-diagonal blocks of 1, 2, 4, ... elements."""
    v, i = b.type(dtype, lanes), b.type(b.int_of(dtype), lanes)
    lines = []
    step = 1
    while step < lanes:
        # rows r and r + step, in blocks of `step`: the first keeps its even blocks
        low = [l if not l & step else l - step + lanes for l in range(lanes)]
        high = [l + step if not l & step else l + lanes for l in range(lanes)]
        masks = [f"({i}){{{', '.join(map(str, m))}}}" for m in (low, high)]
        lines.append(f"{{ {v} t; ")
        for row in range(lanes):
            if not row & step:
                x, y = f"r{row}", f"r{row + step}"
                lines.append(f"t = __builtin_shuffle({x}, {y}, {masks[0]}); "
                             f"{y} = __builtin_shuffle({x}, {y}, {masks[1]}); {x} = t;\n")
        lines.append("}\n")
        step *= 2
    return "".join(lines)


def _transpose(b: VectorBuilder, dtype: str, lanes: int) -> str:
    v, s = b.type(dtype, lanes), DTYPES[dtype].c
    load, store = b.fn("load", dtype, lanes), b.fn("store", dtype, lanes)
    reads = ", ".join(f"r{r} = {load}(src + {r} * src_stride)" for r in range(lanes))
    writes = " ".join(f"{store}(dst + {r} * dst_stride, r{r});" for r in range(lanes))
    return (f"static void transpose_{b.suffix(dtype, lanes)}(const {s} *src, i64 src_stride, "
            f"{s} *dst, i64 dst_stride) {{ {v} {reads};\n{_shuffles(b, dtype, lanes)}{writes} }}\n")


def _transpose_part(b: VectorBuilder, dtype: str, lanes: int) -> str:
    """A tile of rows x cols of the source at the border."""
    s = DTYPES[dtype].c
    return (f"static void transpose_part_{b.suffix(dtype, lanes)}(const {s} *src, i64 src_stride, "
            f"{s} *dst, i64 dst_stride, i64 rows, i64 cols) {{ for (i64 c = 0; c < cols; c++) "
            f"for (i64 r = 0; r < rows; r++) dst[c * dst_stride + r] = src[r * src_stride + c]; "
            f"}}\n")


EMITTERS: Mapping[str, Emitter] = {"transpose": _transpose, "transpose_part": _transpose_part}
