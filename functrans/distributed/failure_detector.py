"""What is wrong with a run of several processes, judged from what each of them says it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FailureDetector", "Peer"]

SETTLED: Final = 2.0
"""Seconds: who waits for so long is not merely a little later or earlier than the others."""
LATER: Final = 0.3
"""Seconds after which a collective with one that is over has failed."""
COMPILING: Final = 10.0
"""A process that compiles has so many times longer."""


@dataclass(slots=True)
class Peer:
    """One process, as the coordinator knows it; times are of the coordinator's clock."""

    rank: int
    host: str = ""
    pid: int = 0
    heard: float = 0.0
    program: str = ""
    """What it runs, or ran last."""
    run: int = 0
    """How many programs of several processes it has begun."""
    calls: int = 0
    """How many collectives it has begun."""
    waited: float = 0.0
    """Seconds for which it has waited for others; 0.0 where it does not."""
    waits_in: str = ""
    place: str = ""
    """Where its main thread is, in the user's code."""
    compiling: bool = False
    raised: str = ""
    raised_in: int = -1
    failed_at: float = 0.0
    """When it raised or ended."""
    learnt_at: float = 0.0
    leaving: bool = False
    """Its program is over, and it waits for the others to end together."""
    ended: bool = False
    lost: bool = False

    def __str__(self) -> str:
        return f"process {self.rank} (pid {self.pid} on {self.host})"

    def learn(self, state: dict[str, Any], now: float) -> None:
        """Take over what it says of itself."""
        self.learnt_at = now
        self.program, self.run = str(state["program"]), int(state["run"])
        self.calls, self.waited = int(state["calls"]), float(state["waited"])
        self.waits_in, self.place = str(state["waits_in"]), str(state["place"])
        self.compiling = bool(state["compiling"])
        if state["leaving"] and not self.leaving:
            self.failed_at = now
        self.leaving = bool(state["leaving"])


class FailureDetector:
    """Says once what is wrong, naming the process at fault."""

    def __init__(self, peers: Sequence[Peer], collective_timeout: float,
                 heartbeat_timeout: float, missing_after: float) -> None:
        self.peers = peers
        self._missing_after = missing_after
        """A process that was not heard of by this time does not come."""
        self._collective = collective_timeout
        self._heartbeat = heartbeat_timeout
        self._still: tuple[float, tuple[int, ...]] = (0.0, ())

    def failure(self, now: float) -> tuple[int, str] | None:
        """The process at fault, and what is to be said of it; None while all is well."""
        waiting = [p for p in self.peers if p.waited > 0 and not p.ended]
        missing = [p for p in self.peers if not p.heard]
        if missing and now > self._missing_after:
            return missing[0].rank, (f"{_list(missing)} of {len(self.peers)} did not come within "
                                     "the initialization_timeout.")
        for p in self.peers:
            if p.ended or not p.heard:
                continue
            if p.lost:
                return p.rank, f"{p} died: its connection was closed without a word."
            if now - p.heard > self._heartbeat:
                return p.rank, (f"{p} was not heard of for {now - p.heard:.0f} s: it was stopped, "
                                "or its host is gone.")
        for p in self.peers:
            # who has waited since: what was under way then may have come about
            others = [w for w in waiting if w is not p and w.waited > LATER
                      and w.learnt_at - p.failed_at > LATER]
            if p.raised and any(w.run == p.raised_in for w in others):
                return p.rank, f"{p} raised: {p.raised}"
            others = [w for w in others if not w.leaving]
            if (p.ended or p.leaving) and others:
                why = f" It raised: {p.raised}" if p.raised else ""
                return p.rank, (f"{p} is at its end, and {_list(others)} {_wait(others)} for it in "
                                f"{others[0].waits_in} of {others[0].program}.{why}")
        return self._deadlock(now, waiting) or self._hang(waiting)

    def _deadlock(self, now: float, waiting: Sequence[Peer]) -> tuple[int, str] | None:
        """All wait, and nobody goes on."""
        if len(waiting) < len(self.peers) or min(p.waited for p in waiting) < SETTLED \
                or all(p.leaving for p in waiting):
            self._still = (now, ())
            return None
        calls = tuple([p.calls for p in self.peers])
        if self._still[1] != calls:
            self._still = (now, calls)
        if now - self._still[0] < SETTLED:
            return None
        first = self.peers[0]
        other = next((p for p in self.peers if (p.program, p.waits_in) !=
                      (first.program, first.waits_in)), self.peers[-1])
        told = "; ".join([f"{p} waits in {p.waits_in} of {p.program}, {p.place}"
                          for p in (first, other)])
        same = (first.program, first.waits_in) == (other.program, other.waits_in)
        what = "all processes wait for each other" if same else "processes run different programs"
        return other.rank, f"{what}: {told}."

    def _hang(self, waiting: Sequence[Peer]) -> tuple[int, str] | None:
        longest = max([w for w in waiting if not w.leaving], key=lambda p: p.waited, default=None)
        if longest is None or longest.waited < self._collective:
            return None
        late = [p for p in self.peers if p.waited == 0 and not p.ended]
        busy = [p for p in late if p.compiling]
        if busy and longest.waited < COMPILING * self._collective:
            return None
        if not late:
            return None
        told = "; ".join([f"{p} is {p.place}" for p in late[:3]])
        return late[0].rank, (
            f"{longest} has waited for {longest.waited:.0f} s in {longest.waits_in} of "
            f"{longest.program}, and {_list(late)} did not come: {told}.")


def _list(peers: Sequence[Peer]) -> str:
    names = [str(p.rank) for p in peers[:8]] + ["..."] * (len(peers) > 8)
    return f"process{'es' * (len(peers) > 1)} {', '.join(names)}"


def _wait(peers: Sequence[Peer]) -> str:
    return "wait" if len(peers) > 1 else "waits"
