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
from dataclasses import replace
from functools import lru_cache

from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.templates.convolution_boxes import Boxes, boxes
from functrans.lowering.triton.templates.convolution_problem import (
    ConvolutionConfig,
    ConvolutionProblem,
    Filter,
    Image,
)
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    INT_MAX,
    TYPES,
    Argument,
    Expression,
    TemplateKernel,
    arrivals,
    expand,
    integer,
    pointer,
    power_of_two,
    stored_as,
)
from functrans.lowering.triton.templates.pack import (
    PackedConvolution,
    can_pack_convolution,
    packed,
)
from functrans.lowering.triton.templates.tiles import (
    ADD_MANY,
    ADD_SPLITS,
    EFFICIENCY,
    FRAME,
    SPAN,
    STORE_PARTS,
    TILE,
    at_once,
    last_combines,
    time_of_tiles,
)

__all__ = ["OUT_PLACE", "ConvolutionConfig", "ConvolutionProblem", "Filter", "Image", "configs",
           "estimate", "kernels", "smaller"]

OUT_PLACE = "OUT_PLACE"
"""In lines of an epilogue: where the rows of a tile begin in the output, without its offset."""

LEAST_SUM = 256
"""The terms that a program adds up at least, where some share a sum."""

SUM = SPAN + '''
if not DESCRIPTORS:
    ROWS
    STARTS
    at_n = col + tl.arange(0, BLOCK_N)
    at_k = tl.arange(0, BLOCK_K)
    x_base = x + tl.cast(x_offset, tl.int64)
    w_base = w + tl.cast(w_offset, tl.int64)
    if GROUPED:
        x_base += tl.cast(outer, tl.int64) * x_group
        w_base += tl.cast(outer, tl.int64) * w_group
acc = tl.full((BLOCK_N, BLOCK_M) if TURNED else (BLOCK_M, BLOCK_N), 0, dtype=SUMS)
if HAS_TERMS:
    for step in range(first, last):
        LOAD
        if TURNED:
            acc = tl.dot(tl.trans(w_tile), tl.trans(x_tile), acc, input_precision=PRECISION,
                         out_dtype=SUMS)
        else:
            acc = tl.dot(x_tile, w_tile, acc, input_precision=PRECISION, out_dtype=SUMS)
'''

STORE_SPLIT = '''
if TURNED:
    acc = tl.trans(acc)
ROWS
cols = (col + tl.arange(0, BLOCK_N))[None, :]
partial = workspace + tl.cast(split * groups + outer, tl.int64) * m * out_features
tl.store(partial + ((WIDE(at_m) * out_features)[:, None] + cols), acc,
         mask=known[:, None] & (cols < out_features))
'''

# where the partial sums of a tile are, and how far from one to the next
PLACE_OF_SUMS = '''
sums = workspace + tl.cast(outer, tl.int64) * m * out_features + (
    (WIDE(at_m) * out_features)[:, None] + cols)
summed = known[:, None] & (cols < out_features)
apart = tl.cast(groups, tl.int64) * m * out_features
'''
PARTIALS = PLACE_OF_SUMS + ADD_SPLITS

COMBINE = '''
@triton.jit
def NAME():
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(out_features, BLOCK_N)
    tile = tl.program_id(0)
    outer = tile // (tiles_m * tiles_n)
    row = tile // tiles_n % tiles_m * BLOCK_M
    col = tile % tiles_n * BLOCK_N
    ROWS
    cols = (col + tl.arange(0, BLOCK_N))[None, :]
    PLACE_OF_SUMS
    ADD_MANY
    FINISH
'''

FINISH = '''
if TURNED and SPLITS == 1:
    acc = tl.trans(acc)
ROWS
cols = (col + tl.arange(0, BLOCK_N if TURNED else BLOCK_N // PARTS))[None, :]
inside = known[:, None] & (cols < out_features)
place = OUT_PLACE + WIDE(cols) * OUT_FEATURE + tl.cast(out_offset, tl.int64)
if GROUPED:
    place += tl.cast(outer, tl.int64) * out_group
if ALPHA != 1.0:
    acc = acc * ALPHA
EPILOGUE
if STORES_DESCRIPTOR:
    STORE_BOX
elif STORES:
    tl.store(out + place, RESULT, mask=inside)
'''


def kernels(p: ConvolutionProblem, config: ConvolutionConfig, name: str = "convolution",
            target: Target = HOPPER
            ) -> list[TemplateKernel]:
    """The launches of a convolution; with a dilated input one for each phase of the output."""
    return list(_launches(p, config, name, target))


