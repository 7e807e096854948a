"""Long rows sorted by the bytes of their words, from the last to the first (radix sort).

Rows of one tile stay in a block of threads, which sorts them by all bytes. Longer ones go through
memory for each byte: how often each of its values, a digit, is in each chunk of a row; where the
digits of each chunk begin (a running sum over chunks); and each chunk in the order of its digits,
tile by tile, written there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from functrans.lowering.triton.kernel import power_of_two
from functrans.lowering.triton.key_words import Word, key_of, minus_zero
from functrans.lowering.triton.names import MEMORY
from functrans.lowering.triton.radix_tile import BINS, WARP, arranged, counted, spread
from functrans.lowering.triton.rows import module_text
from functrans.lowering.triton.templates.kernel import Argument, Kernel, pointer

__all__ = ["Radix"]

THREADS = 256
SLOTS = {1: 24, 2: 16}  # words of a tile in a thread, alone and with their places
PROGRAMS = 264  # two on each multiprocessor of an H100
ADDED = 1024, 8  # chunks and digits that are added up at once


@dataclass
class Radix:
    """The launches that sort rows of one size by some words, the least significant first.

    Keys are at the pointers of their names. `stored` are lines that store results at `where` under
    the mask `inside`: of `place`, or of `key` where it `has_key`, that is where there is one word.
    `pointers` are what they name. If it is `alone` they need no places.
    """

    rows: int
    n: int
    words: Sequence[tuple[str, Word]]
    descending: bool
    stored: Sequence[str]
    pointers: Mapping[str, Argument]
    has_key: bool
    alone: bool
    memory: dict[str, int] = field(default_factory=dict)  # int32 elements of what it works in

    def __post_init__(self) -> None:
        self.sets = 1 if self.alone else 2
        self.slots = min(SLOTS[self.sets], -(-self.n // THREADS))
        self.tile = THREADS * self.slots
        self.zero = minus_zero(self.words[0][1].dtype) if self.has_key else None
        self.in_block = self.n <= self.tile and len(self.words) == 1
        if self.in_block:
            return
        wanted = min(-(-self.n // self.tile), max(1, PROGRAMS // self.rows))
        self.chunk = -(-self.n // wanted // WARP) * WARP
        self.chunks = -(-self.n // self.chunk)
        self.memory["counts"] = self.rows * self.chunks * BINS
        if self.chunks > 1:
            self.memory["totals"] = self.rows * BINS
        for name in ("words",) if self.alone else ("words", "places"):
            self.memory |= {f"{name}{k}": self.rows * self.n for k in (0, 1)}

    def kernels(self) -> list[Kernel]:
        if self.in_block:
            return [self._block()]
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

    def _kernel(self, name: str, parameters: Mapping[str, Argument], lines: list[str], grid: int,
                warps: int = THREADS // WARP, ptx: str = "") -> Kernel:
        """Parameters have names of their own: passes whose pointers differ are one function."""
        constants = f'PTX = tl.constexpr("""{ptx}""")' if ptx else ""
        text = f"@triton.jit\ndef {name}({', '.join(parameters)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        parts = [part for part in (constants, text) if part]
        return Kernel(name, module_text(*parts), tuple(parameters.values()), (grid, 1, 1), warps, 2)

    def _threads(self) -> list[str]:
        """`t`: the threads of a program; `lane`: where the first word of each is in a tile."""
        return ["pid = tl.program_id(0)", f"t = tl.arange(0, {THREADS})",
                f"lane = t // {WARP} * {WARP * self.slots} + t % {WARP}"]

    def _chunk(self) -> list[str]:
        """`o` and `end`: the row of a program, and the end of its chunk."""
        return [*self._threads(), f"o = pid // {self.chunks}", f"c = pid % {self.chunks}",
                f"end = tl.minimum((c + 1) * {self.chunk}, {self.n})"]

    def _loop(self, lines: list[str]) -> list[str]:
        return [f"for start in range(c * {self.chunk}, end, {self.tile}):",
                *(f"    {line}" for line in lines)]

    def _loaded(self, source: tuple[str, Word] | None) -> list[str]:
        """`u0`, `u1` ...: the words of a tile; those past its end are the greatest."""
        lines = []
        for k in range(self.slots):
            lines += [f"i = start + lane + {WARP * k}", "inside = i < end"]
            if source is None:
                lines.append(f"u{k} = tl.load(words + o * {self.n} + i, mask=inside, other=-1)")
                continue
            lines += [f"v = tl.load({source[0]} + o * {self.n} + i, mask=inside, other=0)",
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
        (_, last), *_ = reversed(self.words)
        lines = key_of(f"{word}{k}", last.dtype, self.descending) if self.has_key else []
        return [*lines, *([] if self.alone else [f"place = {place}{k}"]), *self.stored]

    def _names(self, *letters: str) -> str:
        return ", ".join(f"{x}{k}" for x in letters for k in range(self.slots))

    # --------------------------------------------------------------------------- one tile

    def _block(self) -> Kernel:
        """A row in the order of all bytes, in a block of threads."""
        ((name, word),) = self.words
        sets = ("u",) if self.alone else ("u", "p")
        lines = [*self._threads(), "o = pid", "start = 0", f"end = {self.n}",
                 *self._loaded((name, word))]
        lines += [] if self.alone else [f"p{k} = lane + {WARP * k}" for k in range(self.slots)]
        lines += ["for byte in range(0, size):",
                  f"    {self._names(*sets)}, = fm.radix_arranged(PTX, {self.sets}, {self.zero}, "
                  f"({self._names(*sets)}, t * 0 + byte))"]
        for k in range(self.slots):
            lines += [f"where = lane + {WARP * k}", f"inside = where < {self.n}",
                      *self._result(k, "u", "p")]
        parameters = self._words((name, word), 0) | self.pointers
        # not a constant: that a loop is not unrolled, with the shared memory of what is in it
        size = Argument("size", "i32", False, word.nbytes)
        return self._kernel("sorted_block", parameters | {"size": size}, lines, self.rows,
                            ptx=arranged(self.slots, THREADS // WARP, self.sets, self.zero))

    # --------------------------------------------------------------------------- chunks

    def _counted(self, source: tuple[str, Word] | None, byte: int, done: int) -> Kernel:
        """How often the digits are in each chunk."""
        lines = [*self._chunk(), "count = t * 0",
                 *self._loop([*self._loaded(source),
                              f"found = fm.radix_counted(PTX, {self.zero}, "
                              f"({self._names('u')}, byte))",
                              # the words past the end have the last digit
                              f"over = tl.maximum(start + {self.tile} - end, 0)",
                              f"count += found - tl.where(t == {BINS - 1}, over, 0)"]),
                 f"tl.store(counts + pid * {BINS} + t, count, mask=t < {BINS})"]
        parameters = self._words(source, done) | {"counts": pointer("counts", "i32"),
                                                  "byte": Argument("byte", "i32", False, byte)}
        return self._kernel("counted", parameters, lines, self.rows * self.chunks,
                            ptx=counted(self.slots, self.zero))

    def _added(self) -> Kernel:
        """Where the digits of each chunk begin among those of all, and how many there are."""
        most, beside = ADDED
        height, groups = min(most, power_of_two(self.chunks)), BINS // beside
        lines = ["pid = tl.program_id(0)", f"o = pid // {groups}",
                 f"q = pid % {groups} * {beside} + tl.arange(0, {beside})[None, :]",
                 "total = q * 0", f"for start in range(0, {self.chunks}, {height}):",
                 f"    c = start + tl.arange(0, {height})[:, None]",
                 f"    at = (o * {self.chunks} + c) * {BINS} + q",
                 f"    inside = c + q * 0 < {self.chunks}",
                 "    v = tl.load(counts + at, mask=inside, other=0)",
                 "    s = tl.associative_scan(v, 0, fold_add)",
                 "    tl.store(counts + at, total + s - v, mask=inside)",
                 "    total += tl.reduce(v, 0, fold_add, keep_dims=True)",
                 f"tl.store(totals + o * {BINS} + q, total)"]
        return self._kernel("added", {name: pointer(name, "i32") for name in ("counts", "totals")},
                            lines, self.rows * groups)

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
        lines = self._loaded(source)
        parameters = self._words(source, done) | {"counts": pointer("counts", "i32")}
        if self.chunks > 1:
            parameters["totals"] = pointer("totals", "i32")
        if not self.alone:
            lines += [f"p{k} = start + lane + {WARP * k}" for k in range(self.slots)]
        if done and not self.alone:
            parameters["places"] = pointer(f"places{(done - 1) % 2}", "i32")
            lines += [f"p{k} = tl.load(places + o * {self.n} + p{k}, mask=p{k} < end, other=0)"
                      for k in range(self.slots)]
        operands, results = (("u",), ("s", "w")) if self.alone else (("u", "p"), ("s", "q", "w"))
        lines.append(f"{self._names(*results)}, begin = fm.radix_spread(PTX, {self.sets}, "
                     f"{self.zero}, ({self._names(*operands)}, begin, byte))")
        kept = {"words": "s"} if not ends_word or self.alone else {}
        kept |= {} if self.alone else {"places": "q"}
        for k in range(self.slots):
            lines += [f"inside = start + t + {THREADS * k} < end", f"where = w{k}"]
            lines += self._result(k, "s", "q") if is_last else [
                f"tl.store({name}_then + o * {self.n} + where, {letter}{k}, mask=inside)"
                for name, letter in kept.items()]
        parameters |= self.pointers if is_last else {
            f"{name}_then": pointer(f"{name}{done % 2}", "i32") for name in kept}
        parameters["byte"] = Argument("byte", "i32", False, byte)
        return self._kernel("ordered" if is_last else "spread", parameters,
                            [*self._chunk(), *self._begin(), *self._loop(lines)],
                            self.rows * self.chunks,
                            ptx=spread(self.slots, THREADS // WARP, self.sets, self.zero))

    def _fetched(self, name: str, word: Word, done: int) -> Kernel:
        """The words of the next key, in the order that there is."""
        size, block = self.rows * self.n, 1024
        lines = [f"i = tl.program_id(0) * {block} + tl.arange(0, {block})",
                 f"inside = i < {size}", "place = tl.load(places + i, mask=inside, other=0)",
                 f"v = tl.load({name} + i // {self.n} * {self.n} + place, mask=inside, other=0)",
                 *word.lines(self.descending), "tl.store(words + i, u, mask=inside)"]
        parameters = {name: pointer(name, MEMORY[word.dtype]),
                      "places": pointer(f"places{(done - 1) % 2}", "i32"),
                      "words": pointer(f"words{(done - 1) % 2}", "i32")}
        return self._kernel("fetched", parameters, lines, -(-size // block), 4)
