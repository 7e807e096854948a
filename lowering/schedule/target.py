"""What programs are compiled for: a GPU of a compute capability, which need not be there.

Bytes of shared memory that a program may have: CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability". Multiprocessors are those of the largest product that is
common (A100, A10, Orin, L40, H100, B200, B300, RTX PRO 6000, GB10).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from functrans import _runtime
from functrans.core.errors import BackendError
from functrans.core.record import Record
from functrans.lowering.passes.lanes import LaneLimits

__all__ = ["HOPPER", "Measurements", "Target", "cuda_target", "device_target",
           "target_named"]

LIMITS: Final = {80: (163, 108), 86: (99, 72), 87: (163, 16), 89: (99, 142), 90: (227, 132),
                 100: (227, 148), 103: (227, 148), 110: (227, 20), 120: (99, 188), 121: (99, 48)}
"""By capability, KiB of shared memory and multiprocessors."""


class Measurements(Record):
    """What was measured of a GPU, an H100 by default: nanoseconds, bytes and operations in one.

    Choices among kernels and their configurations are made by these figures. Those of loops are of
    another kind of measurement, a launch among others in a graph or a body in one kernel: of two
    launches of which one waits for the other, 4.7 us; a loop of two phases over scalars, 0.15 us an
    iteration; a step of an RNN of 8 rows and 256 values, 1.8 us; 256^2 numbers times a vector in
    one program, 5 us; an LSTM with 1 MB of weights, which a multiprocessor reads in every step,
    14 us.
    """

    rates: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({
        "bf16": 7000.0, "fp16": 7000.0, "fp8e4nv": 13000.0, "fp8e5": 13000.0, "i8": 13000.0,
        "tf32": 3000.0, "ieee": 350.0, "tf32x3": 900.0, "bf16x6": 1000.0, "fp64": 400.0}))
    """Operations of products, by dtype or precision, for each multiprocessor."""

    bandwidth: float = 2600.0
    """Bytes to and from memory, of products."""

    cache_bandwidth: float = 10000.0
    """Bytes from the second-level cache that tiles of products read."""

    split_launch: float = 3000.0
    """The launch that adds split sums up, or copies an operand."""

    last_arrival: float = 1200.0
    """What it takes until the last of several programs can read what the others stored: a barrier,
    an atomic operation that acquires and releases, and the first answer of the second-level
    cache."""

    atomic: float = 10.0
    """An atomic addition to one place after another: 3,125 of each of 32 and of 512 places take 23
    and 32 us, 1,024 of each of 2,048 places 13."""

    compared_addition: float = 0.6e-3
    """A comparison, a selection and an addition of registers, on all multiprocessors: an
    estimate."""

    small_kernel: float = 4000.0
    """A kernel that takes no longer than this shares a launch with others, which costs 1.5 to 2.5
    us: its programs are done before occupancy matters."""

    waiting_bytes: int = 1 << 26
    """What kernels that wait for others to share their launch keep in memory."""

    product_step: float = 250.0
    """The least time of a step of 64 along the sum of a product."""

    attention: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({
        "fp32": 100e3, "bf16": 400e3, "fp16": 400e3}))
    """Operations of large attentions, on all of the GPU."""

    copy_bandwidth: float = 2500.0
    """Bytes of a copy of an operand, read and written."""

    copy_bandwidth_cached: float = 5000.0
    """The same of one that the second-level cache holds: 16.8 MB are read and written in 6.6 us."""

    copy_cached: int = 40 << 20
    """Bytes that it holds."""

    copy_launch: float = 2000.0
    """The launch of such a copy."""

    products_across: Mapping[str, tuple[float, float, float]] = field(
        default_factory=lambda: MappingProxyType({
            "f32": (390e3, 130e3, 130e3),
            **dict.fromkeys(("f8e4", "f8e5"), (1500e3, 330e3, 330e3))}))
    """Operations of products of middle size with none, one, two operands across the sum."""

    epilogue_operation: float = 45e-6
    """What an epilogue of a product takes for an operation on each element. The sums of the next
    tile wait for it: arithmetic is paid for that memory traffic would hide. Under the gradient of
    gelu, 8192 x 4096 x 1024 of bfloat16 takes 194 us, without an epilogue 101, and the kernel of it
    alone 60."""

    epilogue_addition: float = 160e-6
    """The same of an addition, behind a product of float32. The gradient of gelu, 38 of each, took
    340 us behind 12544 x 512 x 2048, gelu itself 257; without them the product takes 90 in large
    tiles and 134 in small ones, and kernels of them 109."""

    epilogue_load: float = 1.4e-3
    """What it takes to load two bytes."""

    byte: float = 1e-3 / 3
    """What memory takes for a byte of a kernel that does little else: 3 TB/s."""

    again: float = 5.2e3
    """Bytes in a nanosecond that the second-level cache gives to tiles that read places for each
    tap: 1,048,576 of 25 taps of 64 features of float32 in 1.28 ms, 458,752 of 9 taps in 0.25."""

    launch: float = 2200.0
    """A launch of a step of a loop."""

    phase: float = 250.0
    """A barrier in place of a launch, in a loop that is one kernel."""

    turn: float = 600.0
    """The next tile of a launch, where one program takes them one by one: its loads are waited for.
    On an H100 0.9 us, of 640 elements that are transposed."""

    one_bandwidth: float = 60.0
    """Bytes from the second-level cache to one multiprocessor."""

    one_rate: float = 300.0
    """Operations of one multiprocessor in a loop, products included."""

    lanes: LaneLimits = field(default_factory=lambda: LaneLimits(
        elements=160, of_one=4096, operations=12_000, fewest=2, step=0, repeated=(4.0, 1.25),
        is_alone=True, believes_masks=True))
    """What a lane may be that is a thread: its numbers are in up to 255 registers."""

    thread_step: float = 2.9
    """An operation of a thread that waits for the one before it: an estimate, of 5 cycles."""

    thread_rate: float = 218.0
    """Operations of all threads of a multiprocessor, 128 in a cycle."""

    shared_bandwidth: float = 5000.0
    """Bytes from the second-level cache to all multiprocessors, in loops."""

    all_bandwidth: float = 2500.0
    """Bytes of a step that is launched."""

    all_rate: float = 30000.0
    """Operations of a step that is launched."""

    host_step_flops: float = 1e9
    """What is computed while the host decides a branch: 50 us and copies at 10 GB/s."""

    host_step_bytes: float = 128e6
    """What is moved meanwhile."""

    addition: float = 0.15
    """Bytes that are moved while each number has an addition: 20 simple operations in a picosecond,
    beside 3 bytes."""

    spills: int = 96
    """Numbers that a thread keeps in memory, for want of registers, before another form is better.
    A loop over a leapfrog of 512 chains, in one kernel, took 1.3 ms with 1,508 of them; launched
    step by step 0.1. A recurrent network that keeps its weights has 96."""

    product_spills: int = 96
    """The same of a product, whose epilogue keeps them there once a tile: with 102 to 124 of them
    products of a radiance field took 40 % longer than without the epilogue."""

    written_out: int = 2048
    """Multiply-adds of a thread that a kernel may have one by one in its text, where products have
    no instruction of their own. LLVM and ptxas took 0.7 s for 1,024 of them, 1.3 for 2,048, 2.7 for
    4,096, 4 for 8,192, and for the 16,384 of a gradient of attention with 256 features 15 to 27."""

    written_out_shares: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({
        "ieee": 1.0, "tf32x3": 0.4}))
    """What a multiply-add of other precisions takes of that, which are several to an instruction of
    a tensor core: 16,384 took 5.5 s at "tf32x3". The one product of "tf32" takes too little."""

    triangular_row: float = 370.0
    """What cuBLAS takes for a row of a triangular system, however many right-hand sides there are:
    2,048 rows 0.76 ms."""

    triangular_rate: float = 11300.0
    """Operations of systems with as many right-hand sides as rows, or more."""

    triangular_product_rate: float = 100e3
    """Operations of products in their place: three of TensorFloat-32 each. An estimate, as are the
    next four, which `benchmarks/linear_algebra.py` measures."""

    small_system_rate: float = 130.0
    """Operations of a multiprocessor on tiles of small matrices, with their sums."""

    small_system_round: float = 400.0
    """The least time of a round that eliminates a column of them."""

    tile_product: float = 400.0
    """A product of small tiles in registers, of which the next one waits for the one before. An
    estimate, as are the next four."""

    tile_reduction: float = 100.0
    """A sum along the rows or columns of a tile."""

    tile_efficiency: float = 0.2
    """Of the rates of products, in small tiles."""

    tile_operations: float = 150.0
    """Of elements of tiles, for each multiprocessor."""

    tile_warps: int = 8
    """Of tile programs, on a multiprocessor: they take most registers."""

    library_call: float = 15e3
    """A call of cuSOLVER or cuBLAS, before and after which a program's CUDA graphs end."""

    library_element: float = 0.03
    """What they take for an element of a stack: Cholesky of 4,096 x 64 x 64 takes 0.50 ms."""

    library_side: float = 0.0135
    """What they take for an element of right-hand sides: 32 triangular systems of 16 rows with
    100,000 sides each take 0.70 ms."""

    small: int = 1 << 18
    """Elements that are read again in 1 us, from the second-level cache. Rows and columns of
    256 x 256 are reduced in 2.2 and 1.4 us by one kernel, in 1.3 and 1.3 us by two."""


