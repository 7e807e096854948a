"""The instruction set that C is generated for, and the compiler flags that select it."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

from functrans.core.record import Record

__all__ = ["AVX2", "AVX512", "COMMON_FLAGS", "GENERIC", "NEON", "SCHEDULED_FLAGS",
           "Isa", "host_isa"]

# Contraction would break the error-free transformations of the math templates and make a result
# depend on what was fused with it: fused multiply-adds are written out where they are meant.
# Arena memory is read under several types, and integers wrap. What lives across the rare calls of
# `sin` for huge angles stays in registers: a double pendulum takes 12.4 ms instead of 14.6.
COMMON_FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-ffp-contract=off", "-fno-math-errno",
                "-fno-trapping-math", "-fcaller-saves", "-fwrapv", "-fno-strict-aliasing",
                "-Wno-psabi")

SCHEDULED_FLAGS = ("-fschedule-insns", "-fsched-pressure", "-fexpensive-optimizations")
"""Instructions are ordered before they have registers, by gcc: where the state of lanes is small
(Van der Pol's oscillator 12.5 ms to 9.2); where it is large it is spilled (three bodies 11 to 15).
"""


class Isa(Record):
    """An instruction set; `vector_bytes` is the width of its registers."""

    name: str
    vector_bytes: int
    flags: tuple[str, ...]
    fma: bool = False
    f16c: bool = False
    bf16_dot: bool = False
    popcount: bool = False  # of the elements of vectors

    @property
    def masks(self) -> bool:
        """Whether comparisons fill mask registers, one bit a lane."""
        return self.name == "avx512"

    @property
    def x86(self) -> bool:
        return self.name in ("avx2", "avx512")


_AVX2_FEATURES = ("avx2", "fma", "f16c", "bmi1", "bmi2", "popcnt")
_AVX512_FEATURES = ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd")
_AVX2_FLAGS = ("-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mpopcnt", "-mlzcnt")

GENERIC = Isa("generic", 16, ())
NEON = Isa("neon", 16, (), fma=True)
AVX2 = Isa("avx2", 32, _AVX2_FLAGS, fma=True, f16c=True)
AVX512 = Isa("avx512", 64, (*_AVX2_FLAGS, *(f"-m{f}" for f in _AVX512_FEATURES)), fma=True,
             f16c=True)


@cache
def host_isa() -> Isa:
    """The instruction set of this machine: what its processor says, without running a compiler."""
    machine = os.uname().machine
    if machine in ("aarch64", "arm64"):
        return NEON
    return isa_of(_cpu_flags()) if machine == "x86_64" else GENERIC


def isa_of(features: frozenset[str]) -> Isa:
    """The widest instruction set of an x86 processor with these features (named as by Linux)."""
    if not features.issuperset((*_AVX2_FEATURES, "abm")):
        return GENERIC
    if not features.issuperset(_AVX512_FEATURES):
        return AVX2
    bf16_dot, popcount = "avx512_bf16" in features, "avx512_vpopcntdq" in features
    return replace(AVX512, bf16_dot=bf16_dot, popcount=popcount, flags=(
        *AVX512.flags, *(["-mavx512bf16"] if bf16_dot else []),
        *(["-mavx512vpopcntdq"] if popcount else [])))


def _cpu_flags() -> frozenset[str]:
    """The features of the first processor; one line, because the whole file grows with the cores
    (measured 0.3 ms for the first line read, 0.05 ms when the kernel has it at hand)."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()
