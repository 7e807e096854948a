"""Loops whose carry stays in registers: a program has a tile of it from the first iteration on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from functrans.lowering.loops.tensor import ScanLoop, WhileLoop
from functrans.lowering.triton.loops.iterations import ProgramBody
from functrans.lowering.triton.loops.loop_kernel import LoopWriter
from functrans.lowering.triton.loops.phases import PhaseOperand, Source
from functrans.lowering.triton.loops.tiles import TileBody, places_of, tile_of
from functrans.lowering.triton.steps.spec import CopyStep, Launch, Pointer

__all__ = ["scan_in_registers", "while_in_registers"]

STAGES = 3  # iterations whose elements of xs are on their way


def scan_in_registers(w: LoopWriter, call: ScanLoop, length: int, body: ProgramBody,
                      source: Source) -> bool:
    """Write the loop of a scan on tiles; False, and nothing written, where it has none."""
    first, n = call.num_consts, call.num_carry
    jaxpr = call.body
    moving = {k: k for k in range(n) if jaxpr.outvars[k] is not jaxpr.invars[first + k]}
    found = _tile(body, source, {first + k: k for k in moving}, moving)
    if found is None:
        return False
    tile, loaded, left, places = found
    copies = [s for s in body.steps if isinstance(s, CopyStep)]
    before, behind = [], []
    for c in copies:
        j = c.target.index - n
        if c.target.kind == "output" and c.source.kind == "input" and c.source.index - first in (
                *range(n),) and j < 0 and c.source.index - first not in moving:
            continue  # what never changes
        if c.target.kind != "output" or j < 0:
            return False
        if c.source.kind == "input" and c.source.index - first in moving:
            before.append((j, c.source.index - first))
        elif c.source.kind == "output" and c.source.index in moving:
            behind.append((j, c.source.index))
        else:
            return False
    slices = w.operands(call)
    consts, starts, ends, reads, writes = slices
    w.use(tile.launch)
    tiles = _RegisterTiles(w, tile, places)
    for k in moving:
        tiles.begin(k, starts[k])
    call_phase = tiles.call("phase", tile, [*consts, *starts, *reads], [*ends, *writes], loaded,
                            left)
    stages = STAGES if call.num_carry + first < len(jaxpr.invars) else 1
    w.emit(f"for t in tl.range(0, {length}, num_stages={stages}):")
    w.indent = "        "
    w.emit(f"at = {length - 1} - t" if call.reverse else "at = t")
    for j, k in before:
        tiles.end(k, writes[j])
    w.emit(f"{', '.join(f'c{k}' for k in sorted(moving))} = {call_phase}")
    for j, k in behind:
        tiles.end(k, writes[j])
    tiles.end_all(call, starts, ends)
    return True


def while_in_registers(w: LoopWriter, call: WhileLoop, holds: tuple[ProgramBody, Source],
                       body: tuple[ProgramBody, Source]) -> bool:
    """Write a loop with a predicate on tiles; False, and nothing written, where it has none."""
    first, second = call.predicate_consts, call.predicate_consts + call.body_consts
    n, jaxpr = len(call.results), call.body
    moving = {k: k for k in range(n)
              if jaxpr.outvars[k] is not jaxpr.invars[call.body_consts + k]}
    found = _tile(*body, {call.body_consts + k: k for k in moving}, moving)
    asked = _tile(*holds, {first + k: k for k in moving}, {0: n})
    if found is None or asked is None or any(isinstance(s, CopyStep) and not _stays(s, call, moving)
                                             for s in (*body[0].steps, *holds[0].steps)):
        return False
    tile, loaded, left, places = found
    question, seen, answered, elsewhere = asked
    if question.head != tile.head or any(elsewhere[k] != places[k] for k in seen.values()):
        return False
    inputs = w.outer(call.operands, [False] * len(call.operands))
    ends = w.outer(call.results, [False] * n)
    starts = inputs[second:]
    w.use(tile.launch)
    w.use(question.launch)
    tiles = _RegisterTiles(w, tile, places)
    for k in moving:
        tiles.begin(k, starts[k])
    flag = w.reserve(1, "u8")
    asks = tiles.call("holds", question, [*inputs[:first], *starts], [flag], seen, answered)
    step = tiles.call("phase", tile, [*inputs[first:second], *starts], ends, loaded, left)
    w.emit(f"going = tl.max({asks}.to(tl.int32))", "while going != 0:")
    w.indent = "        "
    w.emit(f"{', '.join(f'c{k}' for k in sorted(moving))} = {step}",
           f"going = tl.max({asks}.to(tl.int32))")
    tiles.end_all(call, starts, ends)
    return True


def _stays(c: CopyStep, call: WhileLoop, moving: Mapping[int, int]) -> bool:
    """Whether a copy of a body is that of a value which never changes."""
    k = c.target.index
    return c.source == Pointer("input", call.body_consts + k) and c.target.kind == "output" \
        and k not in moving


def _tile(body: ProgramBody, source: Source, carry: Mapping[int, int], ends: Mapping[int, int]
          ) -> tuple[TileBody, dict[str, int], dict[str, int], dict[int, str]] | None:
    """The only kernel of a body as one of tiles; the arguments that are tiles, and their places."""
    launches = [s for s in body.steps if isinstance(s, Launch)]
    if len(launches) != 1 or not ends or any(
            not isinstance(s, (Launch, CopyStep)) for s in body.steps):
        return None
    if any(isinstance(x, Pointer) and x.kind == "arena" for x in launches[0].arguments):
        return None
    tile = tile_of(launches[0], source)
    if tile is None:
        return None
    loaded, left = tile.named("input", carry), tile.named("output", ends)
    places = places_of(tile, loaded, left)
    if places is None or set(left.values()) != set(ends.values()):
        return None
    return tile, loaded, left, places


class _RegisterTiles:
    """The lines about tiles of a loop."""

    def __init__(self, w: LoopWriter, tile: TileBody, places: Mapping[int, str]) -> None:
        self.w, self.tile, self.places = w, tile, places

    def begin(self, k: int, at: PhaseOperand) -> None:
        name = self.w.phases.function(self.tile.begin(self.places[k]), "begin")
        self.w.emit(f"c{k} = {name}(0, {_own(at)})")

    def end(self, k: int, at: PhaseOperand) -> None:
        name = self.w.phases.function(self.tile.end(self.places[k]), "end")
        self.w.emit(f"{name}(0, {_own(at)}, c{k})")

    def end_all(self, call: ScanLoop | WhileLoop, starts: Sequence[PhaseOperand],
                ends: Sequence[PhaseOperand]) -> None:
        """The end of the loop: where its results go."""
        self.w.indent = "    "
        for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if k in self.places:
                self.end(k, end)
            else:
                self.w.copy(end, start, call.results[k])

    def call(self, what: str, tile: TileBody, ins: Sequence[PhaseOperand],
             outs: Sequence[PhaseOperand],
             loaded: Mapping[str, int], left: Mapping[str, int]) -> str:
        """The call of a function on tiles."""
        place: Callable[[Pointer], PhaseOperand] = self.w.place(ins, outs, PhaseOperand(str))
        arguments = [place(x).at(t[1:]) if isinstance(x, Pointer) else repr(x)
                     for x, t in zip(tile.launch.arguments, tile.launch.types, strict=True)]
        tiles = [f"c{k}" for k in sorted(set(loaded.values()))]
        name = self.w.phases.function(tile.phase(loaded, left), what)
        self.w.phases.launches.append((name, tile.launch))
        return f"{name}({', '.join(['0', *arguments, *tiles])})"


def _own(at: PhaseOperand) -> str:
    assert at.kind is not None
    return at.at(at.kind)