H100: Final = Measurements()


class Target(Record):
    """GPUs of a compute capability, with `shared` bytes of shared memory for a program."""

    capability: int
    shared: int
    multiprocessors: int
    measured: Measurements = field(default=H100, compare=False, repr=False)
    """Figures of speed, of an H100 for all: no other GPU has been measured."""

    @property
    def walkers(self) -> int:
        """Programs that stay until all is done: two on each multiprocessor.

        The gradient of layer norm, 16384 x 4096 of float32 and 8192 x 1024 of bfloat16, takes 223
        and 28 us on an H100 with tiles of 4096 and 32 elements for each thread; 281 and 71 with one
        program on each and tiles of 8192 (16 warps), 370 and 64 with those of 4096 and 16 warps.
        """
        return 2 * self.multiprocessors

    @property
    def name(self) -> str:
        return f"cuda:{self.capability}"

    @property
    def has_copy_engine(self) -> bool:
        """Whether tiles come by descriptors (TMA, from Hopper on)."""
        return self.capability >= 90


def cuda_target(capability: int, multiprocessors: int | None = None) -> Target:
    """The target of a compute capability such as 90; unknown ones have the limits of older ones.

    Raises BackendError for GPUs that are older than Triton's oldest.
    """
    known = [c for c in LIMITS if c <= capability]
    if not known:
        raise BackendError(f"there are no kernels for GPUs of compute capability {capability}.",
                           why=f"Triton compiles for {min(LIMITS)} (Ampere) and newer",
                           fix='target="cpu"')
    # a family of its own, Hopper's successors' small sisters have less memory: the nearest below
    shared, count = LIMITS[max(known)]
    return Target(capability, shared << 10, count if multiprocessors is None else multiprocessors)


HOPPER: Final = cuda_target(90)


def device_target(gpu: int) -> Target | None:
    """The target that the GPU of a number is; None where there is no GPU."""
    if not _runtime.cuda_open():
        return None
    _, major, minor, count, _, shared = _runtime.cuda_devices()[gpu]
    return Target(10 * major + minor, shared, count)


def target_named(name: str) -> Target:
    """The target of a name such as `cuda:90`. Raises BackendError for others.

    >>> target_named("cuda:80").shared
    166912
    """
    found = re.fullmatch(r"cuda:(\d+)", name)
    if found is None:
        raise BackendError(f"there is no target {name!r}.", where=None,
                           why='targets are "cpu" and "cuda:" with a compute capability',
                           fix='target="cuda:90"')
    return cuda_target(int(found[1]))