@lru_cache(maxsize=256)  # 30 ms: layers of one size are the same launches
def _launches(p: ConvolutionProblem, config: ConvolutionConfig, name: str,
              target: Target) -> tuple[TemplateKernel, ...]:
    """Those launches.

    Operands are packed once for all phases, each of which reads some taps of the filter.
    """
    partials = 0
    if config.splits > 1:
        partials = config.splits * max(q.groups * q.rows * q.out_features for q in _phases(p))
    before = PackedConvolution((), p)
    if config.packed and can_pack_convolution(next(_phases(p))):
        before = packed(p, partials, f"{name}_packed")
    workspace = max(partials, before.size) * BYTES[p.sums]
    made = [replace(k, workspace=workspace) for k in before.kernels]
    parts = list(_phases(before.problem))
    for part in parts:
        made += _kernels(part, config, name, target, before, workspace, len(parts) > 1)
    return tuple(made)


def _phases(p: ConvolutionProblem) -> Iterator[ConvolutionProblem]:
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


def _kernels(p: ConvolutionProblem, config: ConvolutionConfig, name: str, target: Target,
             before: PackedConvolution, workspace: int, shared: bool) -> list[TemplateKernel]:
    """The launches of one phase, after those of `before`; the text is `shared` with others."""
    if p.in_features * p.taps == 0:
        config = replace(config, splits=1, persistent=False)
    box = boxes(p, config) if config.descriptors else None
    tiles_m = box.tiles if box else -(-p.rows // config.block_m)
    programs = tiles_m * -(-p.out_features // config.block_n) * p.groups * config.splits
    gathered = _rows(p)
    values = _literals(p, config, shared) | {
        "BLOCK_M": config.block_m, "BLOCK_N": config.block_n, "BLOCK_K": config.block_k,
        "TILES_M": Expression(box.tiles_text if box else "tl.cdiv(m, BLOCK_M)"),
        "TILES_N": Expression("tl.cdiv(out_features, BLOCK_N)"),
        "STEPS": Expression(box.steps_text if box else (
            "tl.cdiv(in_features * taps, BLOCK_K)" if config.flat else
            "FEATURE_STEPS * taps")),
        "OUTER": Expression(f"groups * {config.splits}"), "PERSISTENT": config.persistent,
        "FLATTENED": config.splits == 1, "DESCRIPTORS": box is not None,
        "TURNED": box is not None and box.is_transposed,
        "HALVES": Expression("(BLOCK_N, 2, BLOCK_M // 2)" if box and box.is_transposed else
                             "(BLOCK_M, 2, BLOCK_N // 2)"),
        "GROUP": config.group, "SPLITS": config.splits, "LAST_COMBINES": config.last_combines,
        "PARTS": config.parts if config.splits == 1 else 1,
        # places of the sum are divided by its sizes: of no places LLVM takes the loop to run
        "HAS_TERMS": p.in_features * p.taps > 0,
        "GROUPED": p.groups > 1, "ALPHA": p.alpha, "PRECISION": p.precision,
         "ROUNDS": p.rounds, "SUMS": Expression(TYPES[p.sums]),
        "STORES": p.epilogue.result is not None,
        "STORES_DESCRIPTOR": box is not None and box.stores,
        "RESULT": stored_as(p.epilogue, p.out.dtype), "WIDE": _is_wide(p),
        "OUT_FEATURE": Expression("1" if p.out.feature == 1 else "out_feature"),
        "OUT_PLACE": Expression(_sum(["WIDE(image)" + _step("out_batch", p.out.batch), *[
            f"WIDE(o{i}) * out_space{i}" for i in range(p.rank)]], "[:, None]"))}
    blocks: dict[str, Iterable[str]] = {
        "DESCRIBE": [*before.lines, *(box.described if box else [])],
        "PLACE": [TILE, *(box.placed if box else [])],
        "SUM": [SUM], "STORE": [STORE_PARTS], "ADD_SPLITS": [PARTIALS],
        "PLACE_OF_SUMS": [PLACE_OF_SUMS], "ADD_MANY": [ADD_MANY],
        "NEXT_PART": [box.next_part if box else "col += BLOCK_N // 2"],
        "STORE_SPLIT": [STORE_SPLIT], "FINISH": [FINISH],
        "ROWS": box.numbered if box else gathered, "EPILOGUE": p.epilogue.lines,
        "STARTS": [f"at{i} = o{i} * stride{i} - pad{i}" for i in range(p.rank)],
        "LOAD": box.loaded if box else _gathered(p, config),
        "STORE_BOX": [box.stored] if box else []}
    sizes = [integer("m", p.rows), integer("batch", p.batch), integer("groups", p.groups),
             integer("out_features", p.out_features)]
    reads = [integer("in_features", p.in_features), *_each("in_size", p.in_size),
             *[a for a in (integer("taps", p.taps), *_each("window", p.window),
                           # 0 is a multiple of 16: phases of 2 x 2 were four kernels, one else
                           *[replace(a, divisible=False) for a in _each("pad", p.pad_low)])
               if a.name not in values],
             integer("x_offset", p.x.offset), integer("x_group", p.x.group),
             *_not_one("x_batch", p.x.batch), *_not_one("x_feature", p.x.feature),
             *[a for a in _each("x_space", p.x.space) if a.name not in values],
             integer("w_offset", p.w.offset),
             integer("w_group", p.w.group), *_not_one("w_out", p.w.out),
             *_not_one("w_in", p.w.input),
             *[a for a in _each("w_space", p.w.space) if a.name not in values]]
    writes = [integer("out_offset", p.out.offset), integer("out_group", p.out.group),
              *_not_one("out_batch", p.out.batch), *_not_one("out_feature", p.out.feature),
              *_each("out_space", p.out.space)]
    inputs = tuple(before.inputs())
    output = (pointer("out", p.out.dtype, p.out.aligned), *p.epilogue.arguments)
    finishes = config.splits == 1 or config.last_combines
    arguments = (*inputs, *[pointer("workspace", p.sums)] * (workspace > 0),
                 *[arrivals()] * config.last_combines, *(output if finishes else ()), *sizes,
                 *reads, *(writes if finishes else ()), *before.arguments)
    grid = min(programs, target.multiprocessors) if config.persistent else programs
    made = [TemplateKernel(name, expand(FRAME, name, arguments, values, blocks), arguments,
                           (grid, 1, 1), config.warps, config.stages, workspace,
                           arrivals=programs // config.splits * config.last_combines)]
    if not finishes:
        made.append(_combine(p, config, f"{name}_combine", values, blocks | {"ROWS": gathered},
                             (pointer("workspace", p.sums), *output, *sizes, *writes,
                              replace(integer("splits", config.splits), divisible=False)),
                             workspace, target))
    return made


def _combine(p: ConvolutionProblem, config: ConvolutionConfig, name: str,
             values: dict[str, object], blocks: dict[str, Iterable[str]],
             arguments: tuple[Argument, ...], workspace: int, target: Target) -> TemplateKernel:
    """The launch that adds split sums up, of tiles that are small enough for all multiprocessors:
    two programs would read 64 sums of 27 x 64 at a hundredth of the bandwidth."""
    # one text for all sizes, and however many sums there are
    values = {key: value for key, value in values.items() if not key.startswith("out_size")}
    arguments = (*arguments, *_each("out_size", p.out_size))
    across = -(-p.out_features // 64) * p.groups
    rows = next((n for n in (16, 8, 4, 2) if -(-p.rows // n) * across >= target.multiprocessors), 1)
    values = values | {"BLOCK_M": rows, "BLOCK_N": 64, "STORES_DESCRIPTOR": False, "TURNED": False,
                       "SPLITS": Expression("splits"),
                       "LOADS": at_once(config.splits, 16)}
    return TemplateKernel(name, expand(COMBINE, name, arguments, values, blocks), arguments,
                          (-(-p.rows // rows) * across, 1, 1), min(4, max(1, rows // 2)), 1,
                          workspace)


def _literals(p: ConvolutionProblem, config: ConvolutionConfig,
              shared: bool) -> dict[str, object]:
    """Sizes that kernels divide by, or that say where a step reads, as numbers in the text.

    A step of a tile that the copy engine moves is some 500 cycles of the tensor cores: divisions by
    arguments, of which there are three a step, took as long. Phases have a text that is `shared`,
    and their own windows: four kernels take four times as long to compile.
    """
    values: dict[str, object] = {"FEATURE_STEPS": -(-p.in_features // config.block_k)}
    numbers = [("out_size", p.out_size), ("stride", p.stride), ("dilation", p.window_dilation),
               ("in_dilation", p.in_dilation)]
    if not shared:
        values["taps"] = p.taps
        numbers += [("window", p.window), ("pad", p.pad_low)]
    for name, sizes in numbers:
        values |= {f"{name}{i}": n for i, n in enumerate(sizes)}
    if config.flat and not p.batch_inner:
        values["in_features"] = p.in_features
    if config.flat and _has_taps_inner(p):  # Triton then knows which neighbours to load at once
        values |= {f"{name}_space{i}": n for name, op in (("x", p.x), ("w", p.w))
                   for i, n in enumerate(op.space)}
    return values


def _is_flat(p: ConvolutionProblem) -> bool:
    """Whether steps take places of the sum in a row, whichever tap and feature they are."""
    return p.batch_inner or p.in_features < 32 or (
        _has_taps_inner(p) and p.window[-1] % 4 == 0 and p.stride[-1] > 1)


def _has_taps_inner(p: ConvolutionProblem) -> bool:
    """Whether neighbours in a row of the image are neighbours in the sum.

    8 x 8 taps of 4 features that come before places took 227 us with features next to each other,
    of 512 images of 84 x 84.
    """
    return p.batch_inner or (p.x.space[-1] == 1 and p.x.feature != 1
                             and p.window_dilation[-1] == 1)


def _is_inside(p: ConvolutionProblem, i: int) -> bool:
    """Whether windows have no padding along an axis."""
    first, steps = -p.pad_low[i], p.out_size[i] - 1
    last = first + steps * p.stride[i] + (p.window[i] - 1) * p.window_dilation[i]
    return p.in_dilation[i] == 1 and first >= 0 and last < p.in_size[i]


def _rows(p: ConvolutionProblem) -> list[str]:
    """The image and the place in it of each row."""
    pixels = " * ".join(f"out_size{i}" for i in range(p.rank))
    lines = ["at_m = row + tl.arange(0, BLOCK_M)", "known = at_m < m"]
    lines += ["image = at_m % batch", "rest = at_m // batch"] if p.batch_inner else [
        f"image = at_m // ({pixels})", f"rest = at_m % ({pixels})"]
    for i in reversed(range(p.rank)):
        lines += [f"o{i} = rest % out_size{i}", f"rest = rest // out_size{i}"] if i else [
            "o0 = rest"]
    return lines


def _gathered(p: ConvolutionProblem, config: ConvolutionConfig) -> list[str]:
    """A tile of the image and one of the filter."""
    flat = config.flat
    x_batch, x_feature = _step("x_batch", p.x.batch), _step("x_feature", p.x.feature)
    w_in, w_out = _step("w_in", p.w.input), _step("w_out", p.w.out)
    lines = []
    if flat:
        lines = ["at = step * BLOCK_K + at_k"]
        lines += ["tap = at % taps", "feature = at // taps"] if _has_taps_inner(p) else [
            "tap = at // in_features", "feature = at % in_features"]
        known = "(at < in_features * taps)"
        even = p.in_features * p.taps % config.block_k == 0
    else:
        lines = ["tap = step // FEATURE_STEPS",
                 "feature = step % FEATURE_STEPS * BLOCK_K + at_k"]
        known, even = "(feature < in_features)", p.in_features % config.block_k == 0
    for i in reversed(range(p.rank)):
        lines += [f"t{i} = tap % window{i}", f"tap = tap // window{i}"] if i else ["t0 = tap"]
    there = ["(at_m < m)[:, None]"] * (p.rows % config.block_m != 0)
    there += [f"{known}[None, :]"] * (not even)
    places = []
    for i in range(p.rank):
        lines.append(f"i{i} = at{i}[:, None] + (t{i} * dilation{i})[None, :]" if flat else
                     f"i{i} = (at{i} + t{i} * dilation{i})[:, None]")
        inside = _is_inside(p, i)
        there += [f"(i{i} >= 0)"] * (not inside)
        if p.in_dilation[i] > 1:
            there.append(f"(i{i} % in_dilation{i} == 0)")
            lines.append(f"j{i} = i{i} // in_dilation{i}")
        else:
            lines.append(f"j{i} = i{i}")
        there += [f"(j{i} < in_size{i})"] * (not inside)
        places.append(f"WIDE(j{i}) * x_space{i}")
    lines += [
        f"x_place = (WIDE(image){x_batch})[:, None] + ({' + '.join(places)})",
        f"x_place += (WIDE(feature){x_feature})[None, :]",
        f"x_tile = ROUNDED(tl.load(x_base + x_place{_masked(there)}))"]
    taps = " + ".join(f"WIDE(t{i}) * w_space{i}" for i in range(p.rank))
    there = [f"{known}[:, None]"] * (not even)
    there += ["(at_n < out_features)[None, :]"] * (p.out_features % config.block_n != 0)
    lines += [
        f"w_place = ({taps} + WIDE(feature){w_in})[:, None] + (WIDE(at_n){w_out})[None, :]",
        f"w_tile = ROUNDED(tl.load(w_base + w_place{_masked(there)}))"]
    return lines


def _masked(there: list[str]) -> str:
    return f", mask={' & '.join(there)}, other=0" if there else ""


def _step(name: str, value: int) -> str:
    return "" if value == 1 else f" * {name}"


def _sum(terms: Iterable[str], axes: str) -> str:
    return f"({' + '.join(terms)}){axes}"


def _each(name: str, values: tuple[int, ...]) -> list[Argument]:
    return [integer(f"{name}{i}", n) for i, n in enumerate(values)]


def _not_one(name: str, value: int) -> list[Argument]:
    return [] if value == 1 else [integer(name, value)]


def _is_wide(p: ConvolutionProblem) -> bool:
    far = [sum(abs(s) * n for s, n in zip((t.batch, t.feature, *t.space), sizes)) for t, sizes in (
        (p.x, (p.batch, p.in_features, *p.in_size)),
        (p.out, (p.batch, p.out_features, *p.out_size)))]
    return max(*far, p.rows * p.out_features) > INT_MAX // 2


def configs(p: ConvolutionProblem, target: Target = HOPPER,
            count: int = 4) -> list[ConvolutionConfig]:
    """Configurations worth trying, by the time that `estimate` gives them."""
    return list(_by_estimate(p, target)[:count])


@lru_cache(maxsize=256)  # 30 ms
def _by_estimate(p: ConvolutionProblem, target: Target) -> tuple[ConvolutionConfig, ...]:
    part = next(_phases(p))
    found = [c for tile in EFFICIENCY
             for c in (*_copied(part, tile, target), *_read(part, tile, target))]
    if can_pack_convolution(part):
        found += [replace(c, packed=True) for tile in EFFICIENCY
                  for c in _copied(packed(part).problem, tile, target)]
    return tuple(sorted(found, key=lambda c: estimate(p, c, target)))


def smaller(p: ConvolutionProblem) -> list[ConvolutionConfig]:
    """Configurations for whoever has no room for others: little is on its way at a time."""
    return [ConvolutionConfig(n, n, 16, 4, 1, flat=_is_flat(p)) for n in (32, 16)]


def estimate(p: ConvolutionProblem, config: ConvolutionConfig, target: Target = HOPPER) -> float:
    """Nanoseconds of a convolution, by a model: of what is packed, and of each phase."""
    packing, q = _packing(p, config, target)
    plain = replace(config, packed=False)
    return packing + sum([_of_phase(part, plain, target) for part in _phases(q)])


def _packing(p: ConvolutionProblem, config: ConvolutionConfig,
             target: Target) -> tuple[float, ConvolutionProblem]:
    """Nanoseconds of packing operands, and the convolution of packed ones."""
    if not config.packed:
        return 0.0, p
    before, figures = packed(p), target.measured
    return (2 * BYTES["fp32"] * before.size / figures.bandwidth
            + figures.split_launch * len(before.kernels)), before.problem


def _of_phase(p: ConvolutionProblem, config: ConvolutionConfig, target: Target) -> float:
    """Nanoseconds of a convolution whose input is not dilated."""
    packing, p = _packing(p, config, target)
    if p.in_features * p.taps == 0:
        return packing + p.groups * p.rows * p.out_features * BYTES[p.out.dtype] \
            / target.measured.bandwidth
    box = boxes(p, config) if config.descriptors else None
    tiles = (box.tiles if box else -(-p.rows // config.block_m)) * p.groups
    tiles *= -(-p.out_features // config.block_n)
    size = BYTES[p.x.dtype]
    image = p.batch * p.in_features * math.prod(p.in_size)
    moved = p.groups * (image * size + p.taps * p.in_features * p.out_features * size
                        + p.rows * p.out_features * BYTES[p.out.dtype])
    rate = target.measured.rates[p.precision if p.x.dtype == "fp32" else p.x.dtype]
    tile = (config.block_n, config.block_m) if box and box.is_transposed else (
        config.block_m, config.block_n)
    return packing + time_of_tiles(
        tile, tiles, p.in_features * p.taps, config.splits, size,
        rate * _share(p, config, box), moved, _again(p, config.splits), target)


def _again(p: ConvolutionProblem, splits: int) -> float:
    """Bytes of split sums, written and read."""
    return (splits > 1) * 2.0 * splits * p.groups * p.rows * p.out_features * BYTES[p.sums]


def _share(p: ConvolutionProblem, config: ConvolutionConfig, box: Boxes | None) -> float:
    """The part of a tile's rate that is reached, as measured on convolutions of ResNet-50."""
    if box is None and p.rounds:  # through registers: 128 x 128 x 9 of 64 x 28 x 28 61 TFLOP/s
        return 0.2
    if box is None:
        return 0.5 if p.batch_inner else 1.0
    share = 1.0 if config.persistent or config.splits > 1 else 0.85
    places = math.prod(box.rows[1:])  # boxes of few places read many pages of memory
    return share * (1.0 if places >= 16 or not box.is_transposed else 0.75 if places < 4 else 0.9)


def _copied(p: ConvolutionProblem, tile: tuple[int, int],
            target: Target) -> list[ConvolutionConfig]:
    """Configurations of a tile that the copy engine moves."""
    size = BYTES[p.x.dtype]
    if (size > 2 and not p.rounds) or min(tile) < 64:
        return []
    least = 64 if p.rounds else 16  # what has fewer rows or features would go through registers
    if tile[1] > power_of_two(p.out_features, least):
        return []
    if tile[0] > power_of_two(p.batch if p.batch_inner else p.rows, least):
        return []
    block_k = min(128 // size, power_of_two(p.in_features))
    large = tile[0] * tile[1] >= 128 * 128 and (tile[0] if p.batch_inner else tile[1]) >= 128
    stage = (tile[0] + tile[1]) * block_k * size
    base = ConvolutionConfig(*tile, block_k, 8 if large else 4,
                             max(1, min(4, target.shared // stage)), descriptors=True)
    box = boxes(p, base)
    if box is None:
        return []
    tiles = box.tiles * -(-p.out_features // tile[1])
    made = []
    if tiles > target.multiprocessors:
        parts = 2 if tile[0] * tile[1] >= 128 * 256 else 1
        room = target.shared - 2048 - tile[0] * tile[1] // parts * BYTES[p.out.dtype]
        made.append(replace(base, persistent=True, parts=parts,
                            stages=max(1, min(4, room // stage))))
    return [*made, *[_with_splits(p, base, tiles, s, target)
                     for s in _splits(tiles, box.steps * block_k, target)]]


def _read(p: ConvolutionProblem, tile: tuple[int, int], target: Target) -> list[ConvolutionConfig]:
    """Configurations of a tile whose elements are read where they are."""
    if max(tile) > 128 or min(tile) < 16 or tile[1] > power_of_two(p.out_features) or \
            tile[0] > power_of_two(p.rows):
        return []
    whole = p.in_features * p.taps
    flat = _is_flat(p)
    block_k = min(128 // BYTES[p.x.dtype], power_of_two(whole if flat else p.in_features))
    if not (p.x.feature == 1 and p.in_features % 8 == 0) and not (
            p.x.batch == 1 and p.batch % 8 == 0):
        block_k = min(block_k, 32)  # elements come one by one, through registers
    warps = 8 if tile[0] * tile[1] >= 128 * 128 else 4
    tiles = -(-p.rows // tile[0]) * -(-p.out_features // tile[1]) * p.groups
    stages = 4 if tile[0] <= 64 else 3
    base = ConvolutionConfig(*tile, block_k, warps, stages, flat=flat)
    return [_with_splits(p, base, tiles, s, target) for s in _splits(tiles, whole, target)]


def _with_splits(p: ConvolutionProblem, base: ConvolutionConfig, tiles: int, splits: int,
                 target: Target) -> ConvolutionConfig:
    """A configuration whose sums are cut, and added by whom is faster."""
    return replace(base, splits=splits, last_combines=last_combines(
        (base.block_m, base.block_n), tiles, splits, _again(p, splits), target))


def _splits(tiles: int, whole: int, target: Target) -> list[int]:
    """Into how many programs a sum is worth cutting: full waves of some, each with enough to do."""
    most = min(target.multiprocessors, whole // LEAST_SUM)
    counts = [min(most, waves * target.multiprocessors // max(tiles, 1)) for waves in (1, 2, 3)]
    return sorted({1, *[n for n in counts if n > 1]})
