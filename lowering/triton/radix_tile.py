"""What a block of threads does with a tile of keys in a radix sort, as PTX.

Triton has no way to scatter in shared memory, nor to ask which threads of a warp hold equal
numbers. Each thread has `slots` words of the tile: that in slot k of lane l of warp w is number
(w * slots + k) * 32 + l. Barriers and shared memory are the block's, so a kernel has each of these
texts at one place, on tensors with one element a thread.
"""

from __future__ import annotations

from functools import cache

__all__ = ["BINS", "WARP", "constraints", "counted", "spread"]

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
    lines = _begin(shared=[("counts", BINS)], byte=1 + slots, temporaries=3)
    lines += ["setp.lt.u32 binned, tid, 256;", "shl.b32 own, tid, 2;", "add.u32 own, own, counts;",
              "mov.u32 $0, 0;", "@binned st.shared.u32 [own], $0;", "bar.sync 0;"]
    for k in range(slots):
        lines += [*_digit(f"${1 + k}", "t0", zero), "shl.b32 t0, t0, 2;",
                  "add.u32 t0, t0, counts;", "red.shared.add.u32 [t0], 1;"]
    lines += ["bar.sync 0;", "@binned ld.shared.u32 $0, [own];"]
    return _text(lines)


@cache
def spread(slots: int, warps: int, sets: int, zero: int | None) -> str:
    """A tile in the order of one of the bytes of its words, and where its words go.

    Operands are `slots` words, as many of each further set, which go along, where each digit begins
    in memory (of digit d in the thread of number d), and the number of a byte. Results are the sets
    in order, number k * threads + t of the tile in slot k of thread t; where these go; and where
    the digits begin for the next tile. The word `zero`, if there is one, is equal to the next.
    """
    tile = slots * warps * WARP
    outs = slots * (sets + 1) + 1
    words = [f"${outs + k}" for k in range(slots)]
    begin, byte, end = f"${outs + slots * sets}", outs + slots * sets + 1, f"${outs - 1}"
    lines = _begin(shared=[("counts", warps * BINS), ("tile", tile), ("table", BINS),
                           ("sums", BINS // WARP)], byte=byte, temporaries=warps + 6)
    lines += [f".reg .b32 place<{slots}>, rank<{slots}>;", ".reg .b32 lane, warp, row, below;",
              "and.b32 lane, tid, 31;", "shr.u32 warp, tid, 5;", "mov.u32 below, %lanemask_lt;",
              "shl.b32 row, warp, 10;", "add.u32 row, row, counts;",
              "setp.lt.u32 binned, tid, 256;", "shl.b32 own, tid, 2;", *_cleared()]
    for k, word in enumerate(words):
        lines += _ranked(word, f"place{k}", f"rank{k}", zero)
    lines += ["bar.sync 0;", *_begun(warps, begin, end), "bar.sync 0;"]
    for k in range(slots):  # the place of a counter becomes that of the word
        lines += [f"ld.shared.u32 t0, [place{k}];", f"add.u32 t0, t0, rank{k};",
                  "shl.b32 t0, t0, 2;", f"add.u32 place{k}, t0, tile;"]
    for s in range(sets):
        lines += ["bar.sync 0;"] if s else []
        lines += [f"st.shared.u32 [place{k}], ${outs + s * slots + k};" for k in range(slots)]
        lines += ["bar.sync 0;"]
        for k in range(slots):
            lines.append(f"ld.shared.u32 ${s * slots + k}, [tile_own + {k * warps * WARP * 4}];")
    for k in range(slots):
        lines += [*_digit(f"${k}", "t0", zero), "shl.b32 t0, t0, 2;", "add.u32 t0, t0, table;",
                  "ld.shared.u32 t1, [t0];", f"add.u32 t1, t1, {k * warps * WARP};",
                  f"add.u32 ${slots * sets + k}, t1, tid;"]
    return _text(lines)


# --------------------------------------------------------------------------- parts


def _text(lines: list[str]) -> str:
    return "{\n" + "\n".join(lines) + "\n}"


def _begin(shared: list[tuple[str, int]], byte: int, temporaries: int) -> list[str]:
    """Shared arrays, the addresses of which are registers of their names."""
    lines = [f".reg .b32 tid, own, tile_own, selector, t<{temporaries}>;",
             ".reg .pred binned, p;"]
    for name, words in shared:
        lines += [f".shared .align 16 .b32 radix_{name}[{words}];", f".reg .b32 {name};",
                  f"mov.u32 {name}, radix_{name};"]
    lines += ["mov.u32 tid, %tid.x;", f"or.b32 selector, ${byte}, 0x4440;"]
    if any(name == "tile" for name, _ in shared):
        lines += ["shl.b32 tile_own, tid, 2;", "add.u32 tile_own, tile_own, tile;"]
    return lines


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


def _begun(warps: int, begin: str, end: str) -> list[str]:
    """Counters become where the words of a warp and digit begin in the ordered tile.

    The table gets where those of a digit go, less where they are in the tile.
    """
    counts = [f"t{k}" for k in range(warps)]
    total, scan, other, before = (f"t{warps + k}" for k in range(4))
    lines = ["add.u32 own, own, counts;", f"mov.u32 {total}, 0;"]
    for w, count in enumerate(counts):
        lines += [f"@binned ld.shared.u32 {count}, [own + {w * BINS * 4}];",
                  f"@!binned mov.u32 {count}, 0;", f"add.u32 {total}, {total}, {count};"]
    lines.append(f"mov.u32 {scan}, {total};")
    for step in (1, 2, 4, 8, 16):
        lines += [f"shfl.sync.up.b32 {other}|p, {scan}, {step}, 0, 0xffffffff;",
                  f"@p add.u32 {scan}, {scan}, {other};"]
    lines += [f"shl.b32 {other}, warp, 2;", f"add.u32 {other}, {other}, sums;",
              "setp.eq.u32 p, lane, 31;", "and.pred p, p, binned;",
              f"@p st.shared.u32 [{other}], {scan};", "bar.sync 0;",
              f"sub.u32 {before}, {scan}, {total};"]
    for w in range(BINS // WARP - 1):
        lines += [f"ld.shared.u32 {other}, [sums + {4 * w}];", f"setp.gt.u32 p, warp, {w};",
                  f"@p add.u32 {before}, {before}, {other};"]
    lines += [f"sub.u32 {scan}, {begin}, {before};", f"add.u32 {end}, {begin}, {total};",
              f"sub.u32 {other}, own, counts;", f"add.u32 {other}, {other}, table;",
              f"@binned st.shared.u32 [{other}], {scan};"]
    for w, count in enumerate(counts):
        lines += [f"@binned st.shared.u32 [own + {w * BINS * 4}], {before};",
                  f"add.u32 {before}, {before}, {count};"]
    return lines
