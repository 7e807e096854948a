"""Regions over lanes as one kernel: programs take tiles of lanes in turn, and keep their sums.

Samples of a batch go through small matrices that they share, and back; what is kept of them is
sums. Each program has the matrices, and its part of the sums, in registers and shared memory for
all of its tiles. A second launch adds up the parts, in the order of the programs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.precision import Precision
from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import TooManyExpressions
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.lane_reader import LaneView
from functrans.lowering.loops.lane_tile_reader import inner_sizes
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.passes.tile_regions import is_lane_sum, tile_region_p
from functrans.lowering.rules.graph import CallRule, results_of
from functrans.lowering.schedule.tile_costs import RATES
from functrans.lowering.triton.kernels.axis_calls import AxisCall
from functrans.lowering.triton.kernels.kernel_source import Launches
from functrans.lowering.triton.loops.lane_tile_body import LaneTileBody
from functrans.lowering.triton.products.tile_programs import CHUNK, sums_of_parts
from functrans.primitives.broadcast import reduce_sum_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.precision import resolved_precision

__all__ = ["RULES", "TileRegionCall"]

BLOCKS: Final = (64, 32, LEAST_BLOCK := 16)
"""Lanes of a tile; sums of products over lanes have 16 terms at least."""
TILE_AREA: Final = 4096
"""Elements of the largest tile."""
MOST_EXPRESSIONS: Final = 20_000
GAIN: Final = 0.75
"""What a region may take, by estimate, of the time of its launches: a guess."""


class TileRegionCall(AxisCall):
    """A region over lanes, as one step."""

    name = "tile region"
    over_lanes = True

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Tensor]) -> None:
        super().__init__(operands, results, eqn.source)
        self.body: Jaxpr = eqn.params["jaxpr"]
        self.count: int = eqn.params["count"]
        self.lanes: Mapping[Var, int] = eqn.params["lanes"]

    def launches(self) -> Launches:
        """Raises UnsupportedKernel where a tile does not compute it, or launches are faster."""
        widest = max([math.prod(inner_sizes(v.aval.shape, self.lanes[v]))
                      for e in self.body.eqns for v in e.outvars if v in self.lanes], default=1)
        why = "its tiles are large"
        for block in BLOCKS:
            if block > LEAST_BLOCK and (block * max(widest, 16) > TILE_AREA
                                        or self.count < block * self.target.multiprocessors):
                continue
            writer = _RegionWriter(self, block)
            try:
                with writer.body.reader.at_most(MOST_EXPRESSIONS):
                    launches = writer.launches()
            except TooManyExpressions:
                raise UnsupportedKernel("a tile computes too many values") from None
            if writer.nanoseconds() > GAIN * _launched(self):
                raise UnsupportedKernel("its steps are faster as launches")
            if not (n := self.spills(launches)):
                return launches
            why = f"it spills {n} numbers of each thread"
        raise UnsupportedKernel(why)


def _region(eqn: Equation, xs: list[Tensor]) -> TileRegionCall:
    return TileRegionCall(eqn, xs, results_of(eqn))


RULES: Final[Mapping[Any, CallRule]] = {tile_region_p: _region}


class _Total(Record):
    """A sum over lanes: its result, the names of what a program has of it, and where it goes.

    It has `left` components by `right` ones.
    """

    tensor: Tensor
    eqn: Equation
    left: int
    right: int
    name: str
    first: int

    @property
    def is_product(self) -> bool:
        return min(self.left, self.right) > 1


class _RegionWriter:
    def __init__(self, call: TileRegionCall, block: int) -> None:
        self.call, self.target = call, call.target
        self.body = LaneTileBody(call.operands, call.count, block, call.target, call.lanes.get)
        self.programs = min(-(-call.count // block), self.target.multiprocessors)
        self.row = 0
        self.totals: list[_Total] = []

    def launches(self) -> Launches:
        call, body, w = self.call, self.body, self.body.w
        own = [e for e in call.body.eqns if not self._is_sum(e)]
        sums = [e for e in call.body.eqns if self._is_sum(e)]
        results = dict(zip(call.body.outvars, call.results, strict=True))
        read = dict.fromkeys([x for e in sums for x in e.invars if isinstance(x, Var)])
        kept = [v for v in results if not any(v in e.outvars for e in sums)]
        outs = dict.fromkeys([*read, *kept])
        inner = Jaxpr((), call.body.invars, tuple(own), tuple(outs), name=call.body.name)
        for e in sums:
            if e.outvars[0] in results:
                self._begin(results[e.outvars[0]], e)
        step = self.programs * body.block
        w.trips[body.lane] = -(-call.count // step)
        with w.nested(f"for first_ in range(tl.program_id(0) * {body.block}, {call.count}, "
                      f"{step}):", body.lane):
            w.emit("first = tl.cast(first_, tl.int32)", *[x.strip() for x in body.numbers()])
            found = dict(zip(outs, body.program(inner, [*map(LaneView, call.operands)]),
                             strict=True))
            made: dict[Atom, int] = {v: k for k, e in enumerate(own) for v in e.outvars}
            ends: list[tuple[int, _Total | Atom]] = [(made.get(v, -1), v) for v in kept]
            ends += [(max(made.get(x, -1) for x in t.eqn.invars), t) for t in self.totals]
            for _, end in sorted(ends, key=lambda x: x[0]):
                if isinstance(end, _Total):
                    self._add(end, found)
                else:
                    body.store_all(found[end], end, (), results[end])
        for t in self.totals:
            self._leave(t)
        kernels = [body.kernel("tile_region", [], self.programs, self.row)]
        places = body.places()
        if self.totals:
            kernels.append(sums_of_parts({t.tensor: (f"s{k}", t.first) for k, t in
                                          enumerate(self.totals)}, self.programs, self.row,
                                         w.stored))
            places |= {f"s{k}": (t.tensor, 0) for k, t in enumerate(self.totals)}
        return Launches(kernels, places)

    def nanoseconds(self) -> float:
        """What it takes, with the launch that adds up."""
        w, figures = self.body.w, self.target.measured
        return w.nanoseconds + figures.launch * (1 + bool(self.totals))

    def _is_sum(self, eqn: Equation) -> bool:
        return not any(v in self.call.lanes for v in eqn.outvars) \
            and is_lane_sum(eqn, self.call.lanes)

    # --------------------------------------------------------------------------- sums

    def _size(self, v: Any) -> int:
        return math.prod(inner_sizes(v.aval.shape, self.call.lanes[v]))

    def _begin(self, t: Tensor, eqn: Equation) -> None:
        """The part of a sum that a program has, of which there is nothing yet."""
        sizes = [self._size(x) for x in eqn.invars]
        left, right = (sizes[0], 1) if eqn.primitive is reduce_sum_p else sizes
        total = _Total(t, eqn, left, right, self.body.w.fresh(), self.row)
        self.row += -(-left * right // CHUNK) * CHUNK
        self.totals.append(total)
        w = self.body.w
        shape = (w.extent_of(left), w.extent_of(right)) if total.is_product \
            else (w.extent_of(max(left, right)), 1)
        w.emit(f"{total.name} = tl.zeros({shape}, tl.float32)")

    def _add(self, total: _Total, found: Mapping[Any, Tensor]) -> None:
        """Add what the lanes of a tile have of a sum."""
        w, body = self.body.w, self.body
        tiles = [body.tile(found[x], x) for x in total.eqn.invars]
        inside = w.mask([body.lane])
        if not total.is_product:
            x = w.name(" * ".join(tiles)) if len(tiles) > 1 else tiles[0]
            if inside:
                x = w.name(f"tl.where({inside}, {x}, 0.0)")
            w.emit(f"{total.name} += tl.sum({x}, 1, keep_dims=True)")
            return
        precision = resolved_precision(total.eqn.params.get("precision"))
        if inside:
            tiles = [w.name(f"tl.where({inside}, {x}, 0.0)") for x in tiles]
        if precision is Precision.DEFAULT:
            tiles = [w.name(f"fm.tf32({x})") for x in tiles]
        w.spend_on_product(body.block, total.left, total.right, RATES[precision])
        w.emit(f"{total.name} = tl.dot({tiles[0]}, tl.trans({tiles[1]}), {total.name}, "
               f"input_precision='{RATES[precision]}', out_dtype=tl.float32)")

    def _leave(self, total: _Total) -> None:
        """Store the part of a sum that a program has."""
        w, reader = self.body.w, self.body.reader
        name = total.name
        n = max(total.left, total.right)
        components = _only(reader.component(total.left if total.is_product else n))
        place, variables = components.name if components is not None else "0", [components]
        rows, cols = w.extent_of(total.left if total.is_product else n), 1
        if total.is_product:
            _, terms = reader.along(total.right)
            place, cols = f"{place} * {total.right} + {terms.name}", w.extent_of(total.right)
            variables.append(terms)
        elif total.tensor.size == 1 and n > 1:
            if inside := w.mask([v for v in variables if v is not None]):
                name = w.name(f"tl.where({inside}, {name}, 0.0)")
            name, place = w.name(f"tl.sum({name}, 0, keep_dims=True)"), "0"
            rows, variables = 1, []
        shape = (rows, cols)
        inside = w.mask([v for v in variables if v is not None])
        mask = f", mask=({inside}) & tl.full({shape}, 1, tl.int1)" if inside else ""
        w.emit(f"tl.store(workspace + tl.program_id(0) * {self.row} + {total.first} + ({place}) "
               f"+ tl.zeros({shape}, tl.int32), {name}{mask})")


def _only(index: Index) -> LoopVar | None:
    """The variable that an index is; None of 0."""
    for v in index.terms:
        assert isinstance(v, LoopVar)
        return v
    return None


def _launched(call: TileRegionCall) -> float:
    """Nanoseconds of launches of a region: products and sums, what they read and write."""
    figures = call.target.measured
    total = 0.0
    for eqn in call.body.eqns:
        if eqn.primitive is not dot_general_p and eqn.primitive is not reduce_sum_p:
            continue
        nbytes = sum([4 * int(v.aval.size) for v in (*eqn.invars, *eqn.outvars)])
        total += figures.launch + nbytes * figures.byte
    return total

