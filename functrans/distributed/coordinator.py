"""The coordinator: a small process beside process 0 that all processes hold a connection to.

It is a process, so that it answers while process 0 holds the interpreter's lock, starts MPI, or
dies. It tells them what is wrong with one of them (`failure_detector.py`), collects small messages,
and answers what MPICH asks of a process manager where no `mpiexec` started the processes (PMI 1, a
public protocol of lines of text). No data of programs goes through it. Messages are JSON, a line
each.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from functrans.distributed.failure_detector import FailureDetector, Peer

__all__ = ["Coordinator", "listen", "split_address", "start_coordinator"]

TICK: Final = 0.25
LONGEST_LINE: Final = 1 << 26


def split_address(address: str) -> tuple[str, int]:
    """The host and the port of "host:port"; ValueError where it is none."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise ValueError(address)
    return host.strip("[]"), int(port)


def listen(address: tuple[str, int]) -> socket.socket:
    """A socket that takes connections there; port 0 for any that is free."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    return socket.create_server(address, family=family, backlog=1024)


def start_coordinator(sock: socket.socket, count: int, *timeouts: float) -> None:
    """A coordinator that takes connections from a socket, which this process gives away."""
    # process managers of MPI know processes by their environment: it is none of theirs
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PMI", "OMPI_", "PRTE_"))}
    with sock:
        subprocess.Popen(
            [sys.executable, "-c", "from functrans.distributed.coordinator import main; main()",
             str(sock.fileno()), str(count), *map(repr, map(float, timeouts))],
            pass_fds=[sock.fileno()], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True)


def main() -> None:
    """What that process runs."""
    descriptor, count, *timeouts = sys.argv[1:]
    collective, heartbeat, initialization = map(float, timeouts)
    Coordinator(socket.socket(fileno=int(descriptor)), int(count), collective, heartbeat,
                initialization).serve()


@dataclass(eq=False)
class _Client:
    """One connection, with what came of a line that is not whole yet."""

    sock: socket.socket
    unread: bytearray = field(default_factory=bytearray)
    peer: Peer | None = None
    pmi_rank: int = -1


class Coordinator:
    """Serves `count` processes until they are over."""

    def __init__(self, sock: socket.socket, count: int, collective_timeout: float,
                 heartbeat_timeout: float, initialization_timeout: float) -> None:
        self._server = sock
        self._count = count
        self.peers = [Peer(rank) for rank in range(count)]
        self._detector = FailureDetector(self.peers, collective_timeout, heartbeat_timeout,
                            time.monotonic() + initialization_timeout)
        self._failed = False
        self._at_fault = -1
        self._clients: list[_Client] = []
        self._gathers: dict[str, dict[int, str]] = defaultdict(dict)
        # MPICH names shared memory by it: a run must not find that of another one, which was killed
        self._job = f"{os.getpid()}_{time.time_ns()}"
        self._pmi_values: dict[str, str] = {}
        self._pmi_waiting: list[_Client] = []
        self._selector = selectors.DefaultSelector()
        self._server.setblocking(False)
        self._selector.register(self._server, selectors.EVENT_READ, None)

    def serve(self) -> None:
        """Until all processes have taken their leave, or are lost, or did not come."""
        beat = 0.0
        while not self._is_over():
            for key, _ in self._selector.select(TICK):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            now = time.monotonic()
            if now - beat >= 1.0:
                beat = now
                self._tell_all({"beat": 1})
            if not self._failed:
                found = self._detector.failure(now)
                if found is not None:
                    self._failed = True
                    self._at_fault = found[0]
                    self._tell_all({"failed": found[1]})
        for client in list(self._clients):
            self._drop(client)
        self._server.close()

    def _is_over(self) -> bool:
        # MPICH takes leave of its process manager in a handler of the end of the process
        return all(p.ended or p.lost or p.rank == self._at_fault or (self._failed and not p.heard)
                   for p in self.peers) and \
            (self._failed or all(c.peer is not None for c in self._clients))

    def _accept(self) -> None:
        sock, _ = self._server.accept()
        sock.settimeout(5.0)
        client = _Client(sock)
        self._clients.append(client)
        self._selector.register(sock, selectors.EVENT_READ, client)

    def _drop(self, client: _Client) -> None:
        if client in self._clients:
            self._clients.remove(client)
            self._selector.unregister(client.sock)
            client.sock.close()
            if client.peer is not None and not client.peer.ended:
                client.peer.lost = True

    def _read(self, client: _Client) -> None:
        try:
            data = client.sock.recv(1 << 20)
        except OSError:
            data = b""
        if not data or len(client.unread) > LONGEST_LINE:
            self._drop(client)
            return
        client.unread += data
        *lines, rest = bytes(client.unread).split(b"\n")
        client.unread = bytearray(rest)
        for line in lines:
            try:
                if line.startswith(b"{"):
                    self._take(client, json.loads(line))
                else:
                    self._pmi(client, line.decode())
            except (ValueError, KeyError, TypeError, IndexError):  # no line of a process of ours
                self._drop(client)
                return

    def _send(self, client: _Client, data: bytes) -> None:
        try:
            client.sock.sendall(data)
        except OSError:
            self._drop(client)

    def _tell(self, client: _Client, message: dict[str, Any]) -> None:
        self._send(client, json.dumps(message).encode() + b"\n")

    def _tell_all(self, message: dict[str, Any]) -> None:
        for client in list(self._clients):
            if client.peer is not None:
                self._tell(client, message)

    def _take(self, client: _Client, message: dict[str, Any]) -> None:
        """One message of a process."""
        peer = client.peer
        if peer is None:
            peer = self.peers[int(message["hello"])]
            if peer.heard:
                raise ValueError("two processes have one number")
            client.peer = peer
            peer.host, peer.pid = str(message["host"]), int(message["pid"])
            self._tell(client, {"welcome": [self._count, self.peers[0].host, self.peers[0].pid]})
        now = peer.heard = time.monotonic()
        if "state" in message:
            peer.learn(message["state"], now)
        elif "raised" in message:
            peer.raised, peer.raised_in = str(message["raised"]), int(message["run"])
            peer.failed_at = now
        elif "ended" in message:
            peer.ended = True
            peer.failed_at = now
            peer.raised = str(message["ended"]) or peer.raised
            peer.waited = 0.0
        elif "put" in message:
            self._gather(peer.rank, str(message["key"]), list(message["ranks"]),
                         str(message["put"]))

    def _gather(self, rank: int, key: str, ranks: list[int], value: str) -> None:
        """Give all values to everyone once they are there."""
        values = self._gathers[key]
        values[rank] = value
        if all(r in values for r in ranks):
            del self._gathers[key]
            for client in list(self._clients):
                if client.peer is not None and client.peer.rank in ranks:
                    self._tell(client, {"all": [values[r] for r in ranks], "key": key})

    # --- PMI 1, for MPICH without mpiexec

    def _pmi(self, client: _Client, line: str) -> None:
        """Answer one command, which is words `name=value`."""
        words = dict([w.split("=", 1) for w in line.split()])
        command = words["cmd"]
        if command == "initack":
            client.pmi_rank = int(words["pmiid"])
            answer = (f"cmd=initack rc=0\ncmd=set size={self._count}\n"
                      f"cmd=set rank={client.pmi_rank}\ncmd=set debug=0")
        elif command == "barrier_in":
            self._pmi_waiting.append(client)
            if len(self._pmi_waiting) == self._count:
                waiting, self._pmi_waiting = self._pmi_waiting, []
                for one in waiting:
                    self._send(one, b"cmd=barrier_out\n")
            return
        elif command == "put":
            self._pmi_values[words["key"]] = line.split("value=", 1)[1]
            answer = "cmd=put_result rc=0 msg=success"
        elif command == "get":
            value = self._pmi_values.get(words["key"])
            answer = f"cmd=get_result rc=0 msg=success value={value}" if value is not None \
                else "cmd=get_result rc=-1 msg=key_not_found value=unknown"
        else:
            answer = _PMI_ANSWERS[command].replace("COUNT", str(self._count)).replace(
                "JOB", self._job)
        self._send(client, answer.encode() + b"\n")


_PMI_ANSWERS: Final = {
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
    "get_appnum": "cmd=appnum appnum=0",
    "get_my_kvsname": "cmd=my_kvsname kvsname=functrans_JOB",
    "get_universe_size": "cmd=universe_size size=COUNT",
    "finalize": "cmd=finalize_ack",
}
