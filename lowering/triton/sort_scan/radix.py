"""Long rows sorted by the bytes of their words, from the last to the first (radix sort).

Rows of one tile stay in a block of threads, which sorts them by all bytes. Longer ones go through
memory for each byte: how often each of its values, a digit, is in each tile of a row; where the
digits of each tile begin (a running sum over tiles); and each tile in the order of its digits,
written there. Tiles beside each other are sorted at the same time, and write beside each other:
2^24 float32 take 0.48 ms so, and 0.63 ms where 264 programs have many tiles each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from functrans.core.record import Record
from functrans.lowering.triton.kernels.axis_calls import module_text, sizes
from functrans.lowering.triton.kernels.kernel_source import MEMORY, power_of_two
from functrans.lowering.triton.kernels.radix_tile import BINS, WARP, arranged, counted, spread
from functrans.lowering.triton.sort_scan.key_words import Word, key_of, minus_zero
from functrans.lowering.triton.templates.kernel import Argument, TemplateKernel, pointer

__all__ = ["Radix"]

THREADS = 256
SLOTS = {1: 24, 2: 20}  # words of a tile in a thread at most, alone and with their places
FEWER_SLOTS = (1, 2, 4, 8, 16)  # few, so that rows of most sizes have the same machine code
ADDED = 4096  # tiles whose counts are added up at once
ADDED_TILE = 4096  # counts that a program adds up, of several digits where there are few tiles


class Radix(Record, frozen=False):
    """The launches that sort rows of one size by some words, the least significant first.

    Keys are at the pointers of their names. `stored` are lines that store results at `where` of row
    `o` under the mask `inside`: of `place`, or of `key` where it `has_key`, that is where there is
    one word. `parameters` are what they name besides, and `count`, how many are stored of a row. If
    it is `alone` they need no places.
    """

    rows: int
    n: int
    words: Sequence[tuple[str, Word]]
    descending: bool
    stored: Sequence[str]
    parameters: Mapping[str, Argument]
    has_key: bool
    alone: bool
    memory: dict[str, int] = field(default_factory=dict)  # int32 elements of what it works in

    def __post_init__(self) -> None:
        self.sets = 1 if self.alone else 2
        self.tiles = -(-self.n // (THREADS * SLOTS[self.sets]))
        least = -(-self.n // (THREADS * self.tiles))
        self.slots = min([k for k in FEWER_SLOTS if k >= least], default=SLOTS[self.sets])
        self.tile = THREADS * self.slots
        self.tiles = -(-self.n // self.tile)
        self.zero = minus_zero(self.words[0][1].dtype) if self.has_key else None
        self.sizes = sizes(n=self.n, tiles=self.tiles)
        self.in_block = self.tiles == 1 and len(self.words) == 1
        if self.in_block:
            return
        self.memory["counts"] = self.rows * BINS * self.tiles
        if self.tiles > 1:
            self.memory["totals"] = self.rows * BINS
        for name in ("words",) if self.alone else ("words", "places"):
            self.memory |= {f"{name}{k}": self.rows * self.n for k in (0, 1)}

    def kernels(self) -> list[TemplateKernel]:
        if self.in_block:
            return [self._block()]
        found: list[TemplateKernel] = []
        passes = sum(word.nbytes for _, word in self.words)
        done = 0
        for name, word in self.words:
            if done:
                found.append(self._fetched(name, word, done))
            for byte in range(word.nbytes):
                source = None if done else (name, word)
                found.append(self._counted(source, byte, done))
                if self.tiles > 1:
                    found.append(self._added())
                ends_word = byte == word.nbytes - 1
                found.append(self._spread(source, byte, done, ends_word, done == passes - 1))
                done += 1
        return found

    # --------------------------------------------------------------------------- text

    def _kernel(self, name: str, parameters: Mapping[str, Argument], lines: list[str], grid: int,
                warps: int = THREADS // WARP, ptx: str = "") -> TemplateKernel:
        """Parameters have names of their own: passes whose pointers differ are one function."""
        constants = f'PTX = tl.constexpr("""{ptx}""")' if ptx else ""
        text = f"@triton.jit\ndef {name}({', '.join(parameters)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        parts = [part for part in (constants, text) if part]
        return TemplateKernel(name, module_text(*parts), tuple(parameters.values()), (grid, 1, 1),
                              warps, 2)

    def _tile(self) -> list[str]:
        """`o` and `c`: the row and the tile of a program; `t`: its threads.

        `lane` is where the first word of each is, in a row.
        """
        return ["pid = tl.program_id(0)", "o = pid // tiles", "c = pid % tiles",
                f"t = tl.arange(0, {THREADS})",
                f"lane = c * {self.tile} + t // {WARP} * {WARP * self.slots} + t % {WARP}"]

    def _loaded(self, source: tuple[str, Word] | None) -> list[str]:
        """`u0`, `u1` ...: the words of a tile; those past its end are the greatest."""
        lines = []
        for k in range(self.slots):
            lines += [f"i = lane + {WARP * k}", "inside = i < n"]
            if source is None:
                lines.append(f"u{k} = tl.load(words + o * n + i, mask=inside, other=-1)")
                continue
            lines += [f"v = tl.load({source[0]} + o * n + i, mask=inside, other=0)",
                      *source[1].lines(self.descending, keeps_zeros=self.has_key),
                      f"u{k} = tl.where(inside, u, -1)"]
        return lines

    def _words(self, source: tuple[str, Word] | None, done: int) -> dict[str, Argument]:
        """The pointer that words are read from."""
        if source is None:
            return {"words": pointer(f"words{(done - 1) % 2}", "i32")}
        name, word = source
        return {name: pointer(name, MEMORY[word.dtype])}

    def _result(self, k: int, word: str, place: str) -> list[str]:
        """`key` or `place`, and that it is stored."""
        dtype = self.words[0][1].dtype
        lines = key_of(f"{word}{k}", dtype, self.descending) if self.has_key else []
        return [*lines, *([] if self.alone else [f"place = {place}{k}"]), *self.stored]

    def _names(self, *letters: str) -> str:
        return ", ".join(f"{x}{k}" for x in letters for k in range(self.slots))

    # --------------------------------------------------------------------------- one tile

    def _block(self) -> TemplateKernel:
        """A row in the order of all bytes, in a block of threads."""
        ((name, word),) = self.words
        sets = ("u",) if self.alone else ("u", "p")
        lines = [*self._tile(), *self._loaded((name, word))]
        lines += [] if self.alone else [f"p{k} = lane + {WARP * k}" for k in range(self.slots)]
        lines += ["for byte in range(0, size):",
                  f"    {self._names(*sets)}, = fm.radix_arranged(PTX, {self.sets}, {self.zero}, "
                  f"({self._names(*sets)}, t * 0 + byte))"]
        for k in range(self.slots):
            lines += [f"where = lane + {WARP * k}", "inside = where < count",
                      *self._result(k, "u", "p")]
        # not a constant: that a loop is not unrolled, with the shared memory of what is in it
        parameters = {**self._words((name, word), 0), **self.parameters, **self.sizes,
                      **sizes(size=word.nbytes)}
        return self._kernel("sorted_block", parameters, lines, self.rows,
                            ptx=arranged(self.slots, THREADS // WARP, self.sets, self.zero))

    # --------------------------------------------------------------------------- tiles

    def _counted(self, source: tuple[str, Word] | None, byte: int, done: int) -> TemplateKernel:
        """How often the digits are in each tile; what is past its end counts as the last one."""
        lines = [*self._tile(), *self._loaded(source),
                 f"count = fm.radix_counted(PTX, {self.zero}, ({self._names('u')}, byte))",
                 f"over = tl.maximum((c + 1) * {self.tile} - n, 0)",
                 f"count -= tl.where(t == {BINS - 1}, over, 0)",
                 f"tl.store(counts + (o * {BINS} + t) * tiles + c, count, mask=t < {BINS})"]
        parameters = self._words(source, done) | {"counts": pointer("counts", "i32")} \
            | self.sizes | sizes(byte=byte)
        return self._kernel("counted", parameters, lines, self.rows * self.tiles,
                            ptx=counted(self.slots, self.zero))

    def _added(self) -> TemplateKernel:
        """Where each digit of a tile begins among those of all tiles, and how many there are."""
        width = min(ADDED, power_of_two(self.tiles))
        height = min(ADDED_TILE // width, BINS)
        lines = [f"d = tl.program_id(0) * {height} + tl.arange(0, {height})[:, None]",
                 "total = d * 0", f"for start in range(0, tiles, {width}):",
                 f"    c = start + tl.arange(0, {width})[None, :]",
                 "    at = d * tiles + c", "    inside = c + d * 0 < tiles",
                 "    v = tl.load(counts + at, mask=inside, other=0)",
                 "    s = tl.associative_scan(v, 1, combine_add)",
                 "    tl.store(counts + at, total + s - v, mask=inside)",
                 "    total += tl.reduce(v, 1, combine_add, keep_dims=True)",
                 "tl.store(totals + d, total)"]
        parameters = {name: pointer(name, "i32") for name in ("counts", "totals")}
        return self._kernel("added", parameters | sizes(tiles=self.tiles), lines,
                            self.rows * BINS // height)

    def _begin(self) -> list[str]:
        """`begin`: where the digits of a tile go."""
        counts = f"tl.load(counts + (o * {BINS} + t) * tiles + c, mask=t < {BINS}, other=0)"
        totals = f"tl.load(totals + o * {BINS} + t, mask=t < {BINS}, other=0)"
        scanned = "begin = tl.associative_scan(begin, 0, combine_add) - begin"
        if self.tiles == 1:
            return [f"begin = {counts}", scanned]
        return [f"begin = {totals}", scanned, f"begin += {counts}"]

    def _spread(self, source: tuple[str, Word] | None, byte: int, done: int, ends_word: bool,
                is_last: bool) -> TemplateKernel:
        """Each tile in the order of its digits."""
        lines = [*self._tile(), *self._loaded(source)]
        parameters = self._words(source, done) | {"counts": pointer("counts", "i32")}
        if self.tiles > 1:
            parameters["totals"] = pointer("totals", "i32")
        if not self.alone:
            lines += [f"p{k} = lane + {WARP * k}" for k in range(self.slots)]
        if done and not self.alone:
            parameters["places"] = pointer(f"places{(done - 1) % 2}", "i32")
            lines += [f"p{k} = tl.load(places + o * n + p{k}, mask=p{k} < n, other=0)"
                      for k in range(self.slots)]
        operands, results = (("u",), ("s", "w")) if self.alone else (("u", "p"), ("s", "q", "w"))
        lines += [*self._begin(), f"{self._names(*results)}, = fm.radix_spread(PTX, {self.sets}, "
                                  f"{self.zero}, ({self._names(*operands)}, begin, byte))"]
        kept = {"words": "s"} if not ends_word or self.alone else {}
        kept |= {} if self.alone else {"places": "q"}
        for k in range(self.slots):
            lines += [f"inside = c * {self.tile} + {THREADS * k} + t < n", f"where = w{k}"]
            lines += ["inside &= where < count", *self._result(k, "s", "q")] if is_last else [
                f"tl.store({name}_then + o * n + where, {letter}{k}, mask=inside)"
                for name, letter in kept.items()]
        parameters |= self.parameters if is_last else {
            f"{name}_then": pointer(f"{name}{done % 2}", "i32") for name in kept}
        parameters |= self.sizes | sizes(byte=byte)
        return self._kernel("ordered" if is_last else "spread", parameters, lines,
                            self.rows * self.tiles,
                            ptx=spread(self.slots, THREADS // WARP, self.sets, self.zero))

    def _fetched(self, name: str, word: Word, done: int) -> TemplateKernel:
        """The words of the next key, in the order that there is."""
        total, block = self.rows * self.n, 1024
        lines = [f"i = tl.program_id(0) * {block} + tl.arange(0, {block})",
                 "inside = i < total", "place = tl.load(places + i, mask=inside, other=0)",
                 f"v = tl.load({name} + i // n * n + place, mask=inside, other=0)",
                 *word.lines(self.descending), "tl.store(words + i, u, mask=inside)"]
        parameters = {name: pointer(name, MEMORY[word.dtype]),
                      "places": pointer(f"places{(done - 1) % 2}", "i32"),
                      "words": pointer(f"words{(done - 1) % 2}", "i32"),
                      **sizes(n=self.n, total=total)}
        return self._kernel("fetched", parameters, lines, -(-total // block), 4)
