"""What a block of threads does with a tile of keys in a radix sort, as PTX.

Triton has no way to scatter in shared memory, nor to ask which threads of a warp hold equal
numbers. Each thread has `slots` words of the tile: that in slot k of lane l of warp w is number
(w * slots + k) * 32 + l. Barriers and shared memory are the block's, so a kernel has each of these
texts at one place, on tensors with one element a thread.
"""

from __future__ import annotations

from functools import cache

__all__ = ["BINS", "WARP", "arranged", "constraints", "counted", "spread"]

BINS = 256
WARP = 32


def constraints(outs: int, ins: int) -> str:
    """Those of registers of 32 bits; results are written while operands are still read."""
    return ",".join(["=&r"] * outs + ["r"] * ins)


@cache
def counted(slots: int, zero: int | None) -> str:
    """How often each digit is in a tile: from `slots` words and the number of a byte of them.

    The thread of number d gets the count of digit d; there are as many threads as digits, or more.
    """
    lines = [*_thread(1 + slots), *_shared(("counts", BINS)), "add.u32 digit, digit, counts;",
             "mov.u32 $0, 0;", "@binned st.shared.u32 [digit], $0;", "bar.sync 0;"]
    for k in range(slots):
        lines += [*_digit(f"${1 + k}", "t0", zero), "shl.b32 t0, t0, 2;",
                  "add.u32 t0, t0, counts;", "red.shared.add.u32 [t0], 1;"]
    lines += ["bar.sync 0;", "@binned ld.shared.u32 $0, [digit];"]
    return _text(lines)


@cache
def spread(slots: int, warps: int, sets: int, zero: int | None) -> str:
    """A tile in the order of one of the bytes of its words, and where its words go.

    Operands are `slots` words, as many of each further set, which go along, where each digit begins
    in memory (of digit d in the thread of number d), and the number of a byte. Results are the sets
    in order, number k * threads + t of the tile in slot k of thread t; and where these go. The word
    `zero`, if there is one, is equal to the next.
    """
    threads = warps * WARP
    outs = slots * (sets + 1)
    lines = [*_placed(slots, warps, sets, zero, outs, ("table", BINS)),
             *_counted_before(warps), f"sub.u32 after, ${outs + slots * sets}, before;",
             "add.u32 other, digit, table;", "@binned st.shared.u32 [other], after;",
             *_begun(warps), *_moved_places(slots)]
    for s in range(sets):
        lines += _exchanged(slots, outs, s, "tid", threads)
    for k in range(slots):
        lines += [*_digit(f"${k}", "t0", zero), "shl.b32 t0, t0, 2;", "add.u32 t0, t0, table;",
                  "ld.shared.u32 t1, [t0];", f"add.u32 t1, t1, {k * threads};",
                  f"add.u32 ${slots * sets + k}, t1, tid;"]
    return _text(lines)


@cache
def arranged(slots: int, warps: int, sets: int, zero: int | None) -> str:
    """A tile in the order of one of the bytes of its words, in the places that it had.

    Operands are those of `spread` but for where digits begin; results are the sets.
    """
    outs = slots * sets
    lines = [*_placed(slots, warps, sets, zero, outs), *_counted_before(warps), *_begun(warps),
             *_moved_places(slots), f"mad.lo.u32 first, warp, {slots * WARP}, lane;"]
    for s in range(sets):
        lines += _exchanged(slots, outs, s, "first", WARP)
    return _text(lines)


# --------------------------------------------------------------------------- parts


def _text(lines: list[str]) -> str:
    return "{\n" + "\n".join(lines) + "\n}"


def _shared(*arrays: tuple[str, int]) -> list[str]:
    """Arrays of words, the addresses of which are registers of their names."""
    lines = []
    for name, words in arrays:
        lines += [f".shared .align 16 .b32 radix_{name}[{words}];", f".reg .b32 {name};",
                  f"mov.u32 {name}, radix_{name};"]
    return lines


def _thread(byte: int) -> list[str]:
    """The number of the thread, the place of its digit, and what takes a byte from a word."""
    return [".reg .b32 tid, digit, selector, t<5>;", ".reg .pred binned, p;",
            "mov.u32 tid, %tid.x;", "shl.b32 digit, tid, 2;", f"setp.lt.u32 binned, tid, {BINS};",
            f"or.b32 selector, ${byte}, 0x4440;"]


