"""Tiles of a convolution as boxes of its tensors, which the copy engine moves.

A tile of rows is a box of images and places of the output, a step along the sum one of features
and taps. What a box of the image has outside of it is 0, as padding is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from functrans.lowering.triton.templates.convolution_problem import (
    Config,
    Convolution,
    Filter,
    Image,
)
from functrans.lowering.triton.templates.kernel import BYTES

__all__ = ["Boxes", "boxes"]

LEAST_BYTES = 32  # of a box in a row


@dataclass(frozen=True)
class Boxes:
    """`rows` are images and places of a tile, `sum` features and taps of a step."""

    p: Convolution
    config: Config
    rows: tuple[int, ...]
    sum: tuple[int, ...]

    @property
    def tiles(self) -> int:
        """Tiles of rows."""
        return math.prod(-(-n // b) for n, b in zip((self.p.batch, *self.p.out_size), self.rows))

    @property
    def steps(self) -> int:
        return math.prod(-(-n // b) for n, b in zip((self.p.in_features, *self.p.window),
                                                    self.sum))

    @property
    def stores(self) -> bool:
        """Whether the copy engine can write tiles of the output."""
        out = self.p.out
        return (self.config.splits == 1 and self.p.epilogue.result is not None
                and out.feature == 1 and out.aligned
                and _copies(out.dtype, out.offset, (out.batch, *out.space))
                and self.config.block_n // self.config.parts * BYTES[out.dtype] >= LEAST_BYTES)

    # ----------------------------------------------------------------------- text

    @property
    def described(self) -> list[str]:
        p, (images, *places), (features, *taps) = self.p, self.rows, self.sum
        space = range(p.rank)
        sizes = [f"in_size{i}" for i in space]
        steps = [f"x_space{i}" for i in space]
        place = [str(a * b) for a, b in zip(places, taps)]
        if p.x.feature == 1:
            x = (["batch", *sizes, "in_features"], ["x_batch", *steps, "1"],
                 [str(images), *place, str(features)])
        else:
            x = (["in_features", *sizes, "batch"], ["x_feature", *steps, "1"],
                 [str(features), *place, str(images)])
        windows = [f"window{i}" for i in space]
        flips = [s < 0 for s in p.w.space]
        steps = [f"-w_space{i}" if flip else f"w_space{i}" for i, flip in enumerate(flips)]
        block = [str(t) for t in taps]
        if p.w.out == 1:
            w = (["in_features", *windows, "out_features"], ["w_in", *steps, "1"],
                 [str(features), *block, "BLOCK_N"])
        else:
            w = ([*windows, "out_features", "in_features"], [*steps, "w_out", "1"],
                 [*block, "BLOCK_N", str(features)])
        first = " + ".join(["w_offset", *[f"(window{i} - 1) * w_space{i}"
                                          for i, flip in enumerate(flips) if flip]])
        made = [_descriptor("x", "x_offset", *x), _descriptor("w", first, *w)]
        if self.stores:
            made.append(_descriptor(
                "out", "out_offset", ["batch", *[f"out_size{i}" for i in space], "out_features"],
                ["out_batch", *[f"out_space{i}" for i in space], "1"],
                [*map(str, self.rows), "BLOCK_N // PARTS"]))
        return made

    @property
    def tiles_text(self) -> str:
        return " * ".join(_count(n, b) for n, b in zip(
            ("batch", *[f"out_size{i}" for i in range(self.p.rank)]), self.rows))

    @property
    def steps_text(self) -> str:
        return " * ".join(_count(n, b) for n, b in zip(
            ("in_features", *[f"window{i}" for i in range(self.p.rank)]), self.sum))

    @property
    def placed(self) -> list[str]:
        """Where the box of a tile of rows starts."""
        lines = ["turn = row // BLOCK_M"]
        for i in reversed(range(self.p.rank)):
            n, b = f"out_size{i}", self.rows[1 + i]
            lines += [f"start{i} = turn % {_count(n, b)} * {b}", f"turn = turn // {_count(n, b)}"]
        return [*lines, f"start = turn * {self.rows[0]}"]

    @property
    def rows_text(self) -> list[str]:
        """The image and the place in it of each row, and which are there."""
        lines = ["at = tl.arange(0, BLOCK_M)"]
        for i in reversed(range(self.p.rank)):
            b = self.rows[1 + i]
            lines += [f"o{i} = start{i} + at % {b}", f"at = at // {b}"]
        lines.append("image = start + at")
        tests = ["(image < batch)", *[f"(o{i} < out_size{i})" for i in range(self.p.rank)]]
        lines.append(f"known = {' & '.join(tests)}")
        number = "image"
        for i in range(self.p.rank):
            number = f"({number} * out_size{i} + o{i})"
        if self.p.batch_inner:
            number = "o0"
            for i in range(1, self.p.rank):
                number = f"({number} * out_size{i} + o{i})"
            number = f"{number} * batch + image"
        return [*lines, f"at_m = {number}"]

    @property
    def loaded(self) -> list[str]:
        p = self.p
        features = _count("in_features", self.sum[0])
        lines = [f"feature = step % {features} * {self.sum[0]}", f"tap = step // {features}"]
        for i in reversed(range(p.rank)):
            count = _count(f"window{i}", self.sum[1 + i])
            lines += [f"t{i} = tap % {count} * {self.sum[1 + i]}", f"tap = tap // {count}"]
        at = [f"start{i} * stride{i} - pad{i} + t{i} * dilation{i}" for i in range(p.rank)]
        if p.x.feature == 1:
            x = f"tl.reshape({_load('x', ['start', *at, 'feature'])}, (BLOCK_M, BLOCK_K))"
        else:
            x = f"tl.trans(tl.reshape({_load('x', ['feature', *at, 'start'])}, (BLOCK_K, BLOCK_M)))"
        taps = [f"window{i} - 1 - t{i}" if s < 0 else f"t{i}" for i, s in enumerate(p.w.space)]
        if p.w.out == 1:
            w = f"tl.reshape({_load('w', ['feature', *taps, 'col'])}, (BLOCK_K, BLOCK_N))"
        else:
            w = f"tl.trans(tl.reshape({_load('w', [*taps, 'col', 'feature'])}, (BLOCK_N, BLOCK_K)))"
        return [*lines, f"x_tile = {x}", f"w_tile = {w}"]

    @property
    def stored(self) -> str:
        block = ", ".join([*map(str, self.rows), "BLOCK_N // PARTS"])
        at = ", ".join(["start", *[f"start{i}" for i in range(self.p.rank)], "col"])
        return f"out_tiles.store([{at}], tl.reshape((RESULT).to(OUT_TYPE), ({block})))"


def _count(size: str, block: int) -> str:
    return size if block == 1 else f"tl.cdiv({size}, {block})"


def _descriptor(name: str, offset: str, shape: list[str], strides: list[str],
                block: list[str]) -> str:
    return (f"{name}_tiles = tl.make_tensor_descriptor({name} + tl.cast({offset}, tl.int64), "
            f"[{', '.join(shape)}], [{', '.join(strides)}], [{', '.join(block)}])")


def _load(name: str, place: list[str]) -> str:
    return f"{name}_tiles.load([{', '.join(place)}])"


def _copies(dtype: str, offset: int, strides: tuple[int, ...]) -> bool:
    """Whether a descriptor can have these strides besides one of 1."""
    size = BYTES[dtype]
    return offset * size % 16 == 0 and all(s > 0 and s * size % 16 == 0 for s in strides)


def boxes(p: Convolution, config: Config) -> Boxes | None:
    """The boxes of tiles, or None where the copy engine cannot move them."""
    if p.groups > 1 or p.rank > 3 or any(d > 1 for d in p.in_dilation):
        return None
    if 0 in (p.batch, p.in_features, p.out_features, *p.in_size, *p.window, *p.out_size):
        return None
    if not (_reads_image(p.x) and _reads_filter(p.w)):
        return None
    dilation = p.window_dilation or (1,) * p.rank
    if p.x.feature == 1:
        inner = min(config.block_k, config.block_n if p.w.out == 1 else config.block_k)
        found = _rows(p, config.block_m)
        made = Boxes(p, config, found, (config.block_k, *[1] * p.rank)) if found else None
    else:
        if p.w.out != 1:
            return None
        inner = min(config.block_m, config.block_n)
        sums = _sum(p, dilation, config.block_k)
        made = Boxes(p, config, (config.block_m, *[1] * p.rank), sums) if sums else None
    return made if inner * BYTES[p.x.dtype] >= LEAST_BYTES else None


def _reads_image(x: Image) -> bool:
    far = x.batch if x.feature == 1 else x.feature
    return x.aligned and 1 in (x.feature, x.batch) and _copies(x.dtype, x.offset, (far, *x.space))


def _reads_filter(w: Filter) -> bool:
    far = w.input if w.out == 1 else w.out
    return w.aligned and 1 in (w.out, w.input) and _copies(
        w.dtype, w.offset, (far, *map(abs, w.space)))


def _rows(p: Convolution, block: int) -> tuple[int, ...] | None:
    """Images and places of a tile: those with the least outside, of these the fewest images."""
    sizes = (p.batch, *p.out_size)
    made = [b for b in _cuts(block, 1 + p.rank) if all(
        n == 1 or s == 1 for n, s in zip(b[1:], p.stride))]

    def waste(b: tuple[int, ...]) -> tuple[float, int, int]:
        return math.prod(-(-n // k) * k / n for n, k in zip(sizes, b)), b[0], max(b[1:])
    return min(made, key=waste, default=None)


def _sum(p: Convolution, dilation: tuple[int, ...], block: int) -> tuple[int, ...] | None:
    """Features and taps of a step: taps must be there, what is beside them is not 0."""
    made = [b for b in _cuts(block, 1 + p.rank) if all(
        n % k == 0 and (k == 1 or d == 1) for n, k, d in zip(p.window, b[1:], dilation))]
    return min(made, key=lambda b: (-(-p.in_features // b[0]) * b[0], b[0], max(b[1:])),
               default=None)


def _cuts(block: int, rank: int) -> Iterator[tuple[int, ...]]:
    """The ways to write a power of two as a product of powers of two of 256 at most."""
    powers = [1 << k for k in range(min(block.bit_length(), 9))]
    return (b for b in itertools.product(powers, repeat=rank) if math.prod(b) == block)
