"""How much work is worth what: the numbers by which programs use threads.

The unit is the time of one addition of an element in a vector loop, loads and stores included.
"""

__all__ = ["GRAIN_WORK", "HEAVY_WORK", "LONGEST_PREFETCH", "PARALLEL_WORK", "PREFETCHED_BYTES",
           "STOP_WORK", "STREAMED_BYTES"]

# Elements times (2 + weight) of one element from which two threads win: waking the second takes
# 5 to 20 us, in which one thread does about this much (measured on additions and exponentials).
PARALLEL_WORK = 600_000
# ... and what one piece of the work should be
GRAIN_WORK = 150_000
# Programs that do more release the GIL while they run: releasing and taking it costs 0.1 us.
HEAVY_WORK = 200_000
# Loops look after about so much work (0.4 ms) whether they are to end, which takes 6 ns
STOP_WORK = 4_000_000
# Results larger than the last-level cache go past it: a store otherwise reads the line first
# (measured: 256 outer products of 784 x 256 float32 take 6.6 ms, 2.8 with streaming stores; on
# 2^22 numbers, which fit in the cache, streaming takes 30 % longer).
STREAMED_BYTES = 2**25
# Rows of arrays that do not fit in the second-level cache are asked for while the row before them
# is computed, if they are not too long for that cache.
PREFETCHED_BYTES, LONGEST_PREFETCH = 2**22, 2**17
