"""Long rows sorted by the bytes of their words, from the last to the first (radix sort).

For each byte: how often each of its values, a digit, is in each chunk of a row; where the digits of
each chunk begin (a running sum over chunks); and each chunk, tile by tile, in the order of its
digits, written there. A program of the grid has a chunk, so that there are few sums to add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from functrans.lowering.triton.kernel import power_of_two
from functrans.lowering.triton.key_words import Word, key_of, minus_zero
from functrans.lowering.triton.names import MEMORY
from functrans.lowering.triton.radix_tile import BINS, WARP, counted, spread
from functrans.lowering.triton.rows import module_text
from functrans.lowering.triton.templates.kernel import Argument, Kernel, pointer

__all__ = ["Radix"]

THREADS = 256
SLOTS = 24  # words of a tile in a thread
PROGRAMS = 264  # two on each multiprocessor of an H100
MOST_CHUNKS = 512  # of a row, whose counts one program adds up
BESIDE = 16  # digits, in a program that adds up


@dataclass
class Radix:
    """The launches that sort rows of one size by some words, the least significant first.

    Keys are at the pointers of their names; `stored` are lines that store the results, from `place`
    (None where the key is all there is: then `key` is its value), `where` and the mask `inside`.
    """

    rows: int
    n: int
    words: Sequence[tuple[str, Word]]
    descending: bool
    stored: Sequence[str]
    pointers: dict[str, Argument]
    alone: bool
    memory: dict[str, int] = field(default_factory=dict)  # int32 elements of what it works in

    def __post_init__(self) -> None:
        tile = THREADS * SLOTS
        wanted = min(-(-self.n // tile), MOST_CHUNKS, max(1, PROGRAMS // self.rows))
        self.chunk = -(-self.n // wanted // WARP) * WARP
        self.chunks = -(-self.n // self.chunk)
        self.memory["counts"] = self.rows * self.chunks * BINS
        if self.chunks > 1:
            self.memory["totals"] = self.rows * BINS
        for name in ("words",) if self.alone else ("words", "places"):
            self.memory |= {f"{name}{k}": self.rows * self.n for k in (0, 1)}

    def kernels(self) -> list[Kernel]:
        found: list[Kernel] = []
        passes = sum(word.nbytes for _, word in self.words)
        done = 0
        for name, word in self.words:
            if done:
                found.append(self._fetched(name, word, done))
            for byte in range(word.nbytes):
                source = None if done else (name, word)
                found.append(self._counted(source, byte, done))
                if self.chunks > 1:
                    found.append(self._added())
                ends_word = byte == word.nbytes - 1
                found.append(self._spread(source, byte, done, ends_word, done == passes - 1))
                done += 1
        return found

    # --------------------------------------------------------------------------- text

    def _kernel(self, name: str, pointers: dict[str, Argument], lines: list[str], grid: int,
                warps: int, ptx: str = "") -> Kernel:
        constants = f'PTX = tl.constexpr("""{ptx}""")' if ptx else ""
        text = f"@triton.jit\ndef {name}({', '.join(pointers)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        parts = [part for part in (constants, text) if part]
        return Kernel(name, module_text(*parts), tuple(pointers.values()), (grid, 1, 1), warps, 2)

    def _chunk(self) -> list[str]:
        """`o`, `end` and `t`: the row of a program, the end of its chunk, and its threads.

        `lane` is where the first word of a thread is in a tile.
        """
        return ["pid = tl.program_id(0)", f"o = pid // {self.chunks}", f"c = pid % {self.chunks}",
                f"end = tl.minimum((c + 1) * {self.chunk}, {self.n})",
                f"t = tl.arange(0, {THREADS})",
                f"lane = t // {WARP} * {WARP * SLOTS} + t % {WARP}"]

    def _loop(self, lines: list[str]) -> list[str]:
        return [f"for start in range(c * {self.chunk}, end, {THREADS * SLOTS}):",
                *(f"    {line}" for line in lines)]

    def _loaded(self, source: tuple[str, Word] | None, done: int) -> list[str]:
        """`u0`, `u1` ...: the words of a tile; those past its end are the greatest."""
        lines = []
        for k in range(SLOTS):
            lines += [f"i = start + lane + {WARP * k}", "inside = i < end"]
            if source is None:
                lines.append(f"u{k} = tl.load(words{(done - 1) % 2} + o * {self.n} + i, "
                             "mask=inside, other=-1)")
                continue
            name, word = source
            lines += [f"v = tl.load({name} + o * {self.n} + i, mask=inside, other=0)",
                      *word.lines(self.descending, keeps_zeros=self.alone),
                      f"u{k} = tl.where(inside, u, -1)"]
        return lines

    def _words(self, source: tuple[str, Word] | None, done: int) -> dict[str, Argument]:
        """The pointer that words are read from."""
        if source is None:
            name = f"words{(done - 1) % 2}"
            return {name: pointer(name, "i32")}
        name, word = source
        return {name: pointer(name, MEMORY[word.dtype])}

    @property
    def _zero(self) -> int | None:
        return minus_zero(self.words[0][1].dtype) if self.alone else None

    # --------------------------------------------------------------------------- kernels

    def _counted(self, source: tuple[str, Word] | None, byte: int, done: int) -> Kernel:
        """How often the digits are in each chunk."""
        operands = ", ".join(f"u{k}" for k in range(SLOTS))
        lines = [*self._chunk(), "count = t * 0",
                 *self._loop([*self._loaded(source, done),
                              f"found = fm.radix_counted(PTX, {self._zero}, ({operands}, byte))",
                              # the words past the end have the last digit
                              f"over = tl.maximum(start + {THREADS * SLOTS} - end, 0)",
                              f"count += found - tl.where(t == {BINS - 1}, over, 0)"]),
                 f"tl.store(counts + pid * {BINS} + t, count, mask=t < {BINS})"]
        pointers = self._words(source, done) | {"counts": pointer("counts", "i32"),
                                                "byte": Argument("byte", "i32", False, byte)}
        return self._kernel("counted", pointers, lines, self.rows * self.chunks, THREADS // WARP,
                            counted(SLOTS, self._zero))

    def _added(self) -> Kernel:
        """Where the digits of each chunk begin among those of all, and how many there are."""
        groups = BINS // BESIDE
        lines = ["pid = tl.program_id(0)", f"o = pid // {groups}",
                 f"c = tl.arange(0, {power_of_two(self.chunks)})[:, None]",
                 f"q = pid % {groups} * {BESIDE} + tl.arange(0, {BESIDE})[None, :]",
                 f"at = (o * {self.chunks} + c) * {BINS} + q",
                 f"inside = c + q * 0 < {self.chunks}",
                 "v = tl.load(counts + at, mask=inside, other=0)",
                 "s = tl.associative_scan(v, 0, fold_add)",
                 "tl.store(counts + at, s - v, mask=inside)",
                 f"tl.store(totals + o * {BINS} + q, tl.reduce(v, 0, fold_add, keep_dims=True))"]
        return self._kernel("added", {name: pointer(name, "i32") for name in ("counts", "totals")},
                            lines, self.rows * groups, 8)

    def _begin(self) -> list[str]:
        """`begin`: where the digits of a chunk begin."""
        totals = "totals + o" if self.chunks > 1 else "counts + pid"
        lines = [f"begin = tl.load({totals} * {BINS} + t, mask=t < {BINS}, other=0)",
                 "begin = tl.associative_scan(begin, 0, fold_add) - begin"]
        if self.chunks > 1:
            lines.append(f"begin += tl.load(counts + pid * {BINS} + t, mask=t < {BINS}, other=0)")
        return lines

    def _spread(self, source: tuple[str, Word] | None, byte: int, done: int, ends_word: bool,
                is_last: bool) -> Kernel:
        """Each chunk in the order of its digits."""
        sets = 1 if self.alone else 2
        operands = [f"u{k}" for k in range(SLOTS)]
        load = self._loaded(source, done)
        pointers = self._words(source, done) | {"counts": pointer("counts", "i32")}
        if self.chunks > 1:
            pointers["totals"] = pointer("totals", "i32")
        if not self.alone:
            operands += [f"p{k}" for k in range(SLOTS)]
            before = f"places{(done - 1) % 2}"
            if done:
                pointers[before] = pointer(before, "i32")
            for k in range(SLOTS):
                load.append(f"p{k} = start + lane + {WARP * k}")
                if done:
                    load.append(f"p{k} = tl.load({before} + o * {self.n} + p{k}, mask=p{k} < end, "
                                "other=0)")
        results = [f"s{k}" for k in range(SLOTS * sets)] + [f"w{k}" for k in range(SLOTS)]
        zero = self._zero
        lines = [*load, f"{', '.join(results)}, begin = fm.radix_spread(PTX, {sets}, {zero}, "
                        f"({', '.join(operands)}, begin, byte))"]
        after = {f"{name}{done % 2}": pointer(f"{name}{done % 2}", "i32")
                 for name in self._kept(ends_word)}
        pointers |= self.pointers if is_last else after
        for k in range(SLOTS):
            lines += [f"inside = start + t + {THREADS * k} < end", f"where = w{k}"]
            if is_last:
                lines.append(f"key = {key_of(f's{k}', self.words[0][1].dtype)}" if self.alone
                             else f"place = s{SLOTS + k}")
                lines += self.stored
                continue
            for name in after:
                value = f"s{k}" if name.startswith("words") else f"s{SLOTS + k}"
                lines.append(f"tl.store({name} + o * {self.n} + where, {value}, mask=inside)")
        pointers["byte"] = Argument("byte", "i32", False, byte)
        return self._kernel("ordered" if is_last else "spread", pointers,
                            [*self._chunk(), *self._begin(), *self._loop(lines)],
                            self.rows * self.chunks, THREADS // WARP,
                            spread(SLOTS, THREADS // WARP, sets, zero))

    def _kept(self, ends_word: bool) -> tuple[str, ...]:
        if self.alone:
            return ("words",)
        return ("places",) if ends_word else ("words", "places")

    def _fetched(self, name: str, word: Word, done: int) -> Kernel:
        """The words of the next key, in the order that there is."""
        size, block = self.rows * self.n, 1024
        places, words = (f"{kind}{(done - 1) % 2}" for kind in ("places", "words"))
        lines = [f"i = tl.program_id(0) * {block} + tl.arange(0, {block})",
                 f"inside = i < {size}",
                 f"place = tl.load({places} + i, mask=inside, other=0)",
                 f"v = tl.load({name} + i // {self.n} * {self.n} + place, mask=inside, other=0)",
                 *word.lines(self.descending), f"tl.store({words} + i, u, mask=inside)"]
        pointers = {name: pointer(name, MEMORY[word.dtype]), places: pointer(places, "i32"),
                    words: pointer(words, "i32")}
        return self._kernel("fetched", pointers, lines, -(-size // block), 4)