def _placed(slots: int, warps: int, sets: int, zero: int | None, outs: int,
            *more: tuple[str, int]) -> list[str]:
    """The rank of each word among those of its warp and digit, and the place of their counter."""
    byte = outs + slots * sets + bool(more)
    lines = [*_thread(byte), *_shared(("counts", warps * BINS), ("tile", slots * warps * WARP),
                                      ("sums", BINS // WARP), *more),
             f".reg .b32 place<{slots}>, rank<{slots}>, count<{warps}>;",
             ".reg .b32 lane, warp, row, below, total, scan, other, before, after, first;",
             "and.b32 lane, tid, 31;", "shr.u32 warp, tid, 5;", "mov.u32 below, %lanemask_lt;",
             f"mad.lo.u32 row, warp, {4 * BINS}, counts;", *_cleared()]
    for k in range(slots):
        lines += _ranked(f"${outs + k}", f"place{k}", f"rank{k}", zero)
    return lines


def _moved_places(slots: int) -> list[str]:
    """The place of a counter becomes that of the word in the tile."""
    lines = ["bar.sync 0;"]
    for k in range(slots):
        lines += [f"ld.shared.u32 t0, [place{k}];", f"add.u32 t0, t0, rank{k};",
                  "shl.b32 t0, t0, 2;", f"add.u32 place{k}, t0, tile;"]
    return lines


def _exchanged(slots: int, outs: int, s: int, first: str, step: int) -> list[str]:
    """Set s in the order of the tile; a thread gets the numbers `first`, first + step ..."""
    lines = ["bar.sync 0;"] if s else []
    lines += [f"st.shared.u32 [place{k}], ${outs + s * slots + k};" for k in range(slots)]
    lines += ["bar.sync 0;", f"shl.b32 t0, {first}, 2;", "add.u32 t0, t0, tile;"]
    return lines + [f"ld.shared.u32 ${s * slots + k}, [t0 + {k * step * 4}];"
                    for k in range(slots)]


def _cleared() -> list[str]:
    """The counters of a warp, by that warp."""
    return ["mov.u32 t0, 0;", "shl.b32 t1, lane, 4;", "add.u32 t1, t1, row;",
            "st.shared.v4.u32 [t1], {t0, t0, t0, t0};",
            "st.shared.v4.u32 [t1 + 512], {t0, t0, t0, t0};", "bar.warp.sync 0xffffffff;"]


def _digit(word: str, out: str, zero: int | None) -> list[str]:
    if zero is None:
        return [f"prmt.b32 {out}, {word}, 0, selector;"]
    return [f"mov.u32 {out}, {word};", f"setp.eq.u32 p, {out}, {zero};",
            f"@p add.u32 {out}, {out}, 1;", f"prmt.b32 {out}, {out}, 0, selector;"]


def _ranked(word: str, place: str, rank: str, zero: int | None) -> list[str]:
    """The rank of a word among those of equal digits of its warp, and the place of their counter.

    Lanes of equal digits find each other by a vote on each bit.
    """
    lines = _digit(word, "t0", zero)
    lines += [f"shl.b32 {place}, t0, 2;", f"add.u32 {place}, {place}, row;"]
    for bit in range(8):
        equal = "t1" if bit == 0 else "t2"
        lines += [f"and.b32 t3, t0, {1 << bit};", "setp.ne.u32 p, t3, 0;",
                  f"vote.sync.ballot.b32 {equal}, p, 0xffffffff;", f"@!p not.b32 {equal}, {equal};"]
        lines += [] if bit == 0 else ["and.b32 t1, t1, t2;"]
    return [*lines, f"ld.shared.u32 t4, [{place}];", "and.b32 t2, t1, below;", "popc.b32 t2, t2;",
            "popc.b32 t1, t1;", f"add.u32 {rank}, t4, t2;", "add.u32 t4, t4, t1;",
            "setp.eq.u32 p, t2, 0;", "bar.warp.sync 0xffffffff;",
            f"@p st.shared.u32 [{place}], t4;", "bar.warp.sync 0xffffffff;"]


def _counted_before(warps: int) -> list[str]:
    """`total` and `before`: how many words have the digit of a thread, and how many smaller ones.

    `count0` ...: how many of them each warp has.
    """
    lines = ["bar.sync 0;", "add.u32 other, digit, counts;", "mov.u32 total, 0;"]
    for w in range(warps):
        lines += [f"mov.u32 count{w}, 0;",
                  f"@binned ld.shared.u32 count{w}, [other + {4 * BINS * w}];",
                  f"add.u32 total, total, count{w};"]
    lines.append("mov.u32 scan, total;")
    for step in (1, 2, 4, 8, 16):
        lines += [f"shfl.sync.up.b32 other|p, scan, {step}, 0, 0xffffffff;",
                  "@p add.u32 scan, scan, other;"]
    lines += ["shl.b32 other, warp, 2;", "add.u32 other, other, sums;",
              "setp.eq.u32 p, lane, 31;", "and.pred p, p, binned;",
              "@p st.shared.u32 [other], scan;", "bar.sync 0;", "sub.u32 before, scan, total;"]
    for w in range(BINS // WARP - 1):
        lines += [f"ld.shared.u32 other, [sums + {4 * w}];", f"setp.gt.u32 p, warp, {w};",
                  "@p add.u32 before, before, other;"]
    return lines


def _begun(warps: int) -> list[str]:
    """Counters become where the words of a warp and digit begin in the ordered tile."""
    lines = ["add.u32 other, digit, counts;"]
    for w in range(warps):
        lines += [f"@binned st.shared.u32 [other + {4 * BINS * w}], before;",
                  f"add.u32 before, before, count{w};"]
    return lines
