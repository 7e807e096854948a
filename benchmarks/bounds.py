"""What functrans has to reach: a time, a peer's speed, or a share of what the memory can do."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

SUBJECT = "functrans"
OWN = GRADIENT, MATERIALISED = ("batch gradient", "materialised")
"""Columns that functrans computes itself, to be measured against: a gradient of the whole batch,
and the same program without contraction algebra."""
LIMIT_BYTES = 2**27
"""Bytes that one call of a limit moves (copy: 64 MiB read and 64 MiB written)."""
COPY, READ, STREAM = LIMITS = ("copy limit", "read limit", "streaming copy")

UNITS = {"GB/s": 1e9, "GFLOP/s": 1e9, "TFLOP/s": 1e12}
"""Bytes or operations a second."""


def duration(seconds: float) -> str:
    """Seconds with three digits and a unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


class Bound(ABC):
    """The longest time that functrans may take, from the times of the same run."""

    label: str
    """How the table calls it; empty where the time itself says it."""

    @abstractmethod
    def seconds(self, measured: Mapping[str, float], amount: float) -> float:
        """The bound for a program that needs `amount` bytes or operations; NaN without a peer."""


@dataclass(frozen=True)
class AtMost(Bound):
    """A fixed time."""

    limit: float
    label = ""

    def seconds(self, measured: Mapping[str, float], amount: float) -> float:
        return self.limit


@dataclass(frozen=True)
class Rate(Bound):
    """The time at a fixed rate, in GB/s or TFLOP/s."""

    rate: float
    unit: str

    @property
    def label(self) -> str:
        return f"{self.rate:g} {self.unit}"

    def seconds(self, measured: Mapping[str, float], amount: float) -> float:
        return amount / (self.rate * UNITS[self.unit])


@dataclass(frozen=True)
class Peer(Bound):
    """`time` times what one peer takes."""

    name: str
    time: float = 1.0

    @property
    def label(self) -> str:
        return self.name if self.time == 1 else f"{self.time:g}x {self.name}'s"

    def seconds(self, measured: Mapping[str, float], amount: float) -> float:
        return measured.get(self.name, math.nan) * self.time


@dataclass(frozen=True)
class Best(Bound):
    """`speed` times the speed of the fastest peer, or `time` times its time."""

    speed: float = 1.0
    time: float = 1.0

    @property
    def label(self) -> str:
        if self.time != 1:
            return f"{self.time:g}x best's"
        return "best" if self.speed == 1 else f"{self.speed:g}x best"

    def seconds(self, measured: Mapping[str, float], amount: float) -> float:
        peers = [t for name, t in measured.items() if name not in (SUBJECT, *OWN, *LIMITS)]
        return min(peers, default=math.nan) * self.time / self.speed


@dataclass(frozen=True)
class Share(Bound):
    """A share of the bytes a second that the machine copies, or reads, in the same rounds."""

    share: float
    limit: str = COPY

    @property
    def label(self) -> str:
        return f"{self.share:g} {self.limit.split()[0]}"

    def seconds(self, measured: Mapping[str, float], amount: float) -> float:
        return amount * measured.get(self.limit, math.nan) / (self.share * LIMIT_BYTES)


@dataclass(frozen=True)
class Each(Bound):
    """All of several bounds; one without its peer leaves the others undecided too."""

    bounds: tuple[Bound, ...]

    @property
    def label(self) -> str:
        return ", ".join(bound.label for bound in self.bounds)

    def seconds(self, measured: Mapping[str, float], amount: float) -> float:
        limits = [bound.seconds(measured, amount) for bound in self.bounds]
        return math.nan if any(map(math.isnan, limits)) else min(limits)
