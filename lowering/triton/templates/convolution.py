"""Convolutions as products of matrices whose left one is read from the image where it is needed.

Rows are places of the output, columns its features, and the sum is over taps of the window and
features of the input. Strides are free, so that the two gradients are convolutions too: that of the
image one with dilated input, that of the filter one whose window is the output and whose batch are
the features.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from functrans.lowering.triton.templates.kernel import (
    BYTES,
    INT_MAX,
    PLAIN,
    TYPES,
    Argument,
    Epilogue,
    Expression,
    Kernel,
    expand,
    integer,
    pointer,
    power_of_two,
)

__all__ = ["Config", "Convolution", "Filter", "Image", "configs", "kernels"]


@dataclass(frozen=True)
class Image:
    """Strides in elements; `space` has one for each dimension of the window."""

    dtype: str
    group: int
    batch: int
    feature: int
    space: tuple[int, ...]
    offset: int = 0
    aligned: bool = True


@dataclass(frozen=True)
class Filter:
    dtype: str
    group: int
    out: int
    input: int
    space: tuple[int, ...]
    offset: int = 0
    aligned: bool = True


@dataclass(frozen=True)
class Convolution:
    """The fields of the library's `ft_conv`; features are those of one group.

    In lines of the epilogue `place` is the offset of an element in the output, and `cols` its
    feature; there are no `rows`.
    """

    batch: int
    in_features: int
    out_features: int
    in_size: tuple[int, ...]
    window: tuple[int, ...]
    out_size: tuple[int, ...]
    stride: tuple[int, ...]
    pad_low: tuple[int, ...]
    x: Image
    w: Filter
    out: Image
    in_dilation: tuple[int, ...] = ()
    window_dilation: tuple[int, ...] = ()
    groups: int = 1
    alpha: float = 1.0
    precision: str = "ieee"
    epilogue: Epilogue = PLAIN

    @property
    def rank(self) -> int:
        return len(self.window)

    @property
    def rows(self) -> int:
        return self.batch * math.prod(self.out_size)

    @property
    def sums(self) -> str:
        return {"fp64": "fp64", "i8": "i32"}.get(self.x.dtype, "fp32")


@dataclass(frozen=True)
class Config:
    """`flat`: a step takes places of the sum in a row, else features of one tap."""

    block_m: int
    block_n: int
    block_k: int
    warps: int
    stages: int
    group: int = 8
    splits: int = 1
    flat: bool = False


MAIN = '''
@triton.jit
def NAME():
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(out_features, BLOCK_N)
    tile = tl.program_id(0)
    outer = tile // (tiles_m * tiles_n)
    inner = tile % (tiles_m * tiles_n)
    first_m = inner // (GROUP * tiles_n) * GROUP
    count_m = tl.minimum(tiles_m - first_m, GROUP)
    row = (first_m + inner % (GROUP * tiles_n) % count_m) * BLOCK_M
    col = inner % (GROUP * tiles_n) // count_m * BLOCK_N
    if SPLITS > 1:
        split = outer % SPLITS
        outer = outer // SPLITS
    at_m = row + tl.arange(0, BLOCK_M)
    at_n = col + tl.arange(0, BLOCK_N)
    at_k = tl.arange(0, BLOCK_K)
    ROWS
    x_base = x + tl.cast(x_offset, tl.int64)
    w_base = w + tl.cast(w_offset, tl.int64)
    if GROUPED:
        x_base += tl.cast(outer, tl.int64) * x_group
        w_base += tl.cast(outer, tl.int64) * w_group
    acc = tl.full((BLOCK_M, BLOCK_N), 0, dtype=SUMS)
    if FLAT:
        steps = tl.cdiv(in_features * taps, BLOCK_K)
    else:
        feature_steps = tl.cdiv(in_features, BLOCK_K)
        steps = feature_steps * taps
    if SPLITS > 1:
        share = tl.cdiv(steps, SPLITS)
        first = split * share
        last = tl.minimum(first + share, steps)
    else:
        first = 0
        last = steps
    for step in range(first, last):
        LOAD
        acc = tl.dot(x_tile, w_tile, acc, input_precision=PRECISION, out_dtype=SUMS)
    if SPLITS > 1:
        partial = workspace + tl.cast(split * groups + outer, tl.int64) * m * out_features
        there = (at_m < m)[:, None] & (at_n < out_features)[None, :]
        here = (WIDE(at_m) * out_features)[:, None] + at_n[None, :]
        tl.store(partial + here, acc, mask=there)
    else:
        FINISH
'''

COMBINE = '''
@triton.jit
def NAME():
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(out_features, BLOCK_N)
    tile = tl.program_id(0)
    outer = tile // (tiles_m * tiles_n)
    at_m = tile // tiles_n % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
    at_n = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ROWS
    there = (at_m < m)[:, None] & (at_n < out_features)[None, :]
    partial = workspace + tl.cast(outer, tl.int64) * m * out_features
    partial += (WIDE(at_m) * out_features)[:, None] + at_n[None, :]
    step = tl.cast(groups, tl.int64) * m * out_features
    acc = tl.load(partial, mask=there, other=0)
    for split in tl.static_range(1, SPLITS):
        acc += tl.load(partial + split * step, mask=there, other=0)
    FINISH
'''

FINISH = '''
cols = at_n[None, :]
inside = (at_m < m)[:, None] & (cols < out_features)
place = OUT_PLACE + WIDE(cols) * OUT_FEATURE + tl.cast(out_offset, tl.int64)
if GROUPED:
    place += tl.cast(outer, tl.int64) * out_group
if ALPHA != 1.0:
    acc = acc * ALPHA
EPILOGUE
if STORES:
    tl.store(out + place, (RESULT).to(OUT_TYPE), mask=inside)
'''


def kernels(p: Convolution, config: Config, name: str = "convolution") -> list[Kernel]:
    """The launches of a convolution; with a dilated input one for each phase of the output."""
    made = []
    for part in _phases(p):  # most phases run the same text
        made += _kernels(part, config, name)
    return made


def _phases(p: Convolution) -> Iterator[Convolution]:
    """Convolutions without dilated input that give every in_dilation-th element of the output."""
    dilation = p.in_dilation or (1,) * p.rank
    window_dilation = p.window_dilation or (1,) * p.rank
    p = replace(p, in_dilation=dilation, window_dilation=window_dilation)
    split = [d > 1 and s == 1 and e == 1 for d, s, e in zip(dilation, p.stride, window_dilation)]
    if not any(split):
        yield p
        return
    for phase in itertools.product(*[range(min(d, n)) if cut else (0,) for d, n, cut in
                                     zip(dilation, p.out_size, split)]):
        q, w, out = p, p.w, p.out
        for i, (at, d) in enumerate(zip(phase, dilation)):
            if not split[i]:
                continue
            tap = (p.pad_low[i] - at) % d

            def put(values: tuple[int, ...], value: int, i: int = i) -> tuple[int, ...]:
                return (*values[:i], value, *values[i + 1:])

            w = replace(w, offset=w.offset + tap * w.space[i], space=put(w.space, d * w.space[i]))
            out = replace(out, offset=out.offset + at * out.space[i],
                          space=put(out.space, d * out.space[i]))
            q = replace(q, in_dilation=put(q.in_dilation, 1),
                        window=put(q.window, max(0, -(-(p.window[i] - tap) // d))),
                        out_size=put(q.out_size, -(-(p.out_size[i] - at) // d)),
                        pad_low=put(q.pad_low, (p.pad_low[i] - at - tap) // d))
        yield replace(q, w=w, out=out)


def _kernels(p: Convolution, config: Config, name: str) -> list[Kernel]:
    inner = _batch_inner(p)
    values = {
        "BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "BLOCK_K": config.block_k,
        "GROUP": config.group, "SPLITS": config.splits, "FLAT": config.flat,
        "GROUPED": p.groups > 1, "ALPHA": p.alpha, "PRECISION": p.precision,
        "SUMS": Expression(TYPES[p.sums]), "OUT_TYPE": Expression(TYPES[p.out.dtype]),
        "STORES": p.epilogue.result is not None,
        "RESULT": Expression(p.epilogue.result or "acc"), "WIDE": _is_wide(p),
        "OUT_FEATURE": Expression("1" if p.out.feature == 1 else "out_feature"),
        "OUT_PLACE": Expression(_sum(["WIDE(image)" + _step("out_batch", p.out.batch), *[
            f"WIDE(o{i}) * out_space{i}" for i in range(p.rank)]], "[:, None]"))}
    blocks = {"ROWS": _rows(p, inner), "LOAD": _load(p, config, inner), "FINISH": [FINISH],
              "EPILOGUE": p.epilogue.lines}
    sizes = [integer("m", p.rows), integer("batch", p.batch), integer("groups", p.groups),
             integer("out_features", p.out_features),
             *_each("out_size", p.out_size), *_each("stride", p.stride)]
    reads = [integer("in_features", p.in_features), integer("taps", math.prod(p.window)),
             *_each("in_size", p.in_size), *_each("window", p.window), *_each("pad", p.pad_low),
             *_each("dilation", p.window_dilation), *_each("in_dilation", p.in_dilation),
             integer("x_offset", p.x.offset), integer("x_group", p.x.group),
             *_not_one("x_batch", p.x.batch), *_not_one("x_feature", p.x.feature),
             *_each("x_space", p.x.space), integer("w_offset", p.w.offset),
             integer("w_group", p.w.group), *_not_one("w_out", p.w.out),
             *_not_one("w_in", p.w.input), *_each("w_space", p.w.space)]
    writes = [integer("out_offset", p.out.offset), integer("out_group", p.out.group),
              *_not_one("out_batch", p.out.batch), *_not_one("out_feature", p.out.feature),
              *_each("out_space", p.out.space)]
    inputs = (pointer("x", p.x.dtype, p.x.aligned), pointer("w", p.w.dtype, p.w.aligned))
    output = (pointer("out", p.out.dtype, p.out.aligned), *p.epilogue.arguments)
    tiles = -(-p.rows // config.block_m) * -(-p.out_features // config.block_n) * p.groups
    workspace = 0
    if config.splits > 1:
        workspace = config.splits * p.groups * p.rows * p.out_features * BYTES[p.sums]
        arguments = (*inputs, pointer("workspace", p.sums), *sizes, *reads)
    else:
        arguments = (*inputs, *output, *sizes, *reads, *writes)
    made = [Kernel(name, expand(MAIN, name, arguments, values, blocks), arguments,
                   (tiles * config.splits, 1, 1), config.warps, config.stages, workspace)]
    if config.splits > 1:
        name, values = f"{name}_combine", values | {"BLOCK_M": 16, "BLOCK_N": 64}
        arguments = (pointer("workspace", p.sums), *output, *sizes, *writes)
        tiles = -(-p.rows // 16) * -(-p.out_features // 64) * p.groups
        blocks["ROWS"] = _rows(p, inner, False)
        made.append(Kernel(name, expand(COMBINE, name, arguments, values, blocks), arguments,
                           (tiles, 1, 1), 4, 1, workspace))
    return made


def _batch_inner(p: Convolution) -> bool:
    """Whether neighbouring rows are neighbours in the batch."""
    return p.x.batch == 1 and p.x.feature != 1


def _rows(p: Convolution, inner: bool, reads: bool = True) -> list[str]:
    """The image and the place in it of each row, and where the window starts."""
    pixels = " * ".join(f"out_size{i}" for i in range(p.rank))
    lines = ["image = at_m % batch", "rest = at_m // batch"] if inner else [
        f"image = at_m // ({pixels})", f"rest = at_m % ({pixels})"]
    for i in reversed(range(p.rank)):
        lines += [f"o{i} = rest % out_size{i}", f"rest = rest // out_size{i}"] if i else [
            "o0 = rest"]
    if reads:
        lines += [f"at{i} = o{i} * stride{i} - pad{i}" for i in range(p.rank)]
    return lines


def _load(p: Convolution, config: Config, inner: bool) -> list[str]:
    """A tile of the image and one of the filter."""
    flat = config.flat
    x_batch, x_feature = _step("x_batch", p.x.batch), _step("x_feature", p.x.feature)
    w_in, w_out = _step("w_in", p.w.input), _step("w_out", p.w.out)
    lines = []
    if flat:
        lines = ["at = step * BLOCK_K + at_k"]
        lines += ["tap = at % taps", "feature = at // taps"] if inner else [
            "tap = at // in_features", "feature = at % in_features"]
        known = "(at < in_features * taps)"
        even = p.in_features * math.prod(p.window) % config.block_k == 0
    else:
        lines = ["tap = step // feature_steps", "feature = step % feature_steps * BLOCK_K + at_k"]
        known, even = "(feature < in_features)", p.in_features % config.block_k == 0
    for i in reversed(range(p.rank)):
        lines += [f"t{i} = tap % window{i}", f"tap = tap // window{i}"] if i else ["t0 = tap"]
    there = ["(at_m < m)[:, None]"] * (p.rows % config.block_m != 0)
    there += [f"{known}[None, :]"] * (not even)
    places = []
    for i in range(p.rank):
        lines.append(f"i{i} = at{i}[:, None] + (t{i} * dilation{i})[None, :]" if flat else
                     f"i{i} = (at{i} + t{i} * dilation{i})[:, None]")
        there.append(f"(i{i} >= 0)")
        if p.in_dilation[i] > 1:
            there.append(f"(i{i} % in_dilation{i} == 0)")
            lines.append(f"j{i} = i{i} // in_dilation{i}")
        else:
            lines.append(f"j{i} = i{i}")
        there.append(f"(j{i} < in_size{i})")
        places.append(f"WIDE(j{i}) * x_space{i}")
    lines += [
        f"x_place = (WIDE(image){x_batch})[:, None] + ({' + '.join(places)})",
        f"x_place += (WIDE(feature){x_feature})[None, :]",
        f"x_tile = tl.load(x_base + x_place, mask={' & '.join(there)}, other=0)"]
    taps = " + ".join(f"WIDE(t{i}) * w_space{i}" for i in range(p.rank))
    there = [f"{known}[:, None]"] * (not even)
    there += ["(at_n < out_features)[None, :]"] * (p.out_features % config.block_n != 0)
    mask = f", mask={' & '.join(there)}, other=0" if there else ""
    lines += [
        f"w_place = ({taps} + WIDE(feature){w_in})[:, None] + (WIDE(at_n){w_out})[None, :]",
        f"w_tile = tl.load(w_base + w_place{mask})"]
    return lines


def _step(name: str, value: int) -> str:
    return "" if value == 1 else f" * {name}"


def _sum(terms: Iterable[str], axes: str) -> str:
    return f"({' + '.join(terms)}){axes}"


def _each(name: str, values: tuple[int, ...]) -> list[Argument]:
    return [integer(f"{name}{i}", n) for i, n in enumerate(values)]


def _not_one(name: str, value: int) -> list[Argument]:
    return [] if value == 1 else [integer(name, value)]


def _is_wide(p: Convolution) -> bool:
    far = [sum(abs(s) * n for s, n in zip((t.batch, t.feature, *t.space), sizes)) for t, sizes in (
        (p.x, (p.batch, p.in_features, *p.in_size)),
        (p.out, (p.batch, p.out_features, *p.out_size)))]
    return max(*far, p.rows * p.out_features) > INT_MAX // 2


def configs(p: Convolution, sms: int = 132, count: int = 4) -> list[Config]:
    """Configurations worth trying, the likely best first."""
    size = BYTES[p.x.dtype]
    whole = p.in_features * math.prod(p.window)
    flat = _batch_inner(p) or p.in_features < 32
    block_k = min(128 // size, power_of_two(whole if flat else p.in_features))
    block_n = min(power_of_two(p.out_features), 128)
    if not (p.x.feature == 1 and p.in_features % 8 == 0) and not (
            p.x.batch == 1 and p.batch % 8 == 0):
        block_k = min(block_k, 32)  # elements come one by one, through registers
    found = []
    for block_m, width, warps, stages in ((128, block_n, 8 if block_n > 64 else 4, 3),
                                          (64, block_n, 4, 4), (128, min(block_n, 64), 4, 3),
                                          (128, min(2 * block_n, 256), 8, 3)):
        if width > power_of_two(p.out_features) or (block_m > power_of_two(p.rows)):
            continue
        tiles = -(-p.rows // block_m) * -(-p.out_features // width) * p.groups
        splits = 1
        while tiles * splits * 2 <= 3 * sms and whole >= 4 * splits * 8 * block_k and splits < 64:
            splits *= 2
        made = Config(block_m, width, block_k, warps, stages, splits=splits, flat=flat)
        if made not in found:
            found.append(made)
    return found[:count] or [Config(min(64, power_of_two(p.rows)), min(block_n, 64), block_k, 4, 3,
                                    flat=flat)]
