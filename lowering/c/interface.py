"""What programs and their runtime know each other by: types in C, and types of values.

The C types are part of every program, and of the runtime of exported ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from functrans._runtime import Program
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Jaxpr

__all__ = ["API", "CONV", "GEMM", "runtime_program", "spec"]

API: Final = """\
typedef void (*ft_range)(void *arg, i64 begin, i64 end);
typedef struct {
  i64 version;
  int (*parallel)(void *ctx, ft_range body, void *arg, i64 n, i64 grain);
  int (*host)(void *ctx, i64 id, void *const *buffers, const i64 *dims);
  void *(*allocate)(i64 bytes);
  void (*release)(void *);
  void *const *lib;
  int (*stops)(void *ctx);
} ft_api;
"""
"""What a program is given (csrc/program.h): threads, memory, functions of host and library, and
whether it is to end early, which `parallel` also returns."""

GEMM: Final = """\
typedef struct {
  i64 batch0, batch1, m, n, k;
  const void *a; i64 a_batch0, a_batch1, a_row, a_col;
  const void *b; i64 b_batch0, b_batch1, b_row, b_col;
  void *c; i64 c_batch0, c_batch1, c_row, c_col;
  int in_type, out_type;
  double alpha;
  int accumulate, a_fill_columns, b_fill_columns;
  void *a_fill, *b_fill, *fill_arg;
  void (*epilogue)(void *arg, i64 batch, i64 i0, i64 i1, i64 j0, i64 j1, const void *tile, i64 row);
  void *epilogue_arg;
} ft_gemm;
"""
"""A product; csrc/gemm.h says what the fields mean."""

CONV: Final = """\
typedef struct {
  i64 rank, groups, batch, in_features, out_features;
  i64 in_size[3], window[3], out_size[3];
  i64 stride[3], pad_low[3], in_dilation[3], window_dilation[3];
  const void *x; i64 x_group, x_batch, x_feature, x_space[3];
  const void *w; i64 w_group, w_out, w_in, w_space[3];
  void *out; i64 out_group, out_batch, out_feature, out_space[3];
  int in_type, out_type;
  double alpha;
  int accumulate;
} ft_conv;
"""
"""A convolution; csrc/conv.h says what the fields mean."""


def spec(aval: ShapedArray) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """The dtype and shape of a value as the runtime takes them: None for a symbolic size."""
    return aval.dtype, tuple([n if isinstance(n, int) else None for n in aval.shape])


def runtime_program(jaxpr: Jaxpr, path: Path, constants: list[np.ndarray[Any, Any]],
                    aliases: list[int], arena: int, sizes: Sequence[Sequence[int]],
                    libs: list[str], hosts: list[tuple[Any, ...]], heavy: bool) -> Program:
    """A shared object that the runtime can run."""
    return Program(
        str(path), [spec(v.aval) for v in jaxpr.invars], constants,
        [(*spec(a.aval), alias) for a, alias in zip(jaxpr.outvars, aliases, strict=True)], arena,
        [(k, axis) for k, axis in sizes], libs, hosts, heavy,
        tuple(sorted(a for a in aliases if a >= 0)))
