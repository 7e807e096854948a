"""Tiles of a convolution as boxes of its tensors, which the copy engine moves.

A tile of rows is a box of images and places of the output, a step along the sum some features of
one tap. What a box of the image has outside of it is 0, as padding is.

Triton reads a left operand that is reshaped through registers (and 3.6 overwrites these while they
are read). So it is a box of one row of matrices that is on the left: the filter, whose product with
the image is the transposed tile, or the image where neighbours in memory are rows of the tile.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

from functrans.core.record import Record
from functrans.lowering.triton.templates.convolution_problem import (
    ConvolutionConfig,
    ConvolutionProblem,
    Filter,
    Image,
)
from functrans.lowering.triton.templates.kernel import BYTES
from functrans.lowering.triton.templates.tiles import rounding

__all__ = ["Boxes", "boxes"]

LEAST_BYTES = 32  # of a box in a row


class Boxes(Record):
    """`rows` are the images and the places of a tile."""

    p: ConvolutionProblem
    config: ConvolutionConfig
    rows: tuple[int, ...]

    @property
    def tiles(self) -> int:
        """Tiles of rows."""
        return math.prod(-(-n // b) for n, b in zip((self.p.batch, *self.p.out_size), self.rows))

    @property
    def steps(self) -> int:
        return -(-self.p.in_features // self.config.block_k) * self.p.taps

    @property
    def is_transposed(self) -> bool:
        """Whether sums are those of the transposed tile."""
        return self.p.x.feature == 1

    @property
    def part(self) -> tuple[tuple[int, ...], int]:
        """Images and places, and features, of what is stored at a time."""
        parts = self.config.parts if self.config.splits == 1 else 1
        if not self.is_transposed:
            return self.rows, self.config.block_n // parts
        at = self._cut
        return (*self.rows[:at], self.rows[at] // parts, *self.rows[at + 1:]), self.config.block_n

    @property
    def _cut(self) -> int:
        """The dimension of rows that parts halve."""
        return next((i for i, n in enumerate(self.rows) if n > 1), 0)

    @property
    def stores(self) -> bool:
        """Whether the copy engine can write tiles of the output."""
        out = self.p.out
        return (self.config.splits == 1 and self.p.epilogue.result is not None
                and out.feature == 1 and out.aligned
                and _copies(out.dtype, out.offset, (out.batch, *out.space))
                and self.part[1] * BYTES[out.dtype] >= LEAST_BYTES)

    # ----------------------------------------------------------------------- text

    def _each(self, text: str) -> list[str]:
        """A text for each dimension of the window, whose number is for `#`."""
        return [text.replace("#", str(i)) for i in range(self.p.rank)]

    @property
    def described(self) -> list[str]:
        p, (images, *places) = self.p, map(str, self.rows)
        sizes, steps, ones = self._each("in_size#"), self._each("x_space#"), ["1"] * p.rank
        if self.is_transposed:
            made = [_descriptor("x", "x_offset", ["batch", *sizes, "in_features"],
                                ["x_batch", *steps, "1"], [images, *places, "BLOCK_K"])]
        else:
            made = [_descriptor("x", "x_offset", [*sizes, "in_features", "batch"],
                                [*steps, "x_feature", "1"], [*ones, "BLOCK_K", images])]
        flipped = [i for i, step in enumerate(p.w.space) if step < 0]
        steps = [f"-w_space{i}" if i in flipped else f"w_space{i}" for i in range(p.rank)]
        offset = " + ".join(["w_offset", *[f"(window{i} - 1) * w_space{i}" for i in flipped]])
        windows = self._each("window#")
        made.append(_descriptor(
            "w", offset, [*windows, "in_features", "out_features"], [*steps, "w_in", "1"],
            [*ones, "BLOCK_K", "BLOCK_N"]) if p.w.out == 1 else _descriptor(
            "w", offset, [*windows, "out_features", "in_features"], [*steps, "w_out", "1"],
            [*ones, "BLOCK_N", "BLOCK_K"]))
        made = rounding(made, p.rounds)
        if self.stores:
            rows, features = self.part
            made.append(_descriptor(
                "out", "out_offset", ["batch", *self._each("out_size#"), "out_features"],
                ["out_batch", *self._each("out_space#"), "1"], [*map(str, rows), str(features)]))
        return made

    @property
    def tiles_text(self) -> str:
        return " * ".join(_count(n, b) for n, b in zip(
            ("batch", *self._each("out_size#")), self.rows))

    @property
    def steps_text(self) -> str:
        return " * ".join(["FEATURE_STEPS", *self._each("window#")])

    @property
    def placed(self) -> list[str]:
        """Where the box of a tile of rows starts."""
        lines = ["turn = row // BLOCK_M"]
        for i in reversed(range(self.p.rank)):
            count = _count(f"out_size{i}", self.rows[1 + i])
            lines += [f"start{i} = turn % {count} * {self.rows[1 + i]}",
                      f"turn = turn // {count}"]
        return [*lines, f"start = turn * {self.rows[0]}"]

    @property
    def next_part(self) -> str:
        """The step from the first part of a tile to the second."""
        if not self.is_transposed:
            return "col += BLOCK_N // 2"
        at = self._cut
        return f"{f'start{at - 1}' if at else 'start'} += {self.rows[at] // 2}"

    @property
    def numbered(self) -> list[str]:
        """The image and the place in it of each row, which are there, and their numbers."""
        rows = self.part[0]
        lines = [f"at = tl.arange(0, {math.prod(rows)})"]
        for i in reversed(range(self.p.rank)):
            lines += [f"o{i} = start{i} + at % {rows[1 + i]}", f"at = at // {rows[1 + i]}"]
        lines += ["image = start + at", " & ".join(
            ["known = (image < batch)", *self._each("(o# < out_size#)")])]
        number = "0" if self.p.batch_inner else "image"
        for i in range(self.p.rank):
            number = f"({number} * out_size{i} + o{i})"
        return [*lines, f"at_m = {number}{' * batch + image' if self.p.batch_inner else ''}"]

    @property
    def loaded(self) -> list[str]:
        lines = ["feature = step % FEATURE_STEPS * BLOCK_K", "tap = step // FEATURE_STEPS"]
        for i in reversed(range(self.p.rank)):
            lines += [f"t{i} = tap % window{i}", f"tap = tap // window{i}"] if i else ["t0 = tap"]
        at = ", ".join(self._each("start# * stride# - pad# + t# * dilation#"))
        if self.is_transposed:
            x = f"tl.reshape(x_tiles.load([start, {at}, feature]), (BLOCK_M, BLOCK_K))"
        else:
            x = f"tl.trans(tl.reshape(x_tiles.load([{at}, feature, start]), (BLOCK_K, BLOCK_M)))"
        taps = ", ".join([f"window{i} - 1 - t{i}" if s < 0 else f"t{i}"
                          for i, s in enumerate(self.p.w.space)])
        if self.p.w.out == 1:
            w = f"tl.reshape(w_tiles.load([{taps}, feature, col]), (BLOCK_K, BLOCK_N))"
        else:
            w = f"tl.trans(tl.reshape(w_tiles.load([{taps}, col, feature]), (BLOCK_N, BLOCK_K)))"
        return [*lines, f"x_tile = {x}", f"w_tile = {w}"]

    @property
    def stored(self) -> str:
        rows, features = self.part
        at = ", ".join(["start", *self._each("start#"), "col"])
        return (f"out_tiles.store([{at}], tl.reshape(RESULT, "
                f"({', '.join(map(str, (*rows, features)))})))")


def _count(size: str, block: int) -> str:
    return size if block == 1 else f"tl.cdiv({size}, {block})"


def _descriptor(name: str, offset: str, shape: list[str], strides: list[str],
                block: list[str]) -> str:
    return (f"{name}_tiles = tl.make_tensor_descriptor({name} + tl.cast({offset}, tl.int64), "
            f"[{', '.join(shape)}], [{', '.join(strides)}], [{', '.join(block)}])")


def _copies(dtype: str, offset: int, strides: tuple[int, ...]) -> bool:
    """Whether a descriptor can have these strides besides one of 1."""
    size = BYTES[dtype]
    return offset * size % 16 == 0 and all(s > 0 and s * size % 16 == 0 for s in strides)


def boxes(p: ConvolutionProblem, config: ConvolutionConfig) -> Boxes | None:
    """The boxes of tiles, or None where the copy engine cannot move them."""
    if p.groups > 1 or p.rank > 3 or any(d > 1 for d in p.in_dilation):
        return None
    if 0 in (p.batch, p.in_features, p.out_features, *p.in_size, *p.window, *p.out_size):
        return None
    if not (_reads_image(p.x) and _reads_filter(p.w)):
        return None
    if p.rounds and not (p.x.feature == 1 and p.w.input == 1):
        return None  # tensor cores read TensorFloat-32 along the sum alone
    rows = (config.block_m, *[1] * p.rank) if p.batch_inner else _rows(p, config.block_m)
    least = min(config.block_m if p.batch_inner else config.block_k,
                config.block_n if p.w.out == 1 else config.block_k)
    return Boxes(p, config, rows) if rows and least * BYTES[p.x.dtype] >= LEAST_BYTES else None


def _reads_image(x: Image) -> bool:
    far = x.batch if x.feature == 1 else x.feature
    return x.aligned and 1 in (x.feature, x.batch) and _copies(x.dtype, x.offset, (far, *x.space))


def _reads_filter(w: Filter) -> bool:
    far = w.input if w.out == 1 else w.out
    return w.aligned and 1 in (w.out, w.input) and _copies(
        w.dtype, w.offset, (far, *map(abs, w.space)))


def _rows(p: ConvolutionProblem, block: int) -> tuple[int, ...] | None:
    """Images and places of a tile: those with the least outside, of these the fewest images."""
    sizes = (p.batch, *p.out_size)
    made = [b for b in _cuts(block, 1 + p.rank) if all(
        n == 1 or s == 1 for n, s in zip(b[1:], p.stride))]

    def waste(b: tuple[int, ...]) -> tuple[float, int, int]:
        return math.prod(-(-n // k) * k / n for n, k in zip(sizes, b)), b[0], max(b[1:])
    return min(made, key=waste, default=None)


@lru_cache
def _cuts(block: int, rank: int) -> tuple[tuple[int, ...], ...]:
    """The ways to write a power of two as a product of powers of two of 256 at most."""
    powers = [1 << k for k in range(min(block.bit_length(), 9))]
    return tuple([b for b in itertools.product(powers, repeat=rank) if math.prod(b) == block])
