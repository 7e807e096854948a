"""What C programs are compiled for, as far as plans depend on it: cores and caches."""

from __future__ import annotations

from typing import Final

from functrans.core.record import Record

__all__ = ["SERVER", "CPUTarget"]


class CPUTarget(Record):
    """A CPU with vectors, measured on a server with AVX-512.

    Work is in times of one addition of an element in a vector loop, loads and stores included.
    """

    parallel_work: int = 40_000
    """Elements times (2 + weight) of one element from which a loop is left to the runtime, which
    knows how long it takes (`csrc/thread_costs.h`) and decides on how many threads it runs. Of the
    kernels of twenty programs a unit takes 0.03 to 0.45 ns, 0.1 as a rule, and what takes less than
    16 us is run on one thread."""

    exported_parallel_work: int = 600_000
    """The same for exported programs, whose runtime takes all threads, which sleep in between."""

    grain_work: int = 20_000
    """What the runtime hands out at least, and takes to need 2 us until it has measured it."""

    heavy_work: int = 200_000
    """Programs that do more release the GIL while they run: releasing and taking it costs 0.1 us.
    """

    stop_work: int = 4_000_000
    """Loops look after about so much work (0.4 ms) whether they are to end, which takes 6 ns."""

    streamed_bytes: int = 2**25
    """Results larger than the last-level cache go past it: a store otherwise reads the line first.
    256 outer products of 784 x 256 float32 take 6.6 ms, 2.8 with streaming stores; on 2^22 numbers,
    which fit in the cache, streaming takes 30 % longer."""

    prefetched_bytes: int = 2**22
    """Rows of arrays that do not fit in the second-level cache are asked for while the row before
    them is computed, ..."""

    far_places_bytes: int = 2**20
    """Results of which a place that is computed is fetched before its turn. 10^6 sums of float64
    at random ones of 10^6 places take 1.7 ms, and 5.2 without; 10^5 places stay in the
    second-level cache."""

    longest_prefetch: int = 2**17
    """... if they have no more bytes than that: they are not too long for that cache."""

    chunk: int = 4096
    """Elements in one piece of a long line: 16 KB of float32, three of which are in the first-level
    cache. Plans for GPUs begin with the same pieces."""

    long_row: int = 32768
    """Fewer than `few_rows` rows that are as long are split among the threads, not given to one
    thread each."""

    few_rows: int = 16

    least_blocks: int = 4
    """Fewer blocks of a chain would leave threads without work."""

    enough_blocks: int = 16
    """Rows are split further to have so many."""

    least_chain_bytes: int = 128 << 10
    """Bytes, over all blocks, of values that only the chain reads: with less it saves nothing."""

    block_bytes: int = 2 << 20
    """... and of one block: more does not stay near the core, and rows are split further.

    Attention with heads of 512 x 64 (1 MB of scores), ms of processor time by rows of a block: 64:
    15.8, 128: 15.1, 256: 14.7, 512: 14.4; of 2048 x 64: 64: 64, 128: 60.6, 256: 59.3, 2048: 60.1.
    Its gradient, which cannot be split, is no slower than apart even with 48 MB a block (222 and
    227 ms), and needs less memory."""

    least_block_rows: int = 128
    """Rows of a block at least: for each the library packs the other operand again."""

    least_block_work: int = 1 << 16
    """Multiply-adds of a product on one block: smaller ones are faster as one batch."""


SERVER: Final = CPUTarget()
